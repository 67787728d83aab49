"""Encode a reply as response chunks, merge chunks into a unary response, and encode the countTokens response.

A merged response has the joined parts of all chunks, and the last value of everything else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

import msgspec

from dragoman.emulator.model import ModelReply, response_mime_type
from dragoman.emulator.models import EmulatedModel
from dragoman.emulator.response import ResponseContext
from dragoman.emulator.response.limits import apply_limits, read_continuation_position
from dragoman.emulator.response.metadata import write_last_fields, write_url_metadata
from dragoman.emulator.response.parts import (
    ChunkParts,
    apply_partial_arg,
    count_builtin_tokens,
    write_chunk_parts,
)
from dragoman.emulator.routes import Backend
from dragoman.emulator.tokens import CHARS_PER_TOKEN, count_prompt, token_details

Json = dict[str, Any]

#: Validation allows no more; a script can skip validation.
_MAX_CANDIDATES = 8


class CandidateChunks(msgspec.Struct, frozen=True):
    """One candidate of the response, chunk by chunk."""

    index: int
    chunks: list[ChunkParts]
    first_fields: Json  # fields of the first chunk
    middle_fields: Json  # fields of every chunk but the last
    last_fields: Json
    thought_tokens: int


def write_chunks(request: Mapping[str, Any], reply: ModelReply, context: ResponseContext) -> list[Json]:
    """Return the chunks of a stream; each is a complete GenerateContentResponse with new parts."""
    config = request.get("generationConfig", {})
    start = read_continuation_position(request, context)
    wanted = min(max(1, config.get("candidateCount") or 1), _MAX_CANDIDATES)
    candidates = [
        _write_candidate(request, _number_text(reply, index, config), context, index, start)
        for index in range(wanted)
    ]
    usage = _Usage(request, reply, candidates, context, opening=not start)
    length = max(len(candidate.chunks) for candidate in candidates)
    return [
        _envelope(
            _chunk_candidates(candidates, place, context.backend),
            usage.at(place, last=place == length - 1),
            context,
        )
        for place in range(length)
    ]


def write_token_count(request: Mapping[str, Any], model: EmulatedModel, backend: Backend) -> Json:
    """Return the response of countTokens."""
    counts = count_prompt(request, model.image_tokens)
    response: Json = {"totalTokens": sum(counts.values())}
    if backend.is_vertex:
        response["totalBillableCharacters"] = CHARS_PER_TOKEN * counts.get("TEXT", 0)
    if counts:
        response["promptTokensDetails"] = token_details(counts)
    return response


def _number_text(reply: ModelReply, index: int, config: Mapping[str, Any]) -> ModelReply:
    """Number the texts of the candidates, so that they differ, unless the text must have a certain format."""
    if not index or not reply.text or response_mime_type(config) != "text/plain":
        return reply
    return msgspec.structs.replace(reply, text=f"{reply.text} ({index + 1})")


def _write_candidate(
    request: Mapping[str, Any], reply: ModelReply, context: ResponseContext, index: int, start: int
) -> CandidateChunks:
    limited = apply_limits(request, reply, context.model, hop_tokens=context.hop_tokens, start=start)
    batches = list(write_chunk_parts(request, limited, context, opening=not start))
    ending = write_last_fields(request, limited, context)
    opening = write_url_metadata(reply) if not start else {}
    # Recorded on 2.5: every chunk has the metadata, and only the last has content in it.
    between: Json = (
        {"groundingMetadata": {}}
        if "groundingMetadata" in ending and not context.model.is_gemini3_or_later
        else {}
    )
    return CandidateChunks(index, batches, opening, between, ending, limited.thought_tokens)


def _chunk_candidates(candidates: Sequence[CandidateChunks], place: int, backend: Backend) -> list[Json]:
    """Return the candidates of one chunk, without those that are complete."""
    row: list[Json] = []
    for candidate in candidates:
        if place >= len(candidate.chunks):
            continue
        parts = candidate.chunks[place].parts
        entry: Json = {"content": {"parts": parts, "role": "model"} if parts else {}}
        last = place == len(candidate.chunks) - 1
        if not place:
            entry |= candidate.first_fields
        entry |= candidate.last_fields if last else candidate.middle_fields
        if last or candidate.index or not backend.is_vertex:
            entry["index"] = candidate.index
        row.append(entry)
    return row


class _Usage:
    """The usage metadata of each chunk."""

    def __init__(
        self,
        request: Mapping[str, Any],
        reply: ModelReply,
        candidates: Sequence[CandidateChunks],
        context: ResponseContext,
        *,
        opening: bool,
    ) -> None:
        self._prompt = count_prompt(request, context.model.image_tokens)
        self._tool_use = count_builtin_tokens(reply) if opening else 0
        self._candidates = candidates
        self._backend = context.backend

    def at(self, place: int, *, last: bool) -> Json:
        """Return the counters of a chunk. Zero counters are absent; Vertex counts only in the last chunk."""
        if self._backend.is_vertex and not last:
            return {"trafficType": "ON_DEMAND"}
        prompt = sum(self._prompt.values())
        batches = [batch for candidate in self._candidates for batch in candidate.chunks[: place + 1]]
        produced = sum(batch.tokens for batch in batches)
        thoughts = sum(candidate.thought_tokens for candidate in self._candidates)
        usage: Json = {
            "promptTokenCount": prompt,
            "candidatesTokenCount": produced,
            "totalTokenCount": prompt + produced + thoughts + self._tool_use,
            "promptTokensDetails": token_details(self._prompt),
            "thoughtsTokenCount": thoughts,
            "toolUsePromptTokenCount": self._tool_use,
            "toolUsePromptTokensDetails": token_details({"TEXT": self._tool_use} if self._tool_use else {}),
        }
        if self._backend.is_vertex:
            usage["candidatesTokensDetails"] = token_details({"TEXT": produced} if produced else {})
            usage["trafficType"] = "ON_DEMAND"
        else:
            usage["serviceTier"] = "standard"
        return {name: value for name, value in usage.items() if value}


def make_response_id(request: bytes) -> str:
    """Return the id that all chunks of a response share. `request` is the body or its digest."""
    identity = hashlib.blake2b(request, digest_size=16, person=b"response-id").digest()
    return base64.urlsafe_b64encode(identity).decode().rstrip("=")


def add_cached_tokens(chunks: Sequence[Json], cached: Mapping[str, int]) -> list[Json]:
    """Add the number of cached tokens to every chunk that counts the prompt."""
    if not cached:
        return list(chunks)
    share = {"cachedContentTokenCount": sum(cached.values()), "cacheTokensDetails": token_details(cached)}
    return [
        {**chunk, "usageMetadata": {**chunk["usageMetadata"], **share}}
        if "promptTokenCount" in chunk.get("usageMetadata", {})
        else chunk
        for chunk in chunks
    ]


def _envelope(candidates: list[Json], usage: Json, context: ResponseContext) -> Json:
    chunk: Json = {"candidates": candidates, "usageMetadata": usage, "modelVersion": context.model.id}
    if context.backend.is_vertex:
        chunk["createTime"] = context.now
    chunk["responseId"] = make_response_id(context.digest)
    return chunk


JsonObject = dict[str, Any]


def merge_chunks(chunks: Sequence[Mapping[str, Any]]) -> JsonObject:
    """Return the unary response.

    If the last chunk has no candidates (a blocked prompt or an error), it is the whole response.
    """
    last = dict(chunks[-1])
    if "candidates" not in last:
        return last
    by_index: dict[int, list[Mapping[str, Any]]] = {}
    for chunk in chunks:
        for candidate in chunk.get("candidates", ()):
            by_index.setdefault(candidate.get("index", 0), []).append(candidate)
    last["candidates"] = [_merge_candidate(index, pieces) for index, pieces in sorted(by_index.items())]
    return last


def _merge_candidate(index: int, pieces: Sequence[Mapping[str, Any]]) -> JsonObject:
    merged: JsonObject = {}
    for piece in pieces:
        merged |= piece
    parts = [part for piece in pieces for part in (piece.get("content") or {}).get("parts", ())]
    joined = [part for part in _join_parts(parts) if part.get("text") != "" or "thoughtSignature" in part]
    return {**merged, "content": {"parts": joined, "role": "model"} if joined else {}, "index": index}


def _join_parts(parts: Sequence[Mapping[str, Any]]) -> Iterator[JsonObject]:
    """Join adjacent text parts of the same kind, and the pieces of a streamed call."""
    waiting: JsonObject | None = None
    for part in parts:
        grown = _append_part(waiting, part) if waiting is not None else None
        if waiting is not None and grown is None:
            yield _finish_part(waiting)
        waiting = grown if grown is not None else _copy_part(part)
    if waiting is not None:
        yield _finish_part(waiting)


def _copy_part(part: Mapping[str, Any]) -> JsonObject:
    """Copy a part that may grow. Arguments grow in place, so a call is copied deeply."""
    return deepcopy(dict(part)) if "functionCall" in part else dict(part)


def _append_part(before: JsonObject, part: Mapping[str, Any]) -> JsonObject | None:
    """Return the previous part with this one appended, or None if a new part begins."""
    if "text" in part and "text" in before:
        joins = part.get("thought") == before.get("thought") and "thoughtSignature" not in before
        return {**before, **part, "text": before["text"] + part["text"]} if joins else None
    call, opened = part.get("functionCall"), before.get("functionCall") or {}
    if call is None or "name" in call or not opened.get("willContinue"):
        return None
    args = opened.get("args", {})
    for piece in call.get("partialArgs", ()):
        apply_partial_arg(args, piece)
    return {
        **before,
        "functionCall": {**opened, "args": args, "willContinue": call.get("willContinue", False)},
    }


def _finish_part(part: JsonObject) -> JsonObject:
    call = part.get("functionCall")
    if call is None or "willContinue" not in call:
        return part
    whole = {"name": call.get("name"), "args": call.get("args", {}), "id": call.get("id")}
    return {**part, "functionCall": {key: value for key, value in whole.items() if value is not None}}
