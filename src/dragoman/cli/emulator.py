"""`dragoman emulator`: the offline Gemini alone."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.screen import Failure, paint, remark, say
from dragoman.config import is_loopback
from dragoman.emulator.faults import FAULT_HEADER, FAULTS, FaultDirector, FaultKind, Planned, parse_plan
from dragoman.emulator.http.listen import Listener, run_listener
from dragoman.emulator.script.load import load_script
from dragoman.emulator.script.model import script_schema
from dragoman.emulator.script.play import Player
from dragoman.emulator.service import Service
from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.emulator.script.record import Recorder

_GOOGLE = "https://generativelanguage.googleapis.com"
_PORT_HINT = "pick another port with --port 8379, or any free one with --port 0"

_EXAMPLES = f"""\
examples:
  dragoman emulator
  dragoman emulator --fault overloaded*2        the first two requests get a 503
  dragoman emulator --fault slow_stream=0.2     every answer comes slowly
  dragoman emulator --script weather.yaml       answer, and expect, what the script says
  dragoman emulator --record weather.yaml       pass on to Google, and write that script
  GEMINI_BASE_URL=http://127.0.0.1:8378 GEMINI_API_KEY=any dragoman serve
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8378 GEMINI_API_KEY=any gemini

A request asks for a fault of its own with the header {FAULT_HEADER}: NAME[=ARGUMENT]."""


def run(argv: list[str]) -> int:
    """Serve until a signal comes."""
    args = _parser().parse_args(argv)
    if args.list_faults:
        say(_fault_table())
        return 0
    if args.script_schema:
        say(json.dumps(script_schema(), indent=2))
        return 0
    if not 0 <= args.port <= 65535:
        raise ConfigError(f"must be a port number, not {args.port}", where="--port")
    if not is_loopback(args.host):
        raise ConfigError(
            "the emulator asks nobody for a key, so it listens on loopback only", where="--host"
        )
    player = Player(load_script(Path(args.script))) if args.script else None
    server = _recorder(args) if args.record else _listener(args, player)
    try:
        run_listener(_serve(server, _role(args)))
    except OSError as error:
        why = f"port {args.port} on {args.host} cannot be used: {error.strerror}"
        raise ConfigError(f"{why}\n{_PORT_HINT}") from None
    problems = player.problems() if player is not None else []
    if problems:
        raise Failure("the script was not followed", hint="\n  ".join(problems))
    return 0


def _parser() -> argparse.ArgumentParser:
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
    parser.add_argument(
        "--seed", default="dragoman", help="emulators with the same seed accept each other's signatures"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME[=ARG][*TIMES]",
        help="fail like this, always or for the first TIMES generate requests; may be repeated",
    )
    parser.add_argument("--list-faults", action="store_true", help="show all faults and stop")
    parser.add_argument(
        "--script", metavar="FILE", help="answer as this script says (docs/emulator-scripts.md)"
    )
    parser.add_argument(
        "--script-schema", action="store_true", help="show the JSON Schema of scripts and stop"
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="pass requests on to --upstream, and write a script of what it answers",
    )
    parser.add_argument("--record-timing", action="store_true", help="record also when each piece came")
    parser.add_argument(
        "--upstream", metavar="URL", default=_GOOGLE, help=f"the service to record (default {_GOOGLE})"
    )
    parser.add_argument("--verbose", action="store_true", help="one line per request, on stderr")
    return parser


def _listener(args: argparse.Namespace, player: Player | None) -> Listener:
    service = Service(args.seed, FaultDirector(player, [_planned(text) for text in args.fault]))
    on_access = remark if args.verbose else None
    return Listener(service.answer, args.host.strip("[]"), args.port, on_access=on_access)


def _recorder(args: argparse.Namespace) -> Recorder:
    from dragoman.emulator.script.record import Recorder  # aiohttp, which nobody else here needs

    if args.script or args.fault:
        raise ConfigError("a recording passes on what the service says, without --script and --fault")
    return Recorder(
        args.upstream, Path(args.record), args.host.strip("[]"), args.port, timing=args.record_timing
    )


def _planned(text: str) -> Planned:
    try:
        return parse_plan(text)
    except ConfigError as error:
        raise ConfigError(error.message, where="--fault") from None


async def _serve(server: Listener | Recorder, role: str) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopping.set)
    _ready(await server.start(), role)
    await stopping.wait()
    await server.close()


def _role(args: argparse.Namespace) -> str:
    if args.record:
        return f"recording {args.upstream} in {args.record}"
    return f"Gemini emulator, playing {args.script}" if args.script else "Gemini emulator"


def _ready(base_url: str, role: str) -> None:
    say(
        f"ready on {base_url}: {role}\n\n"
        f"  export GEMINI_BASE_URL={base_url} GEMINI_API_KEY=any   (for dragoman serve)\n"
        f"  curl {base_url}/v1beta/models -H 'x-goog-api-key: any'\n\n  Stop with Ctrl-C."
    )


def _fault_table() -> str:
    shown = {kind.name: _usage(kind) for kind in FAULTS.values()}
    width = max(map(len, shown.values()))
    lines = [
        f"  {paint(usage.ljust(width), 'bold', sys.stdout)}  {FAULTS[name].help}"
        for name, usage in shown.items()
    ]
    head = "faults: NAME, or NAME=ARGUMENT where an argument is shown (with its default)"
    return "\n".join([head, "", *lines])


def _usage(kind: FaultKind) -> str:
    return f"{kind.name}={kind.default} {kind.unit}" if kind.unit else kind.name
