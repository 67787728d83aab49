"""Encode a reply as a list of response chunks, and a token count as the countTokens response."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.answer.ending import write_ending
from dragoman.emulator.answer.grounding import write_pages
from dragoman.emulator.answer.hops import read_position
from dragoman.emulator.answer.limits import apply_limits
from dragoman.emulator.answer.parts import Batch, count_built_in, write_batches
from dragoman.emulator.answer.setting import Setting
from dragoman.emulator.backend import Backend
from dragoman.emulator.model.respond import Reply
from dragoman.emulator.model.wording import wanted_form
from dragoman.emulator.models import Model
from dragoman.emulator.tokens import CHARS_PER_TOKEN, count_prompt, details

Json = dict[str, Any]

#: Validation allows no more; a script can skip validation.
_MOST_CANDIDATES = 8


class Candidate(msgspec.Struct, frozen=True):
    """One candidate of the response, chunk by chunk."""

    index: int
    batches: list[Batch]
    opening: Json  # fields of the first chunk
    between: Json  # fields of every chunk but the last
    ending: Json
    thought_tokens: int


def write_chunks(request: Mapping[str, Any], reply: Reply, setting: Setting) -> list[Json]:
    """Return the chunks of a stream; each is a complete GenerateContentResponse with new parts."""
    config = request.get("generationConfig", {})
    start = read_position(request, setting)
    wanted = min(max(1, config.get("candidateCount") or 1), _MOST_CANDIDATES)
    candidates = [
        _write(request, _vary(reply, index, config), setting, index, start) for index in range(wanted)
    ]
    usage = _Usage(request, reply, candidates, setting, opening=not start)
    length = max(len(candidate.batches) for candidate in candidates)
    return [
        _envelope(
            _row(candidates, place, setting.backend), usage.at(place, last=place == length - 1), setting
        )
        for place in range(length)
    ]


def write_count(request: Mapping[str, Any], model: Model, backend: Backend) -> Json:
    """Return the response of countTokens."""
    counts = count_prompt(request, model.image_tokens)
    answer: Json = {"totalTokens": sum(counts.values())}
    if backend.is_vertex:
        answer["totalBillableCharacters"] = CHARS_PER_TOKEN * counts.get("TEXT", 0)
    if counts:
        answer["promptTokensDetails"] = details(counts)
    return answer


def _vary(reply: Reply, index: int, config: Mapping[str, Any]) -> Reply:
    """Number the texts of the candidates, so that they differ, unless the text must have a certain format."""
    if not index or not reply.text or wanted_form(config) != "text/plain":
        return reply
    return msgspec.structs.replace(reply, text=f"{reply.text} ({index + 1})")


def _write(request: Mapping[str, Any], reply: Reply, setting: Setting, index: int, start: int) -> Candidate:
    limited = apply_limits(request, reply, setting.model, hop_tokens=setting.hop_tokens, start=start)
    batches = list(write_batches(request, limited, setting, opening=not start))
    ending = write_ending(request, limited, setting)
    opening = write_pages(reply) if not start else {}
    # Recorded on 2.5: every chunk has the metadata, and only the last has content in it.
    between: Json = (
        {"groundingMetadata": {}} if "groundingMetadata" in ending and not setting.model.modern else {}
    )
    return Candidate(index, batches, opening, between, ending, limited.thought_tokens)


def _row(candidates: Sequence[Candidate], place: int, backend: Backend) -> list[Json]:
    """Return the candidates of one chunk, without those that are complete."""
    row: list[Json] = []
    for candidate in candidates:
        if place >= len(candidate.batches):
            continue
        parts = candidate.batches[place].parts
        entry: Json = {"content": {"parts": parts, "role": "model"} if parts else {}}
        last = place == len(candidate.batches) - 1
        if not place:
            entry |= candidate.opening
        entry |= candidate.ending if last else candidate.between
        if last or candidate.index or not backend.is_vertex:
            entry["index"] = candidate.index
        row.append(entry)
    return row


class _Usage:
    """The usage metadata of each chunk."""

    def __init__(
        self,
        request: Mapping[str, Any],
        reply: Reply,
        candidates: Sequence[Candidate],
        setting: Setting,
        *,
        opening: bool,
    ) -> None:
        self._prompt = count_prompt(request, setting.model.image_tokens)
        self._tool_use = count_built_in(reply) if opening else 0
        self._candidates = candidates
        self._backend = setting.backend

    def at(self, place: int, *, last: bool) -> Json:
        """Return the counters of a chunk. Zero counters are absent; Vertex counts only in the last chunk."""
        if self._backend.is_vertex and not last:
            return {"trafficType": "ON_DEMAND"}
        prompt = sum(self._prompt.values())
        batches = [batch for candidate in self._candidates for batch in candidate.batches[: place + 1]]
        produced = sum(batch.tokens for batch in batches)
        thoughts = sum(candidate.thought_tokens for candidate in self._candidates)
        usage: Json = {
            "promptTokenCount": prompt,
            "candidatesTokenCount": produced,
            "totalTokenCount": prompt + produced + thoughts + self._tool_use,
            "promptTokensDetails": details(self._prompt),
            "thoughtsTokenCount": thoughts,
            "toolUsePromptTokenCount": self._tool_use,
            "toolUsePromptTokensDetails": details({"TEXT": self._tool_use} if self._tool_use else {}),
        }
        if self._backend.is_vertex:
            usage["candidatesTokensDetails"] = details({"TEXT": produced} if produced else {})
            usage["trafficType"] = "ON_DEMAND"
        else:
            usage["serviceTier"] = "standard"
        return {name: value for name, value in usage.items() if value}


def make_response_id(request: bytes) -> str:
    """Return the id that all chunks of a response share. `request` is the body or its digest."""
    identity = hashlib.blake2b(request, digest_size=16, person=b"response-id").digest()
    return base64.urlsafe_b64encode(identity).decode().rstrip("=")


def add_cached(chunks: Sequence[Json], cached: Mapping[str, int]) -> list[Json]:
    """Add the number of cached tokens to every chunk that counts the prompt."""
    if not cached:
        return list(chunks)
    share = {"cachedContentTokenCount": sum(cached.values()), "cacheTokensDetails": details(cached)}
    return [
        {**chunk, "usageMetadata": {**chunk["usageMetadata"], **share}}
        if "promptTokenCount" in chunk.get("usageMetadata", {})
        else chunk
        for chunk in chunks
    ]


def _envelope(candidates: list[Json], usage: Json, setting: Setting) -> Json:
    chunk: Json = {"candidates": candidates, "usageMetadata": usage, "modelVersion": setting.model.id}
    if setting.backend.is_vertex:
        chunk["createTime"] = setting.now
    chunk["responseId"] = make_response_id(setting.digest)
    return chunk
