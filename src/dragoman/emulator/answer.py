"""The model's reply as Google sends it: a list of response chunks, and their merge for the unary call.

chunks = thought* text* (call+ closing | closing)        Gemini 3 and later
       = thought* text* (calls-and-finish | last text)   2.5
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from dragoman.emulator.backend import Backend
from dragoman.emulator.limits import Limited, apply_limits
from dragoman.emulator.model import Call, Reply
from dragoman.emulator.models import Model
from dragoman.emulator.signature import ON_TEXT, Signer, on_call
from dragoman.emulator.tokens import count_prompt, count_text, count_value, details

_CALL_MESSAGE = "Model generated function call(s)."
_SMALLEST_PIECE = 24
_MOST_PIECES = 24


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """All that an answer depends on besides the reply; `digest` identifies the request, `now` is RFC 3339."""

    backend: Backend
    model: Model
    signer: Signer
    digest: bytes
    now: str


def write_chunks(request: Mapping[str, Any], reply: Reply, setting: Setting) -> list[dict[str, Any]]:
    """The stream's chunks, each a whole GenerateContentResponse with new parts."""
    limited = apply_limits(request, reply, setting.model)
    batches = list(_batches(request, limited, setting))
    prompt = count_prompt(request)
    chunks: list[dict[str, Any]] = []
    produced = 0
    for index, parts in enumerate(batches):
        last = index == len(batches) - 1
        produced += sum(_count_part(part) for part in parts)
        candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"} if parts else {}}
        if last:
            candidate |= _ending(limited, setting)
        if not setting.backend.is_vertex or last:
            candidate["index"] = 0
        usage = _usage(prompt, produced, limited.thought_tokens, setting.backend, last=last)
        chunks.append(_envelope(candidate, usage, setting))
    return chunks


def merge_chunks(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The unary answer: parts joined, everything else from the last chunk."""
    merged: list[dict[str, Any]] = []
    for chunk in chunks:
        for part in chunk["candidates"][0]["content"].get("parts", ()):
            _append_part(merged, part)
    last = dict(chunks[-1])
    parts = [part for part in merged if part.get("text") != "" or "thoughtSignature" in part]
    content: dict[str, Any] = {"parts": parts, "role": "model"} if parts else {}
    last["candidates"] = [{**last["candidates"][0], "content": content, "index": 0}]
    return last


def write_count(request: Mapping[str, Any], backend: Backend) -> dict[str, Any]:
    """The answer of countTokens."""
    counts = count_prompt(request)
    answer: dict[str, Any] = {"totalTokens": sum(counts.values())}
    if backend.is_vertex:
        answer["totalBillableCharacters"] = 4 * counts.get("TEXT", 0)
    if counts:
        answer["promptTokensDetails"] = details(counts)
    return answer


def _batches(
    request: Mapping[str, Any], limited: Limited, setting: Setting
) -> Iterator[list[dict[str, Any]]]:
    """The parts of each chunk."""
    reply = limited.reply
    if limited.show_thoughts:
        yield [{"text": reply.thought, "thought": True}]
    pieces = split_text(reply.text)
    calls = list(_call_parts(request, reply.calls, setting))
    if setting.model.modern:
        yield from ([{"text": piece}] for piece in pieces)
        yield from ([part] for part in calls)
        # The signature of a text answer rides on its closing empty part; a call carries its own.
        yield (
            [{"text": ""}] if calls else [{"text": "", "thoughtSignature": _sign(setting, ON_TEXT, b"text")}]
        )
        return
    closing = [{"text": pieces.pop()}] if pieces and not calls else []
    yield from ([{"text": piece}] for piece in pieces)
    yield closing + calls


def _call_parts(
    request: Mapping[str, Any], calls: Sequence[Call], setting: Setting
) -> Iterator[dict[str, Any]]:
    for index, call in enumerate(calls):
        body: dict[str, Any] = {"name": call.name, "args": dict(call.args)}
        if setting.model.modern:
            body["id"] = make_call_id(setting.digest, index)
        part: dict[str, Any] = {"functionCall": body}
        if index == 0 and request.get("tools"):
            part["thoughtSignature"] = _sign(setting, on_call(call.name), b"call")
        yield part


def make_call_id(digest: bytes, index: int) -> str:
    """Eight characters, different for every request and call."""
    raw = hashlib.blake2b(digest, digest_size=6, person=b"call-id", salt=index.to_bytes(4, "big")).digest()
    return base64.b32encode(raw).decode().lower()[:8]


def _sign(setting: Setting, target: str, purpose: bytes) -> str:
    nonce = hashlib.blake2b(setting.digest, digest_size=16, person=purpose).digest()
    return setting.signer.issue(setting.backend, setting.model, target, nonce)


def split_text(text: str) -> list[str]:
    """Pieces that end after white space; joined they are the text again."""
    size = max(_SMALLEST_PIECE, len(text) // _MOST_PIECES)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        space = text.rfind(" ", start, end) if end < len(text) else -1
        end = space + 1 if space > start else end
        pieces.append(text[start:end])
        start = end
    return pieces


def _ending(limited: Limited, setting: Setting) -> dict[str, Any]:
    ending: dict[str, Any] = {"finishReason": limited.finish}
    if limited.reply.calls and setting.model.modern and limited.finish == "STOP":
        ending["finishMessage"] = _CALL_MESSAGE
    if limited.reply.search:
        ending["groundingMetadata"] = _grounding(limited.reply)
    return ending


def _grounding(reply: Reply) -> dict[str, Any]:
    sources = [
        {"web": {"uri": f"https://example.com/{number}", "title": f"Example {number}"}} for number in (1, 2)
    ]
    segment = {"startIndex": 0, "endIndex": len(reply.text.encode()), "text": reply.text}
    return {
        "webSearchQueries": [reply.search],
        "searchEntryPoint": {"renderedContent": "<div>example.com</div>"},
        "groundingChunks": sources,
        "groundingSupports": [{"segment": segment, "groundingChunkIndices": [0, 1]}],
    }


def _usage(
    prompt: Mapping[str, int], produced: int, thoughts: int, backend: Backend, *, last: bool
) -> dict[str, Any]:
    """Zero counters are absent; Vertex counts only at the end."""
    if backend.is_vertex and not last:
        return {"trafficType": "ON_DEMAND"}
    total = sum(prompt.values())
    usage: dict[str, Any] = {
        "promptTokenCount": total,
        "candidatesTokenCount": produced,
        "totalTokenCount": total + produced + thoughts,
        "promptTokensDetails": details(prompt),
        "thoughtsTokenCount": thoughts,
    }
    if backend.is_vertex:
        usage["candidatesTokensDetails"] = details({"TEXT": produced} if produced else {})
        usage["trafficType"] = "ON_DEMAND"
    else:
        usage["serviceTier"] = "standard"
    return {name: value for name, value in usage.items() if value}


def _envelope(candidate: dict[str, Any], usage: dict[str, Any], setting: Setting) -> dict[str, Any]:
    chunk = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": setting.model.id}
    if setting.backend.is_vertex:
        chunk["createTime"] = setting.now
    identity = hashlib.blake2b(setting.digest, digest_size=16, person=b"response-id").digest()
    chunk["responseId"] = base64.urlsafe_b64encode(identity).decode().rstrip("=")
    return chunk


def _count_part(part: Mapping[str, Any]) -> int:
    if part.get("thought"):
        return 0
    return count_value(part["functionCall"]) if "functionCall" in part else count_text(part.get("text", ""))


def _append_part(merged: list[dict[str, Any]], part: Mapping[str, Any]) -> None:
    """Text goes on where text of the same kind stands; the closing empty part leaves only its signature."""
    previous = merged[-1] if merged else {}
    joins = "text" in part and "text" in previous and part.get("thought") == previous.get("thought")
    if joins and "thoughtSignature" not in previous:
        merged[-1] = {**previous, **part, "text": previous["text"] + part["text"]}
    else:
        merged.append(dict(part))
