"""Show a captured body as indented JSON with its notes, and compute diffs of bodies."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dragoman.notes import Note
from dragoman.observe.bodies import display_body
from dragoman.observe.captures import make_body

_MAX_TEXT = 400  # characters of one string; `--full` shows all
_INDENT = "  "


class AnnotatedLine(msgspec.Struct, frozen=True):
    """One line of a document; `notes` refer to the value that begins there."""

    text: str
    notes: tuple[Note, ...] = ()


def annotate(
    document: Any, notes: Iterable[Note], *, longest: int = _MAX_TEXT
) -> tuple[list[AnnotatedLine], list[Note]]:
    """Return the lines of the document, and the notes whose location is not in it."""
    placed: dict[str, list[Note]] = {}
    for note in notes:
        placed.setdefault(note.where, []).append(note)
    lines = list(_lines(document, "", "", "", placed, longest))
    return lines, [note for left in placed.values() for note in left]


def _lines(
    value: Any, where: str, lead: str, margin: str, placed: dict[str, list[Note]], longest: int
) -> Iterator[AnnotatedLine]:
    notes = tuple(placed.pop(where, ())) if where else ()
    inside = margin + _INDENT
    if isinstance(value, dict) and value:
        yield AnnotatedLine(f"{margin}{lead}{{", notes)
        for name, item in value.items():
            place = f"{where}.{name}" if where else name
            yield from _lines(item, place, f"{_json(name)}: ", inside, placed, longest)
        yield AnnotatedLine(f"{margin}}}")
    elif isinstance(value, list) and value:
        yield AnnotatedLine(f"{margin}{lead}[", notes)
        for index, item in enumerate(value):
            yield from _lines(item, f"{where}[{index}]", "", inside, placed, longest)
        yield AnnotatedLine(f"{margin}]")
    else:
        yield AnnotatedLine(f"{margin}{lead}{_shorten(value, longest)}", notes)


def _shorten(value: Any, longest: int) -> str:
    if isinstance(value, str) and len(value) > longest:
        return f"{_json(value[:longest])} … {len(value) - longest} more characters"
    return _json(value)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def diff_bodies(before: bytes, after: bytes) -> list[str]:
    """Return a unified diff of two bodies, as indented JSON if they are JSON; empty if they are equivalent."""
    old, new = _to_lines(before), _to_lines(after)
    return list(difflib.unified_diff(old, new, "then", "now", lineterm="", n=2))


def _to_lines(body: bytes) -> list[str]:
    try:
        lines, _ = annotate(msgspec.json.decode(body), (), longest=1_000_000)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return body.decode("utf-8", "replace").splitlines()
    return [line.text for line in lines]


def unframe(body: bytes) -> bytes:
    """Return an AWS event stream as text with one event per line; return any other body unchanged."""
    shown = display_body(make_body(body))
    framed = shown.kind == "events" and b"\0" in body
    return "\n".join(f"{one.name} {one.data}" for one in shown.events).encode() if framed else body
