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
from dragoman.emulator.answer.limits import Limited
from dragoman.emulator.answer.partial_args import can_stream, write_pieces
from dragoman.emulator.answer.setting import Setting
from dragoman.emulator.contents import calling_config_of
from dragoman.emulator.model.respond import Reply
from dragoman.emulator.signature import ON_TEXT, on_call
from dragoman.emulator.tokens import count_text, count_value

Json = dict[str, Any]

_SEARCH = "GOOGLE_SEARCH_WEB"
_READ = "URL_CONTEXT"


class Batch(msgspec.Struct, frozen=True):
    """The parts of one chunk and their tokens."""

    parts: list[Json]
    tokens: int = 0


def write_batches(
    request: Mapping[str, Any], limited: Limited, setting: Setting, *, opening: bool
) -> Iterator[Batch]:
    """Yield the chunks of a candidate. `opening` is false for a later hop, which has only text and calls."""
    reply = limited.reply
    if limited.show_thoughts:
        yield Batch([{"text": reply.thought, "thought": True}])
    if opening:
        yield from (Batch([part]) for part in _built_in(request, reply, setting))
    texts = [Batch([{"text": piece}], count_text(piece)) for piece in split_text(reply.text)]
    calls = list(_calls(request, reply, setting))
    if not setting.model.modern:
        whole = [Batch([part for call in calls for part in call.parts], sum(call.tokens for call in calls))]
        closing = texts[-1:] if texts and not calls else whole
        streamed = calls if _streams_arguments(request, setting) and calls else closing
        yield from texts[:-1] if closing is not whole else texts
        yield from streamed
        return
    yield from texts
    yield from calls
    yield Batch(_closing(limited, setting))


def make_call_id(digest: bytes, index: int) -> str:
    """Return an id of eight characters, different for every request and call."""
    raw = hashlib.blake2b(digest, digest_size=6, person=b"call-id", salt=index.to_bytes(4, "big")).digest()
    return base64.b32encode(raw).decode().lower()[:8]


def count_built_in(reply: Reply) -> int:
    """Return the input tokens of the results of Google's own tools."""
    seen = [reply.search, *reply.urls, *([reply.code.source + reply.code.output] if reply.code else [])]
    return sum(map(count_text, seen))


def _closing(limited: Limited, setting: Setting) -> list[Json]:
    """Return the closing parts of Gemini 3: empty text, which carries the signature of a text answer.

    A call carries its own signature.
    """
    if limited.reply.calls:
        return [{"text": ""}]
    if not limited.reply.text or limited.finish == "CONTINUATION":
        return []
    return [{"text": "", "thoughtSignature": _sign(setting, ON_TEXT, b"text")}]


def _calls(request: Mapping[str, Any], reply: Reply, setting: Setting) -> Iterator[Batch]:
    for index, call in enumerate(reply.calls):
        body: Json = {"name": call.name, "args": dict(call.args)}
        if setting.model.modern:
            body["id"] = make_call_id(setting.digest, index)
        signed: Json = {}
        if index == 0 and request.get("tools"):
            signed["thoughtSignature"] = _sign(setting, on_call(call.name), b"call")
        tokens = count_value(body)
        if not _streams_arguments(request, setting) or not can_stream(call.args):
            yield Batch([{"functionCall": body, **signed}], tokens)
            continue
        opener = {**{key: value for key, value in body.items() if key != "args"}, "willContinue": True}
        yield Batch([{"functionCall": opener, **signed}], tokens)
        for piece in write_pieces(call.args):
            yield Batch([{"functionCall": {"partialArgs": [piece], "willContinue": True}}])
        yield Batch([{"functionCall": {}}])


def _streams_arguments(request: Mapping[str, Any], setting: Setting) -> bool:
    wanted = calling_config_of(request).get("streamFunctionCallArguments", False)
    return setting.backend.is_vertex and bool(wanted)


def _built_in(request: Mapping[str, Any], reply: Reply, setting: Setting) -> Iterator[Json]:
    """Yield the invocations of Google's own tools.

    Code is always included, the others only with `includeServerSideToolInvocations`.
    """
    if request.get("toolConfig", {}).get("includeServerSideToolInvocations"):
        if reply.search:
            found = {"search_suggestions": f"<div>{reply.search}</div>"}
            yield from _invocation(setting, 0, _SEARCH, {"queries": [reply.search]}, found)
        if reply.urls:
            read = [
                {"retrieved_url": url, "url_retrieval_status": retrieval_status(url)} for url in reply.urls
            ]
            yield from _invocation(setting, 1, _READ, {"urls": list(reply.urls)}, {"urls_metadata": read})
    if reply.code is not None:
        modern = setting.model.modern
        named = {"id": _built_in_id(setting, 2)} if modern else {}
        signed = {"thoughtSignature": _sign(setting, ON_TEXT, b"code")} if modern else {}
        yield {"executableCode": {"language": "PYTHON", "code": reply.code.source, **named}, **signed}
        yield {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": reply.code.output, **named}}


def _invocation(setting: Setting, index: int, kind: str, args: Json, response: Json) -> Iterator[Json]:
    named = {"id": _built_in_id(setting, index), "toolType": kind}
    yield {"toolCall": {**named, "args": args}, "thoughtSignature": _sign(setting, ON_TEXT, b"tool")}
    signature = _sign(setting, ON_TEXT, b"tool-answer")
    yield {"toolResponse": {**named, "response": response}, "thoughtSignature": signature}


def _built_in_id(setting: Setting, index: int) -> str:
    return make_call_id(setting.digest + b"built-in", index)


def _sign(setting: Setting, target: str, purpose: bytes) -> str:
    nonce = hashlib.blake2b(setting.digest, digest_size=16, person=purpose).digest()
    return setting.signer.issue(setting.backend, setting.model, target, nonce)
