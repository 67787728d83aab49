"""`dragoman capture`: list captured requests, or export one as a test; `explain` and `replay` find theirs here."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from dragoman.cli.help_pages import new_parser
from dragoman.cli.settings import Settings, add_config_flag, print_setting_notes, read_settings
from dragoman.cli.terminal import CommandError, paint, print_result, print_status
from dragoman.observe.captures import CAPTURES_FOLDER, CapturedRequest, find_capture, recent_captures


def captures_folder(settings: Settings) -> Path:
    return settings.home / CAPTURES_FOLDER


def require_capture(settings: Settings, identity: str) -> CapturedRequest:
    """Return the capture with this request id, a prefix of it, or `last`; raise `CommandError` if there is none."""
    folder = captures_folder(settings)
    if identity == "last":
        newest = recent_captures(folder, 1)
        found = newest[0] if newest else None
    else:
        found = find_capture(folder, identity)
    if found is None:
        off = settings.config.observe.capture == "off" and not folder.is_dir()
        hint = (
            "capturing is off: start the gateway with DRAGOMAN_OBSERVE_CAPTURE=all (or errors)"
            if off
            else "dragoman capture list shows the captures"
        )
        raise CommandError(f"there is no capture of {identity!r}", hint=hint)
    return found


_EPILOG = """\
examples:
  dragoman capture list
  dragoman capture export last --as script > answer.yaml     then: dragoman emulator --script answer.yaml
  dragoman capture export req_k3v case.json --as golden      request and expected upstream body, for a test"""


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    settings = read_settings(args.config)
    print_setting_notes(settings)
    if args.action == "list":
        return _list(settings, args.number, as_json=args.json)
    captured = require_capture(settings, args.id)
    text = _EXPORTS[args.kind](captured)
    if args.file == "-":
        print_result(text.rstrip("\n"))
    else:
        Path(args.file).write_text(text, encoding="utf-8")
        print_status(f"written to {args.file}")
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "capture",
        "List captured requests, or export one.",
        _EPILOG,
    )
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|export")
    listing = actions.add_parser("list", help="list the newest captures")
    listing.add_argument(
        "-n", dest="number", type=int, default=20, metavar="N", help="number of captures (default 20)"
    )
    listing.add_argument("--json", action="store_true", help="one record per line")
    export = actions.add_parser("export", help="write a golden test or an emulator script")
    export.add_argument("id", help="request id, a prefix of it, or: last")
    export.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="the file to write (default: standard output)"
    )
    export.add_argument("--as", dest="kind", choices=tuple(_EXPORTS), default="golden")
    for one in (listing, export):
        add_config_flag(one)
    return parser


def _list(settings: Settings, number: int, *, as_json: bool) -> int:
    found = recent_captures(captures_folder(settings), number)
    if not found:
        mode = settings.config.observe.capture
        print_status(f"there are no captures in {captures_folder(settings)}; observe.capture is {mode}")
    for captured in found:
        print_result(msgspec.json.encode(captured.record).decode() if as_json else _row(captured))
    return 0


def _row(captured: CapturedRequest) -> str:
    record = captured.record
    when = datetime.fromtimestamp(record.started_s, UTC).astimezone()
    status = f"{record.status} {record.error}".strip()
    colour = "red" if record.error else "green"
    cells = (
        record.id,
        f"{when:%m-%d %H:%M:%S}",
        paint(f"{status:<18}", colour, sys.stdout),
        f"{record.total_ms:>7} ms",
    )
    return "  ".join((*cells, f"{record.dialect} {record.model}".strip()))


def _golden(captured: CapturedRequest) -> str:
    """Return the request, the model and the upstream requests as JSON, for a golden test."""
    case = {
        "path": captured.record.path,
        "headers": captured.headers,
        "query": captured.query,
        "model": captured.record.model,
        "request": _json(captured.client_request.data),
        "upstream": [_json(one.request.data) for one in captured.upstream],
    }
    return msgspec.json.format(msgspec.json.encode(case), indent=2).decode() + "\n"


def _script(captured: CapturedRequest) -> str:
    """Return Google's answers as an emulator script."""
    from dragoman.emulator.script.recording import write_script

    record = captured.record
    pairs = [
        (attempt.status, attempt.model, one.request.data, one.answer.data)
        for attempt, one in zip(record.attempts, captured.upstream, strict=False)
        if attempt.status
    ]
    if not pairs:
        raise CommandError("this request did not reach Google: there is nothing to replay")
    return write_script(pairs, stream=record.stream)


def _json(data: bytes) -> object:
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise CommandError("a body of this capture is truncated or not JSON") from None


_EXPORTS = {"golden": _golden, "script": _script}
