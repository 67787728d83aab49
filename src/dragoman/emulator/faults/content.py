"""Faults of the model: chunks with unusual finish reasons, or without one.

See https://ai.google.dev/api/generate-content#FinishReason.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.emulator.director import ApiRequest, Chunk, Fault
from dragoman.emulator.errors import ApiError
from dragoman.emulator.faults.errors import error_response
from dragoman.emulator.faults.kind import FaultKind, chunk_fault
from dragoman.emulator.http_messages import HttpResponse, json_response

_GIANT_BYTES = 4_000_000
_PRODUCED = ("candidatesTokenCount", "candidatesTokensDetails", "thoughtsTokenCount")


class _Finish(msgspec.Struct, frozen=True):
    """An answer with this finish reason.

    `partial` keeps the first half of the text of a stream. `voids` removes that text from a unary response,
    as Google does with blocked content.
    """

    reason: str
    about: str
    partial: bool = False
    voids: bool = False
    message: str = ""

    @property
    def name(self) -> str:
        return f"finish_{self.reason.lower().removeprefix('finish_reason_')}"


def _blocked(reason: str, about: str) -> _Finish:
    return _Finish(reason, f"blocked, {about}", partial=True, voids=True)


#: All finish reasons but STOP and the two about calls, which have faults of their own.
FINISHES = (
    _Finish("MAX_TOKENS", "the output cap is reached", partial=True),
    _blocked("SAFETY", "safety"),
    _blocked("RECITATION", "it repeats something protected"),
    _blocked("LANGUAGE", "a language that is not supported"),
    _blocked("BLOCKLIST", "a forbidden word"),
    _blocked("PROHIBITED_CONTENT", "prohibited content"),
    _blocked("SPII", "personal data"),
    _blocked("IMAGE_SAFETY", "safety of an image"),
    _blocked("IMAGE_PROHIBITED_CONTENT", "prohibited content of an image"),
    _blocked("IMAGE_RECITATION", "an image repeats something protected"),
    _blocked("ESCALATION", "handed to somebody else"),
    _blocked("MODEL_ARMOR", "by Model Armor, on Vertex"),
    _Finish("MALFORMED_RESPONSE", "an answer the service cannot read", message="Malformed response."),
    _Finish("TOO_MANY_TOOL_CALLS", "the model called tools without end", message="Too many tool calls."),
    _Finish(
        "MISSING_THOUGHT_SIGNATURE",
        "a call came back without its signature",
        message="Missing thought signature.",
    ),
    _Finish("CONTINUATION", "the hop limit of Gemini 4, but no token to go on with", partial=True),
    _Finish("NO_IMAGE", "no image where one was due"),
    _Finish("IMAGE_OTHER", "no image, for some other reason"),
    _Finish("OTHER", "some other reason"),
    _Finish("FINISH_REASON_UNSPECIFIED", "no reason at all"),
)
_MALFORMED = _Finish(
    "MALFORMED_FUNCTION_CALL", "", message="Malformed function call: print(default_api.get_weather(city="
)
_UNEXPECTED = _Finish("UNEXPECTED_TOOL_CALL", "", message="Unexpected tool call.")
_EMPTY = _Finish("STOP", "")


def _finish_fault(finish: _Finish, name: str = "", about: str = "") -> FaultKind:
    def end(chunks: list[Chunk]) -> list[Chunk]:
        kept = _first_half(chunks) if finish.partial else []
        candidate = {"content": {}, "finishReason": finish.reason, "index": 0}
        if finish.message:
            candidate["finishMessage"] = finish.message
        last = _last(chunks)
        usage = last["usageMetadata"] if kept else _without_output_counts(last["usageMetadata"])
        return [*kept, {**last, "candidates": [candidate], "usageMetadata": usage}]

    return chunk_fault(
        name or finish.name,
        about or f"finishReason {finish.reason}: {finish.about}",
        end,
        change_response=_clear_unary_content if finish.voids else None,
    )


def _first_half(chunks: list[Chunk]) -> list[Chunk]:
    """Return the first half of the chunks with text, at least one if there is any."""
    texts = [chunk for chunk in chunks if any(part.get("text") for part in _parts(chunk))]
    texts = [chunk for chunk in texts if not any("functionCall" in part for part in _parts(chunk))]
    return [_without_finish(chunk) for chunk in texts[: (len(texts) + 1) // 2]]


def _clear_unary_content(answer: HttpResponse, asked: ApiRequest) -> HttpResponse:
    if asked.framing != "whole" or asked.route.method == "countTokens" or answer.status != 200:
        return answer
    body = msgspec.json.decode(answer.body)
    body["candidates"] = [{**candidate, "content": {}} for candidate in body.get("candidates", ())]
    body["usageMetadata"] = _without_output_counts(body.get("usageMetadata", {}))
    return msgspec.structs.replace(answer, actions=json_response(body).actions)


def _without_output_counts(usage: dict[str, Any]) -> dict[str, Any]:
    left = {name: value for name, value in usage.items() if name not in _PRODUCED}
    return {**left, "totalTokenCount": left["promptTokenCount"]} if "promptTokenCount" in left else left


def _no_finish(chunks: list[Chunk]) -> list[Chunk]:
    return [*map(_without_finish, chunks)]


def _without_finish(chunk: Chunk) -> Chunk:
    if "candidates" not in chunk:
        return chunk
    unfinished = [
        {name: value for name, value in candidate.items() if name not in ("finishReason", "finishMessage")}
        for candidate in chunk["candidates"]
    ]
    return {**chunk, "candidates": unfinished}


def _stream_error(chunks: list[Chunk]) -> list[Chunk]:
    first = next((index for index, chunk in enumerate(chunks) if _has_output(chunk)), 0)
    return [*map(_without_finish, chunks[: first + 1]), ApiError(code=503).body()]


def _replace_unary_by_error(answer: HttpResponse, asked: ApiRequest) -> HttpResponse:
    """Replace a unary response by the error, because it has no middle."""
    if asked.framing != "whole" or asked.route.method == "countTokens":
        return answer
    return error_response(ApiError(code=503), answer, asked)


def _prompt_block(chunks: list[Chunk]) -> list[Chunk]:
    last = {name: value for name, value in _last(chunks).items() if name != "candidates"}
    feedback = {"blockReason": "PROHIBITED_CONTENT"}
    if "createTime" in last:  # Vertex
        feedback["blockReasonMessage"] = "The prompt is blocked due to prohibited contents."
    usage = _without_output_counts(last["usageMetadata"])
    return [{"promptFeedback": feedback, **last, "usageMetadata": usage}]


def _giant_chunk(argument: float) -> Fault:
    def prepend(chunks: list[Chunk]) -> list[Chunk]:
        content = {"parts": [{"text": "x" * int(argument)}], "role": "model"}
        first = chunks[0] if chunks else {}
        return [{**first, "candidates": [{"content": content, "index": 0}]}, *chunks]

    return Fault(name="giant_chunk", change_chunks=prepend)


def _has_output(chunk: Chunk) -> bool:
    return any(part.get("text") or "functionCall" in part for part in _parts(chunk))


def _parts(chunk: Chunk) -> list[dict[str, Any]]:
    candidates = chunk.get("candidates", ())
    return [part for candidate in candidates for part in candidate.get("content", {}).get("parts", ())]


def _last(chunks: list[Chunk]) -> Chunk:
    """Return the last chunk, with the usage metadata that a script may omit."""
    return {"usageMetadata": {}, **(chunks[-1] if chunks else {})}


CONTENT_FAULTS = (
    chunk_fault("no_finish", "the answer ends without a finishReason", _no_finish),
    chunk_fault(
        "stream_error",
        "an error in the middle of the stream (503 for a whole answer)",
        _stream_error,
        change_response=_replace_unary_by_error,
    ),
    _finish_fault(_MALFORMED, "malformed_call", "finishReason MALFORMED_FUNCTION_CALL, no content"),
    _finish_fault(_UNEXPECTED, "unexpected_call", "finishReason UNEXPECTED_TOOL_CALL, no content"),
    _finish_fault(_EMPTY, "empty_stop", "finishReason STOP, no content"),
    chunk_fault("prompt_block", "the prompt is blocked: promptFeedback and no candidates", _prompt_block),
    *map(_finish_fault, FINISHES),
    FaultKind(
        name="giant_chunk",
        help="one chunk with so much text in front of the answer",
        unit="bytes",
        default=_GIANT_BYTES,
        make=_giant_chunk,
    ),
)
