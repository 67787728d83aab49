"""`dragoman explain`: show the four stages of a captured request, with the notes of the translation.

The stages are shown one after the other, or side by side in a wide terminal.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import zip_longest
from typing import Any

import msgspec

from dragoman.agent.tui.style import character_width, display_width
from dragoman.cli.help_pages import new_parser
from dragoman.cli.inspect.capture import require_capture
from dragoman.cli.settings import add_config_flag, print_setting_notes, read_settings
from dragoman.cli.terminal import paint, print_result, replace_controls
from dragoman.notes import Note
from dragoman.observe.captures import CapturedBody, CapturedRequest, DisplayBody, DisplayEvent, display_body
from dragoman.observe.compare import annotate
from dragoman.observe.record import RequestRecord

#: Titles of the stages. The client's side is shown to the left of Google's.
STAGE_TITLES = {
    "client": "1  request of the client",
    "upstream": "2  request to Google",
    "answer": "3  response of Google",
    "reply": "4  response to the client",
}
STAGE_PAIRS = (("client", "upstream"), ("reply", "answer"))
COLUMN_SEPARATOR = " │ "
#: Maximum length of a string: shortened, or complete.
SHORT_TEXT, WHOLE_TEXT = 160, 1_000_000
_EVENT_TEXT = 100  # maximum length of a string in an event: there are many events, each with little text


class StageRow(msgspec.Struct, frozen=True):
    """One line and its colour."""

    text: str
    colour: str = ""


def stage_rows(captured: CapturedRequest, stage: str, longest: int) -> list[StageRow]:
    """Return the lines of a stage with its title; a stage with several attempts has one title for each."""
    several = len(captured.upstream) > 1
    rows: list[StageRow] = []
    for number, (body, notes) in enumerate(_bodies(captured, stage), 1):
        which = f" (attempt {number})" if several and stage in ("upstream", "answer") else ""
        rows += [*([StageRow("")] if rows else []), StageRow(f"{STAGE_TITLES[stage]}{which}", "cyan")]
        rows += _body_rows(body, notes, longest)
    return rows


def side_by_side(
    left: Iterable[StageRow], right: Iterable[StageRow], width: int
) -> Iterator[tuple[StageRow, StageRow]]:
    """Yield pairs of lines as two columns of `width` cells; long lines are wrapped, the left one is padded."""
    folded = ([line for row in column for line in _wrap(row, width)] for column in (left, right))
    for one, two in zip_longest(*folded, fillvalue=StageRow("")):
        yield StageRow(one.text + " " * (width - display_width(one.text)), one.colour), two


def _bodies(captured: CapturedRequest, stage: str) -> list[tuple[CapturedBody, tuple[Note, ...]]]:
    match stage:
        case "client":
            return [(captured.client_request, captured.record.notes)]
        case "upstream":
            return [(one.request, ()) for one in captured.upstream]
        case "answer":
            return [(one.answer, ()) for one in captured.upstream]
        case _:
            return [(captured.client_answer, ())]


def _body_rows(body: CapturedBody, notes: tuple[Note, ...], longest: int) -> Iterator[StageRow]:
    shown = display_body(body)
    match shown.kind:
        case "json":
            yield from _document_rows(msgspec.json.decode(body.data), notes, longest)
            return
        case "events":
            yield from _event_rows(shown, _EVENT_TEXT if longest == SHORT_TEXT else longest)
        case "text":
            lines = (line for line in shown.text.splitlines() if line.strip())
            yield from (StageRow("  " + _shorten(replace_controls(line), longest)) for line in lines)
        case "bytes":
            yield StageRow(f"  {shown.size:,} bytes of binary data")
        case "empty":
            yield StageRow("  empty", "dim")
    yield from (_note_row(note, 2, note.where) for note in notes)


def _document_rows(document: Any, notes: tuple[Note, ...], longest: int) -> Iterator[StageRow]:
    lines, elsewhere = annotate(document, notes, longest=longest)
    for one in lines:
        yield StageRow("  " + replace_controls(one.text))
        margin = len(one.text) - len(one.text.lstrip()) + 2
        yield from (_note_row(note, margin) for note in one.notes)
    yield from (_note_row(note, 2, note.where) for note in elsewhere)


def _event_rows(shown: DisplayBody, longest: int) -> Iterator[StageRow]:
    for event in shown.events:
        name = f"{replace_controls(event.name)} " if event.name else ""
        yield StageRow(f"  {name}{replace_controls(_event_text(event, longest))}")
    if shown.left_out:
        yield StageRow(f"  … and {shown.left_out:,} more events", "dim")


def _event_text(event: DisplayEvent, longest: int) -> str:
    try:
        event_data = msgspec.json.decode(event.data)
    except msgspec.DecodeError:
        return _shorten(event.data, longest)
    return msgspec.json.encode(_shorten_strings(event_data, longest)).decode()


def _shorten_strings(value: Any, longest: int) -> Any:
    match value:
        case dict():
            return {name: _shorten_strings(item, longest) for name, item in value.items()}
        case list():
            return [_shorten_strings(item, longest) for item in value]
        case str():
            return _shorten(value, longest)
        case _:
            return value


def _shorten(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _note_row(note: Note, margin: int, place: str = "") -> StageRow:
    where = f" {replace_controls(place)}" if place else ""
    return StageRow(" " * margin + f"^ {note.kind}{where}: {replace_controls(note.why)}", "yellow")


def _wrap(row: StageRow, width: int) -> Iterator[StageRow]:
    """Wrap a line; further lines have a slightly larger indentation if there is room."""
    margin = " " * min(len(row.text) - len(row.text.lstrip(" ")) + 2, width // 2)
    text, start, lead = row.text, 0, ""
    while display_width(rest := text[start : start + width + 1]) > width - len(lead):
        end = _break_at(rest, width - len(lead))
        yield StageRow(lead + rest[:end], row.colour)
        start += end + len(rest[end:]) - len(rest[end:].lstrip(" "))
        lead = margin
    yield StageRow(lead + rest, row.colour)


def _break_at(text: str, width: int) -> int:
    """Return how many characters fit into `width`, preferring a break between words near the end."""
    room, end = width, 0
    for letter in text:
        room -= character_width(letter)
        if room < 0:
            break
        end += 1
    gap = [found.end() for found in re.finditer(r"(?<=\S)[ ,]", text[:end])][-1:]
    return gap[0] if gap and gap[0] > width * 2 // 3 else end


_EPILOG = """\
examples:
  dragoman explain last                the newest request
  dragoman explain req_k3v --full      with complete texts
  dragoman explain req_k3v --stage upstream
  dragoman explain last --width 160 | less   side by side, as in a wide terminal

A request is captured if observe.capture is all, or if it is errors and the request failed. Its id is in the
response header x-dragoman-request-id; a prefix is enough."""
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
    parser.add_argument("id", help="request id, a prefix of it, or: last")
    parser.add_argument("--stage", choices=tuple(STAGE_TITLES), default="", help="only this stage")
    parser.add_argument("--full", action="store_true", help="do not shorten long texts")
    parser.add_argument("--json", action="store_true", help="print the capture as JSON")
    parser.add_argument(
        "--width",
        type=int,
        default=0,
        metavar="N",
        help=f"columns to fill (default: the terminal's); from {_WIDE_ENOUGH} on, stages are shown side by side",
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
        target = f"{attempt.model} key {attempt.key}" if attempt.key else attempt.model
        lead = paint("attempt  ", "dim", sys.stdout)
        print_result(f"  {lead} {target}: HTTP {attempt.status or '-'} {how}, {attempt.ms} ms")
    if captured.cut:
        print_result(
            paint(
                "  the bodies were longer than observe.capture_body_bytes and are truncated",
                "yellow",
                sys.stdout,
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
