"""Encode a neutral response as a `GenerateContentResponse`; the stream encoder uses the same functions."""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from dragoman.dialects.base import Answer
from dragoman.ir import (
    Finished,
    Native,
    Response,
    ServerCall,
    ServerResult,
    Signature,
    Text,
    Thought,
    ToolCall,
    Usage,
)
from dragoman.ir.collect import AnswerPart

#: Native fields of the response itself; all others belong to the candidate.
RESPONSE_FIELDS = frozenset({"promptFeedback", "usageMetadata"})
_json = msgspec.json.Encoder().encode


def encode_response(response: Response, answer: Answer) -> bytes:
    parts = [wire for part in response.parts for wire in encode_part(part)]
    fields = {native.field: msgspec.Raw(native.json) for native in response.native}
    ending = LastChunk(fields, response.usage, response.finished)
    return _json(envelope(parts, answer, response.model, response.response_id, ending))


def encode_count(tokens: int) -> bytes:
    return b'{"totalTokens":%d}' % tokens


class LastChunk(msgspec.Struct, frozen=True):
    """The values that only the last chunk, or a response that is not streamed, has."""

    fields: dict[str, msgspec.Raw]
    usage: Usage
    finished: Finished


def envelope(
    parts: list[Any], answer: Answer, model: str, response_id: str, ending: LastChunk | None = None
) -> dict[str, Any]:
    """Return one response or chunk as a dict; if the prompt was blocked, it has no candidates."""
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"} if parts else {}}
    body: dict[str, Any] = {"candidates": [candidate]}
    if ending is not None:
        candidate["finishReason"] = ending.finished.raw or "STOP"
        if ending.finished.detail:
            candidate["finishMessage"] = ending.finished.detail
        body["usageMetadata"] = _usage(ending.usage, answer)
        for field, value in ending.fields.items():
            (body if field in RESPONSE_FIELDS else candidate)[field] = value
    candidate["index"] = 0
    if "promptFeedback" in body:
        del body["candidates"]
    return {**body, "modelVersion": model or answer.model, "responseId": response_id or answer.id}


def encode_part(part: AnswerPart) -> list[Any]:
    match part:
        case Text():
            return [signed({"text": part.text}, part.signature)] if part.text or part.signature else []
        case Thought():
            return [signed({"text": part.text, "thought": True}, part.signature)]
        case ToolCall():
            return [call_part(part)]
        case Native():
            return [msgspec.Raw(part.json)]
        case ServerCall() | ServerResult():
            return []  # native parts report them
        case _:
            assert_never(part)


def call_part(call: ToolCall) -> dict[str, Any]:
    body = {"id": call.id, "name": call.name, "args": msgspec.Raw(call.args)}
    return signed({"functionCall": body}, call.signature)


def signed(wire: dict[str, Any], signature: Signature | None) -> dict[str, Any]:
    """Add the signature unsealed: a Gemini client sends it back in the same field."""
    return wire if signature is None else {**wire, "thoughtSignature": signature.data}


def _usage(usage: Usage, answer: Answer) -> dict[str, int]:
    """Return `usageMetadata`; like Google, omit counts that are 0."""
    prompt = usage.input_tokens or answer.input_tokens
    counts = {
        "promptTokenCount": prompt,
        "cachedContentTokenCount": usage.cached_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.thought_tokens,
        "thoughtsTokenCount": usage.thought_tokens,
        "totalTokenCount": prompt + usage.output_tokens,
    }
    return {name: count for name, count in counts.items() if count}
