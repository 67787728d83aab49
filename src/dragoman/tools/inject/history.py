"""Insert withheld calls and their results into a client's history, at the turn that represents them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from itertools import groupby
from typing import Any

import msgspec

from dragoman.dialects.gemini.contents import SENTINEL
from dragoman.tools.inject.context import (
    CallResult,
    CallStep,
    CapturedCall,
    Json,
    ToolContext,
    as_objects,
    call_key,
    get_field,
    placeholder_ids,
    remove_placeholder,
    with_field,
)

_CALL, _RESPONSE, _SIGNATURE = "functionCall", "functionResponse", "thoughtSignature"
_NO_RESULT = {"error": "no result came for this call"}


def with_results(body: Json, context: ToolContext) -> Json:
    """Return the request with the steps of the context in its history; the same object if nothing changes.

    A step belongs to the model turn that contains its stand-in, one of its calls, or a call of the client from the
    same step. If the request asks the same question again, the step is appended after it. If neither applies, the
    last step belongs to the model's last turn.
    """
    known = {result.id for result in context.pending_results}
    last = CallStep(context.last_calls, context.pending_results)
    pending = any(call.id in known for call in last.calls)
    steps = [step for step in (*context.earlier, *([last] if pending else [])) if step.calls]
    places = _HistoryIndex(body)
    if not steps or not places.turns:
        return body
    marked: dict[int, CallStep] = {}
    appended: list[CallStep] = []
    for step in steps:
        place = places.find(step)
        if place is None and step is last and not places.repeats_question(step):
            place = places.last_of_model()
        if place:  # not None and not 0: calls must follow a user turn
            marked.setdefault(place, step)
        elif place is None and places.ends_with_user and (step is last or places.repeats_question(step)):
            appended.append(step)
    if not marked and not appended:
        return body
    return with_field(body, "contents", [*_rewrite_turns(places.turns, marked), *_as_turns(appended)])


def continues_from(body: Json, calls: Sequence[CapturedCall]) -> bool:
    """Return whether a request continues from these calls: its history shows them, or it repeats the question."""
    places, step = _HistoryIndex(body), CallStep(tuple(calls))
    return places.find(step) is not None or places.repeats_question(step)


def question_of(body: Json) -> str:
    """Return a hash of the request's last turn, which identifies the question."""
    contents = as_objects(get_field(body, "contents"))
    said = msgspec.json.encode(contents[-1:], order="deterministic")
    return blake2b(said, digest_size=16).hexdigest()


class _HistoryIndex:
    """An index of a history: its turns, and the model turn of each call key and stand-in.

    Clients that store a stream chunk by chunk send several contents for one model turn, so these are grouped.
    """

    def __init__(self, body: Json) -> None:
        contents = as_objects(get_field(body, "contents"))
        self._question = question_of(body)
        self.turns: list[list[Json]] = []
        for by_model, run in groupby(contents, key=_is_model):
            said = list(run)
            self.turns += [said] if by_model else [[content] for content in said]
        self._shown = {trace: index for index, turn in enumerate(self.turns) for trace in _call_keys(turn)}

    def find(self, step: CallStep) -> int | None:
        first = step.calls[0]
        traces = (first.id, *map(_key, step.calls), *first.beside)
        return next((self._shown[trace] for trace in traces if trace in self._shown), None)

    def repeats_question(self, step: CallStep) -> bool:
        return step.calls[0].question == self._question

    def last_of_model(self) -> int | None:
        return next((i for i in reversed(range(len(self.turns))) if _is_model(self.turns[i][0])), None)

    @property
    def ends_with_user(self) -> bool:
        return not _is_model(self.turns[-1][0])


def _call_keys(turn: list[Json]) -> Iterable[str]:
    for part in _parts(turn) if _is_model(turn[0]) else ():
        call = get_field(part, _CALL)
        if isinstance(call, dict):
            yield call_key(call)
        text = part.get("text")
        if isinstance(text, str):
            yield from placeholder_ids(text)


def _parts(turn: list[Json]) -> list[Json]:
    return [part for content in turn for part in as_objects(get_field(content, "parts"))]


def _is_model(content: Json) -> bool:
    return content.get("role") == "model"


def _rewrite_turns(turns: list[list[Json]], marked: dict[int, CallStep]) -> list[Json]:
    out: list[Json] = []
    step: CallStep | None = None
    order: list[CapturedCall | None] = []
    for index, turn in enumerate(turns):
        if step is not None:  # the results of the previous turn's calls come here
            if any(get_field(part, _RESPONSE) for part in _parts(turn)):
                turn = [_with_responses(turn[0], step, order)]
            else:
                out.append(_responses(step))
        step = marked.get(index)
        if step is not None:
            turn, order = _with_calls(turn, step)
        out += turn
    return [*out, _responses(step)] if step is not None else out


def _as_turns(steps: list[CallStep]) -> list[Json]:
    return [
        content
        for step in steps
        for content in (
            {"role": "model", "parts": [_call_part(call) for call in step.calls]},
            _responses(step),
        )
    ]


def _with_calls(turn: list[Json], step: CallStep) -> tuple[list[Json], list[CapturedCall | None]]:
    """Return the model's turn with the calls inserted, and the order of all its calls; None is a client's call."""
    parts = _parts(turn)
    theirs = [part for part in parts if get_field(part, _CALL)]
    shown = [call_key(get_field(part, _CALL)) for part in theirs]
    ours = {_key(call): call for call in step.calls}
    if ours.keys() & set(shown):  # the calls were not withheld from this client
        return turn, [ours.get(key) for key in shown]
    order: list[CapturedCall | None] = [None] * len(theirs)
    for call in step.calls:
        order.insert(call.index, call)
    waiting = iter(theirs)
    calls = [next(waiting) if call is None else _call_part(call) for call in order]
    return [with_field(turn[0], "parts", [*_other_parts(parts, step), *_with_single_sentinel(calls)])], order


def _other_parts(parts: list[Json], step: CallStep) -> list[Json]:
    """Return the other parts of the turn, without the stand-in of this step.

    A turn without calls and without the stand-in was matched only by position; its parts are dropped.
    """
    others = [part for part in parts if not get_field(part, _CALL)]
    named = [part for part in others if step.calls[0].id in placeholder_ids(str(part.get("text") or ""))]
    if not named and len(others) == len(parts):
        return []
    said: list[Json] = []
    for part in others:
        if part in named:
            part = {**part, "text": remove_placeholder(part["text"], step.calls[0].id)}
            if not part["text"] and not get_field(part, _SIGNATURE):
                continue
        said.append(part)
    return said


def _with_single_sentinel(calls: list[Json]) -> list[Json]:
    """Keep Google's sentinel only on the first call, the only one for which a signature is required."""
    bare = [
        with_field(part, _SIGNATURE, None) if get_field(part, _SIGNATURE) == SENTINEL else part
        for part in calls
    ]
    if bare == calls or get_field(bare[0], _SIGNATURE):
        return bare
    return [with_field(bare[0], _SIGNATURE, SENTINEL), *bare[1:]]


def _with_responses(content: Json, step: CallStep, order: list[CapturedCall | None]) -> Json:
    """Return the content with the client's results and ours, in the order of the calls."""
    parts = as_objects(get_field(content, "parts"))
    theirs = [part for part in parts if get_field(part, _RESPONSE)]
    if len(theirs) >= len(order):
        return content
    brought = {get_field(get_field(part, _RESPONSE), "id") for part in theirs} - {None}
    waiting = iter(theirs)
    results = {result.id: result for result in step.results}
    responses = [
        next(waiting, None)
        if call is None or call.sent_id in brought
        else _response_part(call, results.get(call.id))
        for call in order
    ]
    told = [part for part in (*responses, *waiting) if part is not None]
    return with_field(content, "parts", [*told, *(part for part in parts if not get_field(part, _RESPONSE))])


def _responses(step: CallStep) -> Json:
    """Return the results as a separate turn: Google allows no text beside results, and user text starts a turn."""
    results = {result.id: result for result in step.results}
    return {"role": "user", "parts": [_response_part(call, results.get(call.id)) for call in step.calls]}


def _call_part(call: CapturedCall) -> Json:
    wire = {"name": call.name, "args": call.args, **_identity(call)}
    return {_CALL: wire, **({_SIGNATURE: call.signature} if call.signature else {})}


def _response_part(call: CapturedCall, result: CallResult | None) -> Json:
    """Return the part for a result; a missing result becomes an error, because Google rejects unanswered calls."""
    response: Any = _NO_RESULT if result is None else result.response
    files = list(result.parts) if result is not None else []
    if not files and _has_reference(response):
        response = {"output": msgspec.json.encode(response).decode()}
    wire = {"name": call.name, "response": response, **_identity(call)}
    return {_RESPONSE: {**wire, "parts": files} if files else wire}


def _key(call: CapturedCall) -> str:
    return call_key(_call_part(call)[_CALL])


def _identity(call: CapturedCall) -> Json:
    return {"id": call.sent_id} if call.sent_id else {}


def _has_reference(value: Any) -> bool:
    """Return whether a response has a `$ref` key, which Google takes as a reference to a file part."""
    if isinstance(value, dict):
        return "$ref" in value or any(map(_has_reference, value.values()))
    return isinstance(value, list) and any(map(_has_reference, value))
