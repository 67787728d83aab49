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

from dragoman.emulator.script.model import (
    BodyItem,
    Conditions,
    ExactText,
    RawResponse,
    ReplyItem,
    Script,
    ScriptStep,
    StreamItem,
)
from dragoman.emulator.script.troubles import fault_problem

ProblemPath = tuple[str | int, ...]
FoundProblems = Iterator[tuple[ProblemPath, str]]

_ANSWER_KEYS = ("reply", "chunks", "http")
_REPLY_KEYS = ("thought", "text", "call")
_STREAM_KEYS = ("parts", "json", "error", "raw", "wait", "cut")
_BODY_ITEM_KEYS = ("text", "base64", "wait", "cut")
_BODY_KEYS = ("body", "json", "pieces")
_TEXT_KEYS = ("says", "results", "system")
_REPLY_ONLY_KEYS = ("finish", "usage")
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_HEADER_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\u0100-\U0010ffff]*")
#: The listener writes these headers itself.
_OWN_HEADERS = frozenset("content-length transfer-encoding connection".split())


def check_script(script: Script) -> FoundProblems:
    """Yield each problem with its path."""
    for index, step in enumerate(script.steps):
        yield from _prefixed(("steps", index), _check_step(step))


def _prefixed(prefix: ProblemPath, found: FoundProblems) -> FoundProblems:
    for path, what in found:
        yield (*prefix, *path), what


def _check_step(step: ScriptStep) -> FoundProblems:
    given = _given_keys(step, _ANSWER_KEYS)
    if len(given) > 1:
        yield (given[1],), f"a step has one answer, and this one has {' and '.join(given)}"
    for key in _REPLY_ONLY_KEYS:
        if getattr(step, key) is not None and step.reply is None:
            yield (key,), f"{key} goes with reply"
    for key in ("when", "expect"):
        when = getattr(step, key)
        if when is not None:
            yield from _prefixed((key,), _check_when(when))
    if isinstance(step.reply, list):
        yield from _prefixed(("reply",), _check_reply(step.reply))
    for index, bit in enumerate(step.chunks or ()):
        yield from _prefixed(("chunks", index), _check_stream_item(bit))
    if step.http is not None:
        yield from _prefixed(("http",), _check_http(step.http))
    yield from _check_faults(step)


def _check_when(when: Conditions) -> FoundProblems:
    for key in _TEXT_KEYS:
        text = getattr(when, key)
        if isinstance(text, str):
            yield from _check_pattern((key,), text)
        elif isinstance(text, ExactText) and not _given_keys(text, ("is_", "starts", "sha256")):
            yield (key,), "say is, starts or sha256"
    for name, pattern in (when.header or {}).items():
        yield from _check_pattern(("header", name), pattern)
    for index, inner in enumerate(when.any_ or ()):
        yield from _prefixed(("any", index), _check_when(inner))
    if when.any_ == []:
        yield ("any",), "of an empty list nothing can hold"
    if when.not_ is not None:
        yield from _prefixed(("not",), _check_when(when.not_))


def _check_pattern(path: ProblemPath, pattern: str) -> FoundProblems:
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        yield path, f"this is no regular expression: {error} (for an exact text write {{is: …}})"


def _check_reply(reply: Sequence[ReplyItem]) -> FoundProblems:
    highest = 0
    for index, said in enumerate(reply):
        given = _given_keys(said, _REPLY_KEYS)
        if len(given) != 1:
            yield (index,), f"say one of {', '.join(_REPLY_KEYS)}, not {len(given)}"
            continue
        rank = _REPLY_KEYS.index(given[0])
        if rank < highest:
            yield (
                (index,),
                f"{given[0]} comes before {_REPLY_KEYS[highest]} in Gemini's answers; chunks can have any order",
            )
        highest = max(rank, highest)
        if said.call is not None and not said.call.name:
            yield (index, "call", "name"), "a function has a name"


def _check_stream_item(bit: StreamItem) -> FoundProblems:
    given = _given_keys(bit, _STREAM_KEYS)
    if len(given) != 1:
        yield (), f"say one of {', '.join(_STREAM_KEYS)}, not {len(given)}"
    for key in _REPLY_ONLY_KEYS:
        if getattr(bit, key) is not None and bit.parts is None:
            yield (key,), f"{key} goes with parts"


def _check_http(http: RawResponse) -> FoundProblems:
    given = _given_keys(http, _BODY_KEYS)
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
        if isinstance(piece, BodyItem):
            yield from _prefixed(("pieces", index), _check_body_item(piece))


def _check_body_item(piece: BodyItem) -> FoundProblems:
    given = _given_keys(piece, _BODY_ITEM_KEYS)
    if len(given) != 1:
        yield (), f"say one of {', '.join(_BODY_ITEM_KEYS)}, not {len(given)}"
    try:
        base64.b64decode(piece.base64 or "", validate=True)
    except (binascii.Error, ValueError):
        yield ("base64",), "this is not base64"


def _check_faults(step: ScriptStep) -> FoundProblems:
    many = isinstance(step.fault, list)
    for index, said in enumerate(step.fault if isinstance(step.fault, list) else [step.fault]):
        if said is None:
            continue
        path: ProblemPath = ("fault", index) if many else ("fault",)
        if isinstance(said, Mapping) and len(said) != 1:
            yield path, "say one fault per mapping: a list can hold several"
            continue
        name, argument = (said, None) if isinstance(said, str) else next(iter(said.items()))
        what = fault_problem(name, argument, own_chunks=step.chunks is not None or step.http is not None)
        if what:
            yield path, what


def _given_keys(table: msgspec.Struct, keys: Sequence[str]) -> list[Any]:
    return [key for key in keys if getattr(table, key) is not None]
