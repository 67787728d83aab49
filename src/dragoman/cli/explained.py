"""The stages of a captured request as terminal lines, sequential or side by side."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any

import msgspec

from dragoman.cli.screen import visible
from dragoman.notes import Note
from dragoman.observe.bodies import Shown, ShownEvent, show_body
from dragoman.observe.captures import Body, Captured
from dragoman.observe.explain import annotate

#: Titles of the stages. The client's side is shown to the left of Google's.
TITLES = {
    "client": "1  what the client asked",
    "upstream": "2  what Google was asked",
    "answer": "3  what Google answered",
    "reply": "4  what the client got",
}
PAIRS = (("client", "upstream"), ("reply", "answer"))
BETWEEN = " │ "
#: Maximum length of a string: shortened, or complete.
SHORT, WHOLE = 160, 1_000_000
_EVENT_TEXT = 100  # maximum length of a string in an event: there are many events, each with little text
_WIDE = frozenset({"W", "F"})


class Row(msgspec.Struct, frozen=True):
    """One line and its colour."""

    text: str
    colour: str = ""


def stage_rows(captured: Captured, stage: str, longest: int) -> list[Row]:
    """Return the lines of a stage with its title; a stage with several attempts has one title for each."""
    several = len(captured.upstream) > 1
    rows: list[Row] = []
    for number, (body, notes) in enumerate(_bodies(captured, stage), 1):
        which = f" (attempt {number})" if several and stage in ("upstream", "answer") else ""
        rows += [*([Row("")] if rows else []), Row(f"{TITLES[stage]}{which}", "cyan")]
        rows += _body_rows(body, notes, longest)
    return rows


def beside(left: Iterable[Row], right: Iterable[Row], width: int) -> Iterator[tuple[Row, Row]]:
    """Yield pairs of lines as two columns of `width` cells; long lines are wrapped, the left one is padded."""
    folded = ([line for row in column for line in _wrap(row, width)] for column in (left, right))
    for one, two in zip_longest(*folded, fillvalue=Row("")):
        yield Row(one.text + " " * (width - cells(one.text)), one.colour), two


def cells(text: str) -> int:
    """Return the width of the text in terminal cells."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _bodies(captured: Captured, stage: str) -> list[tuple[Body, tuple[Note, ...]]]:
    match stage:
        case "client":
            return [(captured.client_request, captured.record.notes)]
        case "upstream":
            return [(one.request, ()) for one in captured.upstream]
        case "answer":
            return [(one.answer, ()) for one in captured.upstream]
        case _:
            return [(captured.client_answer, ())]


def _body_rows(body: Body, notes: tuple[Note, ...], longest: int) -> Iterator[Row]:
    shown = show_body(body)
    match shown.kind:
        case "json":
            yield from _document_rows(msgspec.json.decode(body.data), notes, longest)
            return
        case "events":
            yield from _event_rows(shown, _EVENT_TEXT if longest == SHORT else longest)
        case "text":
            lines = (line for line in shown.text.splitlines() if line.strip())
            yield from (Row("  " + _short(visible(line), longest)) for line in lines)
        case "bytes":
            yield Row(f"  {shown.size:,} bytes that are no text")
        case "empty":
            yield Row("  nothing", "dim")
    yield from (_note_row(note, 2, note.where) for note in notes)


def _document_rows(document: Any, notes: tuple[Note, ...], longest: int) -> Iterator[Row]:
    lines, elsewhere = annotate(document, notes, longest=longest)
    for one in lines:
        yield Row("  " + visible(one.text))
        margin = len(one.text) - len(one.text.lstrip()) + 2
        yield from (_note_row(note, margin) for note in one.notes)
    yield from (_note_row(note, 2, note.where) for note in elsewhere)


def _event_rows(shown: Shown, longest: int) -> Iterator[Row]:
    for event in shown.events:
        name = f"{visible(event.name)} " if event.name else ""
        yield Row(f"  {name}{visible(_event_text(event, longest))}")
    if shown.left_out:
        yield Row(f"  … and {shown.left_out:,} more events", "dim")


def _event_text(event: ShownEvent, longest: int) -> str:
    try:
        said = msgspec.json.decode(event.data)
    except msgspec.DecodeError:
        return _short(event.data, longest)
    return msgspec.json.encode(_shortened(said, longest)).decode()


def _shortened(value: Any, longest: int) -> Any:
    match value:
        case dict():
            return {name: _shortened(item, longest) for name, item in value.items()}
        case list():
            return [_shortened(item, longest) for item in value]
        case str():
            return _short(value, longest)
        case _:
            return value


def _short(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _note_row(note: Note, margin: int, place: str = "") -> Row:
    where = f" {visible(place)}" if place else ""
    return Row(" " * margin + f"^ {note.kind}{where}: {visible(note.why)}", "yellow")


def _wrap(row: Row, width: int) -> Iterator[Row]:
    """Wrap a line; further lines have a slightly larger indentation if there is room."""
    margin = " " * min(len(row.text) - len(row.text.lstrip(" ")) + 2, width // 2)
    text, start, lead = row.text, 0, ""
    while cells(rest := text[start : start + width + 1]) > width - len(lead):
        end = _break_at(rest, width - len(lead))
        yield Row(lead + rest[:end], row.colour)
        start += end + len(rest[end:]) - len(rest[end:].lstrip(" "))
        lead = margin
    yield Row(lead + rest, row.colour)


def _break_at(text: str, width: int) -> int:
    """Return how many characters fit into `width`, preferring a break between words near the end."""
    room, end = width, 0
    for letter in text:
        room -= _cells_of(letter)
        if room < 0:
            break
        end += 1
    gap = [found.end() for found in re.finditer(r"(?<=\S)[ ,]", text[:end])][-1:]
    return gap[0] if gap and gap[0] > width * 2 // 3 else end


def _cells_of(letter: str) -> int:
    return 0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in _WIDE else 1
