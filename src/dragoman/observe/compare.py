"""Show captured bodies as indented JSON with their notes, and compare a captured request with its replay.

A replay is compared in the upstream request, in the answer to the client and in the record.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal

import msgspec

from dragoman.notes import Note
from dragoman.observe.captures import CapturedRequest, display_body, make_body
from dragoman.observe.record import RequestRecord

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


Verdict = Literal["same", "spaces", "ids", "different"]
#: Text for each verdict.
VERDICT_TEXTS: dict[Verdict, str] = {
    "same": "the same, byte for byte",
    "spaces": "the same but for white space",
    "ids": "the same but for ids and times",
    "different": "different",
}
#: Ids that the gateway generates for every answer, and the timestamps in it.
_ID = re.compile(rb'"([a-z]{2,9}[_-])([a-z2-7]{16}(?:-[a-z2-7]{8})?)((?:_\d+)?")')
_TIME = re.compile(rb'("(?:created|created_at|latencyMs)":\s*)\d+')


class BodyComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of two bodies; `lines` is a unified diff without its two header lines."""

    verdict: Verdict
    lines: list[str]


class FieldComparison(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    then: str
    now: str


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    asked: BodyComparison
    given: BodyComparison
    facts: tuple[FieldComparison, ...]


def compare(
    captured: CapturedRequest, record: RequestRecord, *, upstream_request: bytes, client_answer: bytes
) -> Comparison:
    """Compare a capture with its replay, of which `upstream_request` is the first request to Google."""
    then = captured.upstream[0].request.data if captured.upstream else b""
    return Comparison(
        asked=compare_bodies(then, upstream_request),
        given=compare_answers(captured.client_answer.data, client_answer),
        facts=compare_records(captured.record, record),
    )


def compare_bodies(then: bytes, now: bytes) -> BodyComparison:
    if then == now:
        return BodyComparison(verdict="same", lines=[])
    lines = diff_bodies(then, now)[2:]
    return BodyComparison(verdict="different" if lines else "spaces", lines=lines)


def compare_answers(then: bytes, now: bytes) -> BodyComparison:
    """Compare two answers to a client; ids may differ if equal ids are at the same places."""
    if then == now:
        return BodyComparison(verdict="same", lines=[])
    found = compare_bodies(_with_stable_ids(unframe(then)), _with_stable_ids(unframe(now)))
    return BodyComparison(verdict="ids", lines=[]) if found.verdict == "same" else found


def _with_stable_ids(body: bytes) -> bytes:
    """Replace ids by their order of appearance, and times by 0."""
    known: dict[bytes, int] = {}

    def number(found: re.Match[bytes]) -> bytes:
        return b'"%b%d%b' % (found[1], known.setdefault(found[2], len(known) + 1), found[3])

    return _TIME.sub(rb"\g<1>0", _ID.sub(number, body))


def compare_records(then: RequestRecord, now: RequestRecord) -> tuple[FieldComparison, ...]:
    facts = {
        "model": (then.model, now.model),
        "status": (str(then.status), str(now.status)),
        "error": (then.error, now.error),
        "stop": (then.stop, now.stop),
        "calls": (", ".join(then.calls), ", ".join(now.calls)),
        "notes": (str(len(then.notes)), str(len(now.notes))),
        "tokens out": (str(then.usage.output_tokens), str(now.usage.output_tokens)),
    }
    return tuple(FieldComparison(name=name, then=old, now=new) for name, (old, new) in facts.items())
