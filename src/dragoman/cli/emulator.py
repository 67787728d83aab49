"""`dragoman emulator`: the offline Gemini alone."""

from __future__ import annotations

import argparse

from dragoman.cli.screen import say
from dragoman.config import is_loopback
from dragoman.errors import ConfigError
from dragoman.server.run import serve_emulator

_PORT_HINT = "pick another port with --port 8379, or any free one with --port 0"

_EXAMPLES = """\
examples:
  dragoman emulator
  GEMINI_BASE_URL=http://127.0.0.1:8378 GEMINI_API_KEY=any dragoman serve
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8378 GEMINI_API_KEY=any gemini"""


def run(argv: list[str]) -> int:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(
        prog="dragoman emulator",
        description="Serve only the offline Gemini emulator: as strict as Google, no key needed, nothing leaves.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--host", default="127.0.0.1", help="loopback address to listen on (default 127.0.0.1)"
    )
    parser.add_argument("--port", type=int, default=8378, help="port, 0 for any free one (default 8378)")
    args = parser.parse_args(argv)
    if not 0 <= args.port <= 65535:
        raise ConfigError(f"must be a port number, not {args.port}", where="--port")
    if not is_loopback(args.host):
        raise ConfigError(
            "the emulator asks nobody for a key, so it listens on loopback only", where="--host"
        )
    try:
        serve_emulator(args.host, args.port, _ready)
    except ConfigError as error:
        message = error.message if "\n" in error.message else f"{error.message}\n{_PORT_HINT}"
        raise ConfigError(message, where=error.where) from None
    return 0


def _ready(base_url: str) -> None:
    say(
        f"ready on {base_url}: Gemini emulator\n\n"
        f"  export GEMINI_BASE_URL={base_url} GEMINI_API_KEY=any   (for dragoman serve)\n"
        f"  curl {base_url}/v1beta/models -H 'x-goog-api-key: any'\n\n  Stop with Ctrl-C."
    )
