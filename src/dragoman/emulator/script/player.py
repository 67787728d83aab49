"""The director that plays scripts: it selects a step for each request, records deviations and builds the response.

A step has a reply in Google's format, exact chunks or raw HTTP, with its timing and its faults.
"""

from __future__ import annotations

import base64
import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import msgspec

from dragoman.emulator.director import ApiRequest, Chunk, Fault, ResponsePlan
from dragoman.emulator.errors import ApiError
from dragoman.emulator.faults import make_fault
from dragoman.emulator.http_messages import (
    JSON_TYPE,
    SSE_TYPE,
    CloseConnection,
    ConnectionAction,
    HttpResponse,
    Wait,
    encode_sse_event,
)
from dragoman.emulator.model import ModelCall, ModelReply
from dragoman.emulator.response import ResponseContext
from dragoman.emulator.response.chunks import make_response_id, merge_chunks, write_chunks
from dragoman.emulator.script.load import LoadedScript
from dragoman.emulator.script.match import RequestView, decode_base64, differences, quote_text
from dragoman.emulator.script.model import (
    Conditions,
    CutMode,
    FaultReference,
    RawResponse,
    ReplyItem,
    Script,
    ScriptStep,
    StreamError,
    StreamItem,
)

_GENERATING = ("generate", "stream")
_MAX_SHOWN = 3
_MAX_FAILURES = 1000  # failures; limits the memory of a long-running emulator
_ANY = Conditions()
_SIGNATURE = re.compile(r'"thought_?[sS]ignature"\s*:\s*("(?:[^"\\]|\\.)*")')


class _StepState:
    """A step and the number of times that it was played."""

    def __init__(self, step: ScriptStep, number: int, line: int) -> None:
        self.step = step
        self.used = 0
        name = f" {step.name!r}" if step.name else ""
        self.label = f"step {number}{name}" + (f" (line {line})" if line else "")

    @property
    def is_available(self) -> bool:
        return self.step.times == "always" or self.used < self.step.times

    @property
    def unused_message(self) -> str:
        """The message for a step that was played less often than required, or ""."""
        wanted = 1 if self.step.times == "always" else self.step.times
        if self.step.optional or self.used >= wanted:
            return ""
        return f"{self.label} was " + (f"used {self.used} of {wanted} times" if self.used else "never used")

    def differences(self, view: RequestView) -> list[str]:
        when = self.step.when or _ANY
        if when.method is None and view.method not in _GENERATING:
            return [f"method: expected {' or '.join(_GENERATING)}, got {view.method}"]
        return differences(when, view)


class ScriptPlayer:
    """A director that plays scripts. It is thread-safe, and steps can be added at any time."""

    def __init__(self, *loaded: LoadedScript) -> None:
        self._lock = threading.Lock()
        self._entries: list[_StepState] = []
        self._signatures: set[bytes] = set()
        self._failures: list[str] = []
        self._refusals: deque[str] = deque(maxlen=_MAX_SHOWN)
        self._number = 0
        self.otherwise: Literal["model", "refuse"] = "model"
        self.validate = True
        for one in loaded:
            self.add(one)

    def add(self, loaded: LoadedScript) -> None:
        """Add a script. Its settings replace those of earlier scripts."""
        with self._lock:
            for step, line in zip(loaded.script.steps, loaded.lines, strict=True):
                self._entries.append(_StepState(step, len(self._entries) + 1, line))
            self._signatures |= set(signatures_of(loaded.script))
            self.otherwise = loaded.script.otherwise
            self.validate = loaded.script.validate

    def add_step(self, step: ScriptStep) -> None:
        with self._lock:
            self._entries.append(_StepState(step, len(self._entries) + 1, 0))
            self._signatures |= set(signatures_of(Script(steps=[step])))

    def plan_response(self, api_request: ApiRequest) -> ResponsePlan:
        with self._lock:
            if api_request.error is not None and self.validate:
                return ResponsePlan(on_rejected=self._refusals.append)
            self._number += 1
            view = RequestView(api_request, self._number)
            entry = next(
                (one for one in self._entries if one.is_available and not one.differences(view)), None
            )
            if entry is not None:
                entry.used += 1
                self._check_expectations(entry, view)
            plan = self._unscripted(view) if entry is None else self._plan_step(entry.step, api_request)
            return msgspec.structs.replace(plan, on_rejected=partial(self._undo, entry))

    def problems(self) -> list[str]:
        """Return how the requests deviated from the scripts so far."""
        with self._lock:
            unused = [entry.unused_message for entry in self._entries if entry.unused_message]
            refusals = [f"a request was refused: {message}" for message in self._refusals] if unused else []
            return [*self._failures, *unused, *refusals]

    def _undo(self, entry: _StepState | None, message: str) -> None:
        """Undo the selection of a step, because validation rejected the request."""
        with self._lock:
            self._refusals.append(message)
            self._number -= 1
            if entry is not None:
                entry.used -= 1

    def _plan_step(self, step: ScriptStep, api_request: ApiRequest) -> ResponsePlan:
        plan = ResponsePlan(
            pace=make_pacer(step),
            faults=faults_of(step),
            validate=self.validate,
            signatures=frozenset(self._signatures),
        )
        if step.http is not None:
            return msgspec.structs.replace(plan, response=compose_http(step.http))
        if step.chunks is not None:
            return msgspec.structs.replace(plan, response=compose_chunks(step.chunks, api_request))
        if step.reply is not None:
            return msgspec.structs.replace(plan, chunks=compose_reply(step, api_request.request))
        return plan

    def _check_expectations(self, entry: _StepState, view: RequestView) -> None:
        found = differences(entry.step.expect, view) if entry.step.expect is not None else []
        if found:
            raise self._failure(f"{entry.label}: {'; '.join(found)}")

    def _unscripted(self, view: RequestView) -> ResponsePlan:
        if self.otherwise == "model":
            return ResponsePlan(validate=self.validate, signatures=frozenset(self._signatures))
        tried = [
            f"{one.label}: {'; '.join(one.differences(view))}" for one in self._entries if one.is_available
        ]
        why = "\n".join(f"  {line}" for line in tried[:_MAX_SHOWN])
        left = f"what is left:\n{why}" if tried else f"all {len(self._entries)} steps are used up"
        said = f"saying {quote_text(view.user_text)}" if view.user_text else "without words"
        raise self._failure(
            f"no step fits request {self._number}, a {view.method} of {view.model} {said}; {left}"
        )

    def _failure(self, what: str) -> ApiError:
        message = f"emulator script: {what}"
        if len(self._failures) < _MAX_FAILURES:
            self._failures.append(message)
        return ApiError(message, status="FAILED_PRECONDITION")


def signatures_of(script: Script) -> Iterator[bytes]:
    """Yield the thought signatures in a script. Clients that receive them send them back."""
    for step in script.steps:
        for text in _texts(step):
            for found in _SIGNATURE.finditer(text):
                decoded = decode_base64(_unescape(found[1]))
                if decoded:
                    yield decoded


def _texts(step: ScriptStep) -> Iterator[str]:
    if step.http is not None:
        yield compose_http(step.http).body.decode("utf-8", "replace")
    for bit in step.chunks or ():
        yield bit.raw or msgspec.json.encode(bit).decode()


def _unescape(literal: str) -> str:
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return ""


def faults_of(step: ScriptStep) -> tuple[Fault, ...]:
    return tuple(make_fault(name, argument) for name, argument in _names_and_arguments(step.fault))


def _names_and_arguments(entry: FaultReference | list[FaultReference] | None) -> Iterator[tuple[str, Any]]:
    if isinstance(entry, list):
        for item in entry:
            yield from _names_and_arguments(item)
    elif isinstance(entry, str):
        yield entry, None
    elif entry is not None:
        yield from entry.items()


_COUNTED = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount")


def compose_reply(step: ScriptStep, request: Mapping[str, Any]) -> Callable[[ResponseContext], list[Chunk]]:
    """Return a function that builds the chunks of a `reply` step.

    The model and the signer are known only when the step is played.
    """
    said = [ReplyItem(text=step.reply)] if isinstance(step.reply, str) else step.reply or []
    reply = ModelReply(
        thought="".join(item.thought or "" for item in said),
        text="".join(item.text or "" for item in said),
        calls=tuple(ModelCall(item.call.name, item.call.args) for item in said if item.call is not None),
    )

    def write(context: ResponseContext) -> list[Chunk]:
        chunks = [chunk for chunk in write_chunks(request, reply, context) if not _is_empty_thought(chunk)]
        return [*chunks[:-1], _finish_last_chunk(chunks[-1], step)]

    return write


def _is_empty_thought(chunk: Chunk) -> bool:
    parts = chunk["candidates"][0]["content"].get("parts", ())
    return bool(parts) and all(part.get("thought") and not part["text"] for part in parts)


def _finish_last_chunk(chunk: Chunk, step: ScriptStep) -> Chunk:
    """Apply the step's own finish reason and usage to the last chunk."""
    candidate = dict(chunk["candidates"][0])
    if step.finish is not None:
        candidate["finishReason"] = step.finish
        if step.finish != "STOP":
            candidate.pop("finishMessage", None)
    usage = {**chunk["usageMetadata"], **(step.usage or {})}
    if step.usage is not None and "totalTokenCount" not in step.usage:
        usage["totalTokenCount"] = sum(
            count for name in _COUNTED if isinstance(count := usage.get(name), int)
        )
    return {**chunk, "candidates": [candidate], "usageMetadata": usage}


def compose_chunks(bits: Sequence[StreamItem], api_request: ApiRequest) -> HttpResponse:
    """Return the answer of a `chunks` step, in the framing of the request."""
    if api_request.framing == "whole":
        return _merge(bits, api_request)
    actions = tuple(_stream_actions(bits, api_request))
    return HttpResponse(
        status=200,
        content_type=SSE_TYPE if api_request.framing == "sse" else JSON_TYPE,
        actions=actions,
        streamed=True,
    )


def _stream_actions(bits: Sequence[StreamItem], api_request: ApiRequest) -> Iterator[ConnectionAction]:
    opened = False
    for bit in bits:
        chunk = _chunk(bit, api_request)
        if chunk is None:
            yield from _other_actions(bit)
        elif api_request.framing == "sse":
            yield encode_sse_event(chunk)
        else:
            yield (b"\n,\r\n" if opened else b"[") + msgspec.json.encode(chunk)
            opened = True
    if opened:
        yield b"]"


def _merge(bits: Sequence[StreamItem], api_request: ApiRequest) -> HttpResponse:
    """Return the unary response of a `chunks` step.

    An error is the whole response. The texts of `raw` are the body if there are no chunks.
    """
    failure = next((bit.error for bit in bits if bit.error is not None), None)
    if failure is not None:
        return HttpResponse(status=failure.code, actions=(msgspec.json.encode(_error_chunk(failure)),))
    chunks = [chunk for bit in bits if (chunk := _chunk(bit, api_request)) is not None]
    with_content = [chunk for chunk in chunks if _has_content(chunk)]
    other_acts = [action for bit in bits for action in _other_actions(bit)]
    raw = b"".join(action for action in other_acts if isinstance(action, bytes))
    body = msgspec.json.encode(merge_chunks(with_content) if with_content else chunks[-1]) if chunks else raw
    waits = tuple(action for action in other_acts if isinstance(action, Wait))
    cut = next((action for action in other_acts if isinstance(action, CloseConnection)), None)
    actions: tuple[ConnectionAction, ...] = (body,) if cut is None else (body[: len(body) // 2], cut)
    return HttpResponse(status=200, actions_before_head=waits, actions=actions, streamed=cut is not None)


def _has_content(chunk: Chunk) -> bool:
    candidates = chunk.get("candidates")
    return (
        isinstance(candidates, list)
        and bool(candidates)
        and isinstance(candidates[0], dict)
        and (isinstance(candidates[0].get("content"), dict))
    )


def _chunk(bit: StreamItem, api_request: ApiRequest) -> Chunk | None:
    """Return the JSON that the bit sends, or None if it sends none."""
    if bit.json is not None:
        return bit.json
    if bit.error is not None:
        return _error_chunk(bit.error)
    if bit.parts is None:
        return None
    candidate: Chunk = {"content": {"parts": bit.parts, "role": "model"}, "index": 0}
    if bit.finish is not None:
        candidate["finishReason"] = bit.finish
    chunk: Chunk = {"candidates": [candidate]}
    if bit.usage is not None:
        chunk["usageMetadata"] = bit.usage
    return {
        **chunk,
        "modelVersion": api_request.route.model,
        "responseId": make_response_id(api_request.raw_body),
    }


def _other_actions(bit: StreamItem) -> Iterator[ConnectionAction]:
    if bit.raw is not None:
        yield bit.raw.encode()
    if bit.wait is not None:
        yield Wait(bit.wait)
    yield from _cut(bit.cut)


def _cut(cut: CutMode | None) -> Iterator[ConnectionAction]:
    if cut:
        yield CloseConnection(reset=cut == "reset")


def _error_chunk(failure: StreamError) -> Chunk:
    return ApiError(failure.message or "", code=failure.code, status=failure.status or "").body()


def compose_http(http: RawResponse) -> HttpResponse:
    """Return the answer of an `http` step."""
    headers = {name.lower(): value for name, value in http.headers.items()}
    content_type = headers.pop("content-type", JSON_TYPE)
    if http.pieces is not None:
        actions = tuple(action for piece in http.pieces for action in _body_item_actions(piece))
    elif http.json is not None:
        actions = (msgspec.json.encode(http.json),)
    else:
        actions = ((http.body or "").encode(),)
    return HttpResponse(
        status=http.status,
        content_type=content_type,
        headers=tuple(headers.items()),
        actions=actions,
        streamed=http.pieces is not None,
    )


def _body_item_actions(piece: Any) -> Iterator[ConnectionAction]:
    if isinstance(piece, str):
        yield piece.encode()
        return
    if piece.text is not None:
        yield piece.text.encode()
    if piece.base64 is not None:
        yield base64.b64decode(piece.base64)
    if piece.wait is not None:
        yield Wait(piece.wait)
    yield from _cut(piece.cut)


def make_pacer(step: ScriptStep) -> Callable[[HttpResponse], HttpResponse] | None:
    """Return a function that delays the framed answer and splits its writes, or None if nothing is to do."""
    if step.split is None and step.delay is None and step.pause is None:
        return None

    def slow(response: HttpResponse) -> HttpResponse:
        actions = _split(response.actions, step.split) if step.split else response.actions
        actions = _pause(actions, step.pause) if step.pause else actions
        before = (
            (Wait(step.delay), *response.actions_before_head) if step.delay else response.actions_before_head
        )
        return msgspec.structs.replace(response, actions=actions, actions_before_head=before)

    return slow


def _split(actions: Sequence[ConnectionAction], size: int) -> tuple[ConnectionAction, ...]:
    """Split into writes of this size, across chunk boundaries. Waits and cuts stay in place."""
    written: list[ConnectionAction] = []
    rest = b""
    for action in (*actions, None):
        if isinstance(action, bytes):
            rest += action
            continue
        written += [rest[start : start + size] for start in range(0, len(rest), size)]
        rest = b""
        if action is not None:
            written.append(action)
    return tuple(written)


def _pause(actions: Sequence[ConnectionAction], seconds: float) -> tuple[ConnectionAction, ...]:
    paused: list[ConnectionAction] = []
    for action in actions:
        if paused and isinstance(action, bytes) and isinstance(paused[-1], bytes):
            paused.append(Wait(seconds))
        paused.append(action)
    return tuple(paused)
