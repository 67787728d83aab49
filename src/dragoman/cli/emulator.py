"""`dragoman emulator`: serve only the offline Gemini emulator."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.cli.help_pages import new_parser
from dragoman.cli.terminal import CommandError, paint, print_result, print_status
from dragoman.config import is_loopback
from dragoman.emulator.faults import (
    FAULT_HEADER,
    FAULTS,
    FaultDirector,
    FaultKind,
    ScheduledFault,
    parse_scheduled_fault,
)
from dragoman.emulator.faults.kinds import CONTENT_FAULTS, ERROR_FAULTS, NETWORK_FAULTS
from dragoman.emulator.http_server import EmulatorServer, run_server
from dragoman.emulator.script.load import load_script
from dragoman.emulator.script.model import script_schema
from dragoman.emulator.script.player import ScriptPlayer
from dragoman.emulator.service import EmulatorService
from dragoman.errors import ConfigError

if TYPE_CHECKING:
    from dragoman.emulator.script.recorder import Recorder

_GOOGLE = "https://generativelanguage.googleapis.com"
_PORT_HINT = "is another emulator running? pick another port with --port 8379, or any free one with --port 0"

#: Fault kinds in the groups of `--list-faults`; docs/emulator.md has the same table.
FAULT_GROUPS: Mapping[str, Sequence[FaultKind]] = {
    "An error instead of an answer": ERROR_FAULTS,
    "An invalid or incomplete answer": CONTENT_FAULTS,
    "Connection faults": NETWORK_FAULTS,
}

_EXAMPLES = f"""\
examples:
  dragoman emulator
  dragoman emulator --fault 'overloaded*2'      the first two requests get a 503
  dragoman emulator --fault slow_stream=0.2     every answer is slow
  dragoman emulator --script weather.yaml       answer from a script, and check the requests
  dragoman emulator --record weather.yaml       forward to Google, and write that script

point your programs to it with environment variables:
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8378 GEMINI_API_KEY=any python my_agent.py
  GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8378 GEMINI_API_KEY=any gemini
  GEMINI_BASE_URL=http://127.0.0.1:8378 GEMINI_API_KEY=any dragoman serve

The pytest fixture gemini_emulator does all this. A request can select its own fault with the header
{FAULT_HEADER}: NAME[=ARGUMENT]. More: docs/emulator.md, docs/emulator-scripts.md."""


def run(argv: list[str]) -> int:
    """Serve until a signal arrives."""
    args = make_parser().parse_args(argv)
    if args.list_faults:
        print_result(_fault_table())
        return 0
    if args.script_schema:
        print_result(json.dumps(script_schema(), indent=2))
        return 0
    if not 0 <= args.port <= 65535:
        raise ConfigError(f"must be a port number, not {args.port}", where="--port")
    if not is_loopback(args.host):
        raise ConfigError("the emulator does not check keys, so it listens on loopback only", where="--host")
    _check_recording(args)
    player = ScriptPlayer(load_script(Path(args.script))) if args.script else None
    server = _recorder(args) if args.record else _listener(args, player)
    try:
        run_server(_serve(server, args))
    except OSError as error:
        why = f"port {args.port} on {args.host} cannot be used: {error.strerror}"
        raise ConfigError(f"{why}\n{_PORT_HINT}") from None
    if args.record:
        _tell_recorded(Path(args.record))
    if player is not None:
        _tell_followed(player)
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "emulator",
        "Serve only the offline Gemini emulator: as strict as Google, without a key or network access.",
        _EXAMPLES,
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
        help="inject this fault, always or in the first TIMES generate requests; may be repeated",
    )
    parser.add_argument("--list-faults", action="store_true", help="list all faults and exit")
    parser.add_argument("--script", metavar="FILE", help="answer from this script (docs/emulator-scripts.md)")
    parser.add_argument(
        "--script-schema", action="store_true", help="print the JSON Schema of scripts and exit"
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="forward requests to --upstream, and record its answers as a script",
    )
    parser.add_argument("--record-timing", action="store_true", help="also record the time of each chunk")
    parser.add_argument("--upstream", metavar="URL", help=f"the service to record (default {_GOOGLE})")
    parser.add_argument("--verbose", action="store_true", help="one line per request, on stderr")
    return parser


def _check_recording(args: argparse.Namespace) -> None:
    """Raise `ConfigError` before serving if the recording cannot be written or flags do not fit."""
    if not args.record:
        for flag, argument in {"--upstream": args.upstream, "--record-timing": args.record_timing}.items():
            if argument:
                raise ConfigError("requires --record FILE", where=flag)
        return
    if args.script or args.fault:
        raise ConfigError("--record cannot be combined with --script or --fault")
    folder = Path(args.record).absolute().parent
    if not os.access(folder, os.W_OK | os.X_OK):
        why = "cannot be written to" if folder.is_dir() else "does not exist"
        raise ConfigError(f"the folder {folder} {why}", where="--record")


def _listener(args: argparse.Namespace, player: ScriptPlayer | None) -> EmulatorServer:
    service = EmulatorService(args.seed, FaultDirector(player, [_planned(text) for text in args.fault]))
    on_access = print_status if args.verbose else None
    return EmulatorServer(service.handle, args.host.strip("[]"), args.port, on_access=on_access)


def _recorder(args: argparse.Namespace) -> Recorder:
    from dragoman.emulator.script.recorder import Recorder  # imports aiohttp, which only a recording needs

    upstream = args.upstream or _GOOGLE
    return Recorder(upstream, Path(args.record), args.host.strip("[]"), args.port, timing=args.record_timing)


def _planned(text: str) -> ScheduledFault:
    try:
        return parse_scheduled_fault(text)
    except ConfigError as error:
        raise ConfigError(error.message, where="--fault") from None


async def _serve(server: EmulatorServer | Recorder, args: argparse.Namespace) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, stopping.set)
    print_result(_banner(await server.start(), args))
    await stopping.wait()
    await server.close()


def _banner(base_url: str, args: argparse.Namespace) -> str:
    """Return the ready line, followed by commands to copy."""
    key = "GEMINI_API_KEY=…" if args.record else "GEMINI_API_KEY=any"
    url = f"{base_url}/v1beta/models/gemini-3.8-flash:generateContent"
    lines = [
        f"ready on {base_url} → {_role(args)}",
        "",
        f"  your agent   export GOOGLE_GEMINI_BASE_URL={base_url} {key}",
        f"  a gateway    GEMINI_BASE_URL={base_url} {key} dragoman serve",
    ]
    if not args.record:
        lines += [
            f"  curl         curl {url} -H 'x-goog-api-key: any' \\",
            """                 -d '{"contents": [{"parts": [{"text": "say hello"}]}]}'""",
        ]
    return "\n".join([*lines, "", "  Stop with Ctrl-C."])


def _role(args: argparse.Namespace) -> str:
    if args.record:
        return f"{args.upstream or _GOOGLE}, recorded in {args.record}"
    return f"Gemini emulator, playing {args.script}" if args.script else "Gemini emulator"


def _tell_recorded(file: Path) -> None:
    if file.exists():
        print_status(f"recorded in {file}; play it with: dragoman emulator --script {file}")
    else:
        print_status(f"no request was recorded, so there is no {file}")


def _tell_followed(player: ScriptPlayer) -> None:
    problems = player.problems()
    if problems:
        raise CommandError("\n  ".join(["the script was not followed:", *problems]))
    print_status("the script was followed")


def _fault_table() -> str:
    width = max(len(usage(kind)) for kind in FAULTS.values())
    lines = ["faults: NAME, or NAME=ARGUMENT where an argument is shown (with its default)"]
    for title, kinds in FAULT_GROUPS.items():
        rows = [f"  {paint(usage(kind).ljust(width), 'bold', sys.stdout)}  {kind.help}" for kind in kinds]
        lines += ["", f"{title}:", *rows]
    return "\n".join(lines)


def usage(kind: FaultKind) -> str:
    """Return the syntax of a fault, with the default and the unit of its argument."""
    return f"{kind.name}={kind.default} {kind.unit}" if kind.unit else kind.name
