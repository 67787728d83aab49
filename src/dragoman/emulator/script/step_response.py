"""Build the response of a step: a reply in Google's format, exact chunks, or raw HTTP; its timing and its faults."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.director import ApiRequest, Chunk, Fault
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
from dragoman.emulator.script.model import (
    CutMode,
    FaultReference,
    RawResponse,
    ReplyItem,
    ScriptStep,
    StreamError,
    StreamItem,
)
from dragoman.errors import ConfigError


def fault_problem(name: str, argument: Any, *, own_chunks: bool) -> str:
    """Return why a step cannot have this fault, or "".

    `own_chunks` is true for a step that defines its own chunks or HTTP response.
    """
    try:
        fault = make_fault(name, argument)
    except ConfigError as error:
        return error.message
    if own_chunks and fault.change_chunks is not None:
        return f"{name} changes what the model says: it goes with reply, or with no answer at all"
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
