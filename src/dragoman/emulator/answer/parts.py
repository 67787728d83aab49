"""The parts of each chunk, with their token counts.

chunks = thought* built-in* text* (call+ closing | closing)        Gemini 3 and later
       = thought* built-in* text* (calls-and-finish | last text)   2.5
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from dragoman.emulator.answer.cutting import split_text
from dragoman.emulator.answer.grounding import retrieval_status
from dragoman.emulator.answer.limits import LimitedReply
from dragoman.emulator.answer.partial_args import can_stream_arguments, write_partial_args
from dragoman.emulator.answer.setting import ResponseContext
from dragoman.emulator.contents import calling_config_of
from dragoman.emulator.model.respond import ModelReply
from dragoman.emulator.signature import TEXT_TARGET, call_target
from dragoman.emulator.tokens import count_text, count_value

Json = dict[str, Any]

_SEARCH_TOOL_TYPE = "GOOGLE_SEARCH_WEB"
_URL_TOOL_TYPE = "URL_CONTEXT"


class ChunkParts(msgspec.Struct, frozen=True):
    """The parts of one chunk and their tokens."""

    parts: list[Json]
    tokens: int = 0


def write_chunk_parts(
    request: Mapping[str, Any], limited: LimitedReply, setting: ResponseContext, *, opening: bool
) -> Iterator[ChunkParts]:
    """Yield the chunks of a candidate. `opening` is false for a later hop, which has only text and calls."""
    reply = limited.reply
    if limited.show_thoughts:
        yield ChunkParts([{"text": reply.thought, "thought": True}])
    if opening:
        yield from (ChunkParts([part]) for part in _builtin_parts(request, reply, setting))
    texts = [ChunkParts([{"text": piece}], count_text(piece)) for piece in split_text(reply.text)]
    calls = list(_call_chunks(request, reply, setting))
    if not setting.model.is_gemini3_or_later:
        whole = [
            ChunkParts([part for call in calls for part in call.parts], sum(call.tokens for call in calls))
        ]
        closing = texts[-1:] if texts and not calls else whole
        streamed = calls if _streams_arguments(request, setting) and calls else closing
        yield from texts[:-1] if closing is not whole else texts
        yield from streamed
        return
    yield from texts
    yield from calls
    yield ChunkParts(_closing_parts(limited, setting))


def make_call_id(digest: bytes, index: int) -> str:
    """Return an id of eight characters, different for every request and call."""
    raw = hashlib.blake2b(digest, digest_size=6, person=b"call-id", salt=index.to_bytes(4, "big")).digest()
    return base64.b32encode(raw).decode().lower()[:8]


def count_builtin_tokens(reply: ModelReply) -> int:
    """Return the input tokens of the results of Google's own tools."""
    seen = [reply.search_query, *reply.urls, *([reply.code.source + reply.code.output] if reply.code else [])]
    return sum(map(count_text, seen))


def _closing_parts(limited: LimitedReply, setting: ResponseContext) -> list[Json]:
    """Return the closing parts of Gemini 3: empty text, which carries the signature of a text answer.

    A call carries its own signature.
    """
    if limited.reply.calls:
        return [{"text": ""}]
    if not limited.reply.text or limited.finish_reason == "CONTINUATION":
        return []
    return [{"text": "", "thoughtSignature": _sign(setting, TEXT_TARGET, b"text")}]


def _call_chunks(
    request: Mapping[str, Any], reply: ModelReply, setting: ResponseContext
) -> Iterator[ChunkParts]:
    for index, call in enumerate(reply.calls):
        body: Json = {"name": call.name, "args": dict(call.args)}
        if setting.model.is_gemini3_or_later:
            body["id"] = make_call_id(setting.digest, index)
        signed: Json = {}
        if index == 0 and request.get("tools"):
            signed["thoughtSignature"] = _sign(setting, call_target(call.name), b"call")
        tokens = count_value(body)
        if not _streams_arguments(request, setting) or not can_stream_arguments(call.args):
            yield ChunkParts([{"functionCall": body, **signed}], tokens)
            continue
        opener = {**{key: value for key, value in body.items() if key != "args"}, "willContinue": True}
        yield ChunkParts([{"functionCall": opener, **signed}], tokens)
        for piece in write_partial_args(call.args):
            yield ChunkParts([{"functionCall": {"partialArgs": [piece], "willContinue": True}}])
        yield ChunkParts([{"functionCall": {}}])


def _streams_arguments(request: Mapping[str, Any], setting: ResponseContext) -> bool:
    wanted = calling_config_of(request).get("streamFunctionCallArguments", False)
    return setting.backend.is_vertex and bool(wanted)


def _builtin_parts(request: Mapping[str, Any], reply: ModelReply, setting: ResponseContext) -> Iterator[Json]:
    """Yield the invocations of Google's own tools.

    Code is always included, the others only with `includeServerSideToolInvocations`.
    """
    if request.get("toolConfig", {}).get("includeServerSideToolInvocations"):
        if reply.search_query:
            found = {"search_suggestions": f"<div>{reply.search_query}</div>"}
            yield from _invocation(setting, 0, _SEARCH_TOOL_TYPE, {"queries": [reply.search_query]}, found)
        if reply.urls:
            read = [
                {"retrieved_url": url, "url_retrieval_status": retrieval_status(url)} for url in reply.urls
            ]
            yield from _invocation(
                setting, 1, _URL_TOOL_TYPE, {"urls": list(reply.urls)}, {"urls_metadata": read}
            )
    if reply.code is not None:
        modern = setting.model.is_gemini3_or_later
        named = {"id": _builtin_id(setting, 2)} if modern else {}
        signed = {"thoughtSignature": _sign(setting, TEXT_TARGET, b"code")} if modern else {}
        yield {"executableCode": {"language": "PYTHON", "code": reply.code.source, **named}, **signed}
        yield {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": reply.code.output, **named}}


def _invocation(
    setting: ResponseContext, index: int, kind: str, args: Json, response: Json
) -> Iterator[Json]:
    named = {"id": _builtin_id(setting, index), "toolType": kind}
    yield {"toolCall": {**named, "args": args}, "thoughtSignature": _sign(setting, TEXT_TARGET, b"tool")}
    signature = _sign(setting, TEXT_TARGET, b"tool-answer")
    yield {"toolResponse": {**named, "response": response}, "thoughtSignature": signature}


def _builtin_id(setting: ResponseContext, index: int) -> str:
    return make_call_id(setting.digest + b"built-in", index)


def _sign(setting: ResponseContext, target: str, purpose: bytes) -> str:
    nonce = hashlib.blake2b(setting.digest, digest_size=16, person=purpose).digest()
    return setting.signer.issue(setting.backend, setting.model, target, nonce)
