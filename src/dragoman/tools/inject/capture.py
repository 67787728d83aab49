"""Extract calls from a response, and withhold them from a client that does not know the functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec

from dragoman.dialects.gemini.stream import PartialArgs
from dragoman.dialects.gemini.wire import PartialArg
from dragoman.ids import new_id
from dragoman.tools.inject.context import (
    CapturedCall,
    Json,
    as_objects,
    call_key,
    get_field,
    placeholder,
    with_field,
)

_CALL = "functionCall"
ResponseJson = Json | Sequence[Json]


def captured_calls(
    answer: ResponseJson,
    names: Collection[str] | None = None,
    *,
    question: str = "",
    origin: str = "",
    new_call_id: Callable[[], str] = lambda: f"call_{new_id()}",
) -> tuple[CapturedCall, ...]:
    """Return the calls in a whole or chunked response, in order; only calls of `names`, if given.

    Each call gets a new unique id: Google's ids are not unique across responses, and some models send none.
    """
    found = _Reader().read(answer)
    others = [call for call in found if names is not None and call["name"] not in names]
    beside = tuple(map(call_key, others))
    return tuple(
        CapturedCall(
            id=new_call_id(),
            name=call["name"],
            args=call["args"],
            signature=call["signature"],
            origin=origin,
            sent_id=call["id"],
            index=index,
            question=question,
            beside=beside,
        )
        for index, call in enumerate(found)
        if call not in others
    )


def withhold(answer: ResponseJson, calls: Sequence[CapturedCall], *, waiting: bool = True) -> list[Json]:
    """Return the chunks of the response without the calls.

    If the client has no call of its own in this response and `waiting` is true, a stand-in text at the end says
    which calls are pending.
    """
    if not calls:
        return _chunks(answer)
    names = {call.name for call in calls}
    hidden = False
    chunks: list[Json] = []
    for chunk in _chunks(answer):
        candidates = as_objects(get_field(chunk, "candidates"))
        for index, candidate in enumerate(candidates):
            if not candidate.get("index"):
                candidates[index], hidden = _without(candidate, names, hidden)
        chunks.append(with_field(chunk, "candidates", candidates))
    if waiting and not calls[0].beside:
        chunks[-1] = _with_text(chunks[-1], placeholder(calls))
    return chunks


class _Reader:
    """Collects calls, joining arguments that are streamed in pieces (`partialArgs`)."""

    def __init__(self) -> None:
        self._found: list[dict[str, Any]] = []
        self._partial: PartialArgs | None = None

    def read(self, answer: ResponseJson) -> list[dict[str, Any]]:
        for part in _parts(_chunks(answer)):
            call = get_field(part, _CALL)
            if isinstance(call, dict):
                self._add(call, get_field(part, "thoughtSignature") or "")
        self._finish()
        return self._found

    def _add(self, call: Json, signature: str) -> None:
        if call.get("name"):
            self._finish()
            known = {"id": call.get("id") or "", "name": call["name"], "args": call.get("args") or {}}
            self._found.append({**known, "signature": signature})
        pieces = get_field(call, "partialArgs")
        if self._found and (pieces or get_field(call, "willContinue")):
            self._partial = self._partial or PartialArgs()
            self._partial.feed(msgspec.convert(pieces or [], list[PartialArg]))

    def _finish(self) -> None:
        if self._partial is not None:
            self._found[-1]["args"] = msgspec.json.decode(self._partial.close())
            self._partial = None


def _chunks(answer: ResponseJson) -> list[Json]:
    return [answer] if isinstance(answer, dict) else list(answer)


def _parts(chunks: Iterable[Json]) -> Iterable[Json]:
    for chunk in chunks:
        for candidate in as_objects(get_field(chunk, "candidates")):
            if not candidate.get("index"):
                yield from as_objects(get_field(get_field(candidate, "content") or {}, "parts"))


def _without(candidate: Json, names: set[str], hidden: bool) -> tuple[Json, bool]:
    """Remove calls of `names` from a candidate.

    `hidden`, taken and returned, says whether the last call is one of `names`: pieces of its arguments that follow
    have no name and are removed too.
    """
    content = get_field(candidate, "content")
    if not content:
        return candidate, hidden
    kept: list[Json] = []
    for part in as_objects(get_field(content, "parts")):
        call = get_field(part, _CALL)
        if isinstance(call, dict):
            hidden = call["name"] in names if call.get("name") else hidden
            if hidden:
                continue
        kept.append(part)
    return with_field(
        with_field(candidate, "content", with_field(content, "parts", kept)), "finishMessage", None
    ), hidden


def _with_text(chunk: Json, text: str) -> Json:
    """Append a text part to the first candidate."""
    candidates = as_objects(get_field(chunk, "candidates")) or [{}]
    content = get_field(candidates[0], "content") or {"role": "model"}
    parts = [part for part in as_objects(get_field(content, "parts")) if part != {"text": ""}]
    content = with_field(content, "parts", [*parts, {"text": text}])
    return with_field(chunk, "candidates", [with_field(candidates[0], "content", content), *candidates[1:]])
