"""Rules for scripts that the types cannot express.

A step has one answer, patterns compile, faults exist, and a reply has Google's order.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.script.model import Bit, Exactly, Http, Piece, Said, Script, Step, When
from dragoman.emulator.script.troubles import fault_problem

Path = tuple[str | int, ...]
Found = Iterator[tuple[Path, str]]

_ANSWERS = ("reply", "chunks", "http")
_SAID = ("thought", "text", "call")
_BITS = ("parts", "json", "error", "raw", "wait", "cut")
_PIECES = ("text", "base64", "wait", "cut")
_BODIES = ("body", "json", "pieces")
_TEXTS = ("says", "results", "system")
_WITH_REPLY = ("finish", "usage")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\u0100-\U0010ffff]*")
#: The listener writes these headers itself.
_OWN_HEADERS = frozenset("content-length transfer-encoding connection".split())


def check_script(script: Script) -> Found:
    """Yield each problem with its path."""
    for index, step in enumerate(script.steps):
        yield from _under(("steps", index), _check_step(step))


def _under(prefix: Path, found: Found) -> Found:
    for path, what in found:
        yield (*prefix, *path), what


def _check_step(step: Step) -> Found:
    given = _given(step, _ANSWERS)
    if len(given) > 1:
        yield (given[1],), f"a step has one answer, and this one has {' and '.join(given)}"
    for key in _WITH_REPLY:
        if getattr(step, key) is not None and step.reply is None:
            yield (key,), f"{key} goes with reply"
    for key in ("when", "expect"):
        when = getattr(step, key)
        if when is not None:
            yield from _under((key,), _check_when(when))
    if isinstance(step.reply, list):
        yield from _under(("reply",), _check_reply(step.reply))
    for index, bit in enumerate(step.chunks or ()):
        yield from _under(("chunks", index), _check_bit(bit))
    if step.http is not None:
        yield from _under(("http",), _check_http(step.http))
    yield from _check_faults(step)


def _check_when(when: When) -> Found:
    for key in _TEXTS:
        text = getattr(when, key)
        if isinstance(text, str):
            yield from _check_pattern((key,), text)
        elif isinstance(text, Exactly) and not _given(text, ("is_", "starts", "sha256")):
            yield (key,), "say is, starts or sha256"
    for name, pattern in (when.header or {}).items():
        yield from _check_pattern(("header", name), pattern)
    for index, inner in enumerate(when.any_ or ()):
        yield from _under(("any", index), _check_when(inner))
    if when.any_ == []:
        yield ("any",), "of an empty list nothing can hold"
    if when.not_ is not None:
        yield from _under(("not",), _check_when(when.not_))


def _check_pattern(path: Path, pattern: str) -> Found:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        yield path, f"this is no regular expression: {error} (for an exact text write {{is: …}})"


def _check_reply(reply: Sequence[Said]) -> Found:
    highest = 0
    for index, said in enumerate(reply):
        given = _given(said, _SAID)
        if len(given) != 1:
            yield (index,), f"say one of {', '.join(_SAID)}, not {len(given)}"
            continue
        rank = _SAID.index(given[0])
        if rank < highest:
            yield (
                (index,),
                f"{given[0]} comes before {_SAID[highest]} in Gemini's answers; chunks can have any order",
            )
        highest = max(rank, highest)
        if said.call is not None and not said.call.name:
            yield (index, "call", "name"), "a function has a name"


def _check_bit(bit: Bit) -> Found:
    given = _given(bit, _BITS)
    if len(given) != 1:
        yield (), f"say one of {', '.join(_BITS)}, not {len(given)}"
    for key in _WITH_REPLY:
        if getattr(bit, key) is not None and bit.parts is None:
            yield (key,), f"{key} goes with parts"


def _check_http(http: Http) -> Found:
    given = _given(http, _BODIES)
    if len(given) > 1:
        yield (given[1],), f"an answer has one body, and this one has {' and '.join(given)}"
    for name, value in http.headers.items():
        if not _HEADER_NAME.fullmatch(name):
            yield ("headers", name), "this cannot be the name of a header"
        if not _HEADER_VALUE.fullmatch(value):
            yield ("headers", name), "this cannot be the value of a header"
        if name.lower() in _OWN_HEADERS:
            yield ("headers", name), "this header is written by the emulator"
    for index, piece in enumerate(http.pieces or ()):
        if isinstance(piece, Piece):
            yield from _under(("pieces", index), _check_piece(piece))


def _check_piece(piece: Piece) -> Found:
    given = _given(piece, _PIECES)
    if len(given) != 1:
        yield (), f"say one of {', '.join(_PIECES)}, not {len(given)}"
    try:
        base64.b64decode(piece.base64 or "", validate=True)
    except (binascii.Error, ValueError):
        yield ("base64",), "this is not base64"


def _check_faults(step: Step) -> Found:
    many = isinstance(step.fault, list)
    for index, said in enumerate(step.fault if isinstance(step.fault, list) else [step.fault]):
        if said is None:
            continue
        path: Path = ("fault", index) if many else ("fault",)
        if isinstance(said, Mapping) and len(said) != 1:
            yield path, "say one fault per mapping: a list can hold several"
            continue
        name, argument = (said, None) if isinstance(said, str) else next(iter(said.items()))
        what = fault_problem(name, argument, own_chunks=step.chunks is not None or step.http is not None)
        if what:
            yield path, what


def _given(table: msgspec.Struct, keys: Sequence[str]) -> list[Any]:
    return [key for key in keys if getattr(table, key) is not None]
