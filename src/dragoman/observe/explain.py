"""A captured request made readable: each stage as indented JSON, every note at the place it speaks of."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dragoman.notes import Note
from dragoman.observe.bodies import show_body
from dragoman.observe.captures import body_of

_LONGEST = 400  # characters of one text; whoever wants all has the file
_INDENT = "  "


class Line(msgspec.Struct, frozen=True):
    """One line of a document; `notes` belong to what begins there."""

    text: str
    notes: tuple[Note, ...] = ()


def annotate(
    document: Any, notes: Iterable[Note], *, longest: int = _LONGEST
) -> tuple[list[Line], list[Note]]:
    """The document's lines, and the notes whose place is not in it."""
    placed: dict[str, list[Note]] = {}
    for note in notes:
        placed.setdefault(note.where, []).append(note)
    lines = list(_lines(document, "", "", "", placed, longest))
    return lines, [note for left in placed.values() for note in left]


def _lines(
    value: Any, where: str, lead: str, margin: str, placed: dict[str, list[Note]], longest: int
) -> Iterator[Line]:
    notes = tuple(placed.pop(where, ())) if where else ()
    inside = margin + _INDENT
    if isinstance(value, dict) and value:
        yield Line(f"{margin}{lead}{{", notes)
        for name, item in value.items():
            place = f"{where}.{name}" if where else name
            yield from _lines(item, place, f"{_json(name)}: ", inside, placed, longest)
        yield Line(f"{margin}}}")
    elif isinstance(value, list) and value:
        yield Line(f"{margin}{lead}[", notes)
        for index, item in enumerate(value):
            yield from _lines(item, f"{where}[{index}]", "", inside, placed, longest)
        yield Line(f"{margin}]")
    else:
        yield Line(f"{margin}{lead}{_short(value, longest)}", notes)


def _short(value: Any, longest: int) -> str:
    if isinstance(value, str) and len(value) > longest:
        return f"{_json(value[:longest])} … {len(value) - longest} more characters"
    return _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def differences(before: bytes, after: bytes) -> list[str]:
    """A unified diff of two bodies, as indented JSON where they are JSON; empty if they mean the same."""
    old, new = _readable(before), _readable(after)
    return list(difflib.unified_diff(old, new, "then", "now", lineterm="", n=2))


def _readable(body: bytes) -> list[str]:
    try:
        lines, _ = annotate(msgspec.json.decode(body), (), longest=1_000_000)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body.decode("utf-8", "replace").splitlines()
    return [line.text for line in lines]


def without_frames(body: bytes) -> bytes:
    """What Amazon's frames say, a line each; any other body as it is."""
    shown = show_body(body_of(body))
    framed = shown.kind == "events" and b"\0" in body
    return "\n".join(f"{one.name} {one.data}" for one in shown.events).encode() if framed else body
