"""`dragoman serve`: run the gateway in the foreground."""

from __future__ import annotations

import argparse
import os
import signal
import threading

from dragoman.cli.banner import ready_banner
from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import (
    add_config_flag,
    find_client_key,
    make_state_folder,
    print_setting_notes,
    read_settings,
)
from dragoman.cli.terminal import print_result
from dragoman.errors import ConfigError
from dragoman.process.serve import serve

_PORT_HINT = "is another gateway running? pick another port with --port 8379, or any free one with --port 0"

_EXAMPLES = """\
examples:
  dragoman serve                         on 127.0.0.1:8377, with the key in GEMINI_API_KEY
  dragoman serve --emulator --port 0     offline, on any free port
  dragoman serve --config team.toml      with settings from a file
  dragoman serve --workers 4             on four cores

The gateway key is created at the first start and stored in DRAGOMAN_HOME/gateway.key."""


def run(argv: list[str]) -> int:
    """Serve until a signal arrives."""
    args = make_parser().parse_args(argv)
    flags: dict[str, object] = {
        "server.host": args.host,
        "server.port": args.port,
        "server.workers": args.workers,
        "server.no_auth": args.no_auth or None,
        "upstream.kind": "emulator" if args.emulator else None,
    }
    settings = read_settings(args.config, flags)
    print_setting_notes(settings)
    os.umask(0o077)  # files of the gateway are accessible only by their owner, even in a shared folder
    make_state_folder(settings.home)
    key = find_client_key(settings)
    if args.until_stdin_closes:
        threading.Thread(target=_stop_with_stdin, daemon=True).start()
    config = settings.config
    try:
        serve(
            config,
            gateway_key=key.secret if key else None,
            on_ready=lambda base_url: print_result(ready_banner(config, base_url, key)),
        )
    except ConfigError as error:
        if error.code != "port":
            raise
        raise ConfigError(f"{error.message}\n{_PORT_HINT}", where=error.where) from None
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "serve",
        "Start the gateway in the foreground and print the settings for each client.",
        _EXAMPLES,
    )
    parser.add_argument("--host", help="address to listen on (default 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on, 0 for any free one (default 8377)")
    parser.add_argument("--workers", type=int, help="processes that share the port (default 1)")
    parser.add_argument("--no-auth", action="store_true", help="require no key; loopback only")
    parser.add_argument(
        "--emulator", action="store_true", help="use the built-in emulator, even if a key is set"
    )
    add_config_flag(parser)
    parser.add_argument("--until-stdin-closes", action="store_true", help=argparse.SUPPRESS)
    return parser


def _stop_with_stdin() -> None:
    """Stop the gateway when stdin closes: a launcher holds the other end, so the gateway ends with it."""
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
