"""`dragoman explain`: show the four stages of a captured request, with the notes of the translation."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec

from dragoman.cli.captured import require_capture
from dragoman.cli.explained import (
    COLUMN_SEPARATOR,
    SHORT_TEXT,
    STAGE_PAIRS,
    STAGE_TITLES,
    WHOLE_TEXT,
    StageRow,
    side_by_side,
    stage_rows,
)
from dragoman.cli.manual import new_parser
from dragoman.cli.screen import paint, print_result
from dragoman.cli.settings import add_config_flag, print_setting_notes, read_settings
from dragoman.observe.captures import CapturedRequest
from dragoman.observe.record import RequestRecord

_EPILOG = """\
examples:
  dragoman explain last                the newest request
  dragoman explain req_k3v --full      with everything that was said in it
  dragoman explain req_k3v --stage upstream
  dragoman explain last --width 160 | less   side by side, as in a wide terminal

A request is captured when observe.capture is all, or errors and it failed. Its id is in the header
x-dragoman-request-id of the answer; its beginning is enough."""
_WIDE_ENOUGH = 110  # minimum of columns to show two stages side by side


def run(argv: list[str]) -> int:
    args = make_parser().parse_args(argv)
    settings = read_settings(args.config)
    print_setting_notes(settings)
    captured = require_capture(settings, args.id)
    if args.json:
        print_result(msgspec.json.format(msgspec.json.encode(captured), indent=2).decode())
        return 0
    _summary(captured)
    stages = [args.stage] if args.stage else list(STAGE_TITLES)
    rows = {stage: stage_rows(captured, stage, WHOLE_TEXT if args.full else SHORT_TEXT) for stage in stages}
    width = args.width or _terminal_width()
    if width >= _WIDE_ENOUGH and not args.stage:
        _show_side_by_side(rows, width)
    else:
        _show_sequential(rows)
    return 0


def make_parser() -> argparse.ArgumentParser:
    parser = new_parser(
        "explain",
        "Show a captured request: four stages, times, attempts, and what the translation changed.",
        _EPILOG,
    )
    parser.add_argument("id", help="of the request, or its beginning, or: last")
    parser.add_argument("--stage", choices=tuple(STAGE_TITLES), default="", help="only this one")
    parser.add_argument("--full", action="store_true", help="long texts are not shortened")
    parser.add_argument("--json", action="store_true", help="the capture as it is")
    parser.add_argument(
        "--width",
        type=int,
        default=0,
        metavar="N",
        help=f"columns to fill (default: the terminal's); from {_WIDE_ENOUGH} on, stages stand side by side",
    )
    add_config_flag(parser)
    return parser


def _summary(captured: CapturedRequest) -> None:
    record = captured.record
    when = datetime.fromtimestamp(record.started_s, UTC).astimezone()
    print_result(
        paint(f"{record.id}  {when:%Y-%m-%d %H:%M:%S}  {record.method} {record.path}", "bold", sys.stdout)
    )
    for name, text in _record_fields(record).items():
        if text:
            print_result(f"  {paint(f'{name:<9}', 'dim', sys.stdout)} {text}")
    for attempt in record.attempts:
        how = paint(attempt.error, "red", sys.stdout) if attempt.error else paint("ok", "green", sys.stdout)
        who = f"{attempt.model} key {attempt.key}" if attempt.key else attempt.model
        lead = paint("attempt  ", "dim", sys.stdout)
        print_result(f"  {lead} {who}: HTTP {attempt.status or '-'} {how}, {attempt.ms} ms")
    if captured.cut:
        print_result(
            paint(
                "  the bodies were longer than observe.capture_body_bytes and are cut", "yellow", sys.stdout
            )
        )


def _record_fields(record: RequestRecord) -> dict[str, str]:
    usage = record.usage
    return {
        "client": record.client,
        "dialect": record.dialect,
        "session": record.session,
        "model": " → ".join(dict.fromkeys((record.asked_model, record.model))) if record.model else "",
        "status": f"{record.status}" + (f", {record.error}" if record.error else ""),
        "stop": record.stop,
        "tokens": f"{usage.input_tokens} in ({usage.cached_tokens} cached), {usage.output_tokens} out",
        "times": f"{record.total_ms} ms, {record.wait_ms} of them waiting for Google, "
        f"first byte after {record.first_byte_ms}",
        "calls": ", ".join((*record.calls, *(f"{name} (ours)" for name in record.own_calls))),
    }


def _terminal_width() -> int:
    """Return the columns of the terminal; 0 if stdout is a file or a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def _show_sequential(rows: Mapping[str, list[StageRow]]) -> None:
    for stage in rows.values():
        print_result("")
        for row in stage:
            print_result(_paint_row(row))


def _show_side_by_side(rows: Mapping[str, list[StageRow]], width: int) -> None:
    """Show the client's side on the left and Google's side on the right."""
    column = (width - len(COLUMN_SEPARATOR)) // 2
    for left, right in STAGE_PAIRS:
        print_result("")
        for one, two in side_by_side(rows[left], rows[right], column):
            print_result(
                f"{_paint_row(one)}{paint(COLUMN_SEPARATOR, 'dim', sys.stdout)}{_paint_row(two)}".rstrip()
            )


def _paint_row(row: StageRow) -> str:
    return paint(row.text, row.colour, sys.stdout) if row.colour else row.text
