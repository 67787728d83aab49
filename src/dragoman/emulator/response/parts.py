"""The parts of each chunk, with their token counts, and streamed function arguments.

    chunks = thought* built-in* text* (call+ closing | closing)        Gemini 3 and later
           = thought* built-in* text* (calls-and-finish | last text)   2.5

On Vertex, `streamFunctionCallArguments` streams the arguments of a call; each piece is a JSON path with a value:

    call   = opener piece* end
    opener = {name, id?, willContinue}
    piece  = {partialArgs, willContinue}
    end    = {}
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import msgspec

from dragoman.emulator.model import ModelReply
from dragoman.emulator.parsed_request import calling_config_of
from dragoman.emulator.response import ResponseContext
from dragoman.emulator.response.limits import LimitedReply
from dragoman.emulator.response.metadata import retrieval_status
from dragoman.emulator.signature import TEXT_TARGET, call_target
from dragoman.emulator.tokens import count_text, count_value

_MIN_TEXT_CHARS = 24
_MAX_TEXTS = 24


def split_text(text: str) -> list[str]:
    """Split after spaces where possible; the joined pieces are the text again."""
    size = max(_MIN_TEXT_CHARS, len(text) // _MAX_TEXTS)
    pieces: list[str] = []
    start = 0
    while start < len(text):
        end = min(len(text), start + size)
        space = text.rfind(" ", start, end) if end < len(text) else -1
        end = space + 1 if space > start else end
        pieces.append(text[start:end])
        start = end
    return pieces


JsonObject = dict[str, Any]
PathStep = str | int

_SIMPLE_NAME = re.compile(r"[A-Za-z_$][\w$-]*")
_STEP = re.compile(r"\.([A-Za-z_$][\w$-]*)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]", re.DOTALL)
#: The limit up to which a double represents every integer.
_MAX_EXACT_INTEGER = 2**53


def can_stream_arguments(args: Mapping[str, Any]) -> bool:
    """Whether pieces can represent the arguments without loss.

    They cannot represent an empty list or object, and `numberValue` is a double, which loses digits of large
    integers.
    """
    return all(_is_representable(value) for value in args.values())


def write_partial_args(args: Mapping[str, Any]) -> Iterator[JsonObject]:
    """Yield the entries of `partialArgs`, one per chunk."""
    for name, value in args.items():
        yield from _write_value(f"${_name_step(name)}", value)


def apply_partial_arg(args: JsonObject, piece: Mapping[str, Any]) -> None:
    """Store the value of a piece at its path in `args`.

    A string is appended to a string that is already there. A piece whose path does not fit is ignored.
    """
    path = _read_path(str(piece.get("jsonPath", "")))
    value = _value(piece)
    if not path or value is _NO_VALUE:
        return
    node: Any = args
    for step, following in pairwise(path):
        if not _accepts_step(node, step):
            return
        node = _get_or_create(node, step, [] if isinstance(following, int) else {})
    last = path[-1]
    if _accepts_step(node, last):
        before = _get_or_create(node, last, None)
        node[last] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _is_representable(value: Any) -> bool:
    if isinstance(value, Mapping):
        return bool(value) and all(map(_is_representable, value.values()))
    if isinstance(value, list):
        return bool(value) and all(map(_is_representable, value))
    return not isinstance(value, int) or abs(value) < _MAX_EXACT_INTEGER


def _write_value(path: str, value: Any) -> Iterator[JsonObject]:
    if isinstance(value, Mapping):
        yield {"jsonPath": path, "willContinue": True}
        for name, item in value.items():
            yield from _write_value(path + _name_step(name), item)
    elif isinstance(value, list):
        yield {"jsonPath": path, "willContinue": True}
        for index, item in enumerate(value):
            yield from _write_value(f"{path}[{index}]", item)
    elif isinstance(value, str):
        texts = split_text(value) or [""]
        yield from ({"jsonPath": path, "stringValue": text, "willContinue": True} for text in texts[:-1])
        yield {"jsonPath": path, "stringValue": texts[-1]}
    else:
        yield {"jsonPath": path, **_scalar(value)}


def _scalar(value: Any) -> JsonObject:
    if value is None:
        return {"nullValue": "NULL_VALUE"}
    return {"boolValue": value} if isinstance(value, bool) else {"numberValue": value}


def _name_step(name: str) -> str:
    if _SIMPLE_NAME.fullmatch(name):
        return f".{name}"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"


_NO_VALUE = object()


def _value(piece: Mapping[str, Any]) -> Any:
    if "nullValue" in piece:
        return None
    return next(
        (piece[key] for key in ("stringValue", "numberValue", "boolValue") if key in piece), _NO_VALUE
    )


def _read_path(path: str) -> list[PathStep]:
    steps: list[PathStep] = []
    for found in _STEP.finditer(path, 1):
        name, number, quoted = found.groups()
        if number is not None:
            steps.append(int(number))
        else:
            steps.append(name if name is not None else re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL))
    return steps


def _accepts_step(node: Any, step: PathStep) -> bool:
    return isinstance(node, list if isinstance(step, int) else dict)


def _get_or_create(node: Any, step: PathStep, fresh: Any) -> Any:
    """Return the value at a step, and store `fresh` there first if there is none."""
    if isinstance(step, str):
        return node.setdefault(step, fresh)
    node.extend([None] * (step + 1 - len(node)))
    node[step] = fresh if node[step] is None else node[step]
    return node[step]


Json = dict[str, Any]

_SEARCH_TOOL_TYPE = "GOOGLE_SEARCH_WEB"
_URL_TOOL_TYPE = "URL_CONTEXT"


class ChunkParts(msgspec.Struct, frozen=True):
    """The parts of one chunk and their tokens."""

    parts: list[Json]
    tokens: int = 0


def write_chunk_parts(
    request: Mapping[str, Any], limited: LimitedReply, context: ResponseContext, *, opening: bool
) -> Iterator[ChunkParts]:
    """Yield the chunks of a candidate. `opening` is false for a later hop, which has only text and calls."""
    reply = limited.reply
    if limited.show_thoughts:
        yield ChunkParts([{"text": reply.thought, "thought": True}])
    if opening:
        yield from (ChunkParts([part]) for part in _builtin_parts(request, reply, context))
    texts = [ChunkParts([{"text": piece}], count_text(piece)) for piece in split_text(reply.text)]
    calls = list(_call_chunks(request, reply, context))
    if not context.model.is_gemini3_or_later:
        whole = [
            ChunkParts([part for call in calls for part in call.parts], sum(call.tokens for call in calls))
        ]
        closing = texts[-1:] if texts and not calls else whole
        streamed = calls if _streams_arguments(request, context) and calls else closing
        yield from texts[:-1] if closing is not whole else texts
        yield from streamed
        return
    yield from texts
    yield from calls
    yield ChunkParts(_closing_parts(limited, context))


def make_call_id(digest: bytes, index: int) -> str:
    """Return an id of eight characters, different for every request and call."""
    raw = hashlib.blake2b(digest, digest_size=6, person=b"call-id", salt=index.to_bytes(4, "big")).digest()
    return base64.b32encode(raw).decode().lower()[:8]


def count_builtin_tokens(reply: ModelReply) -> int:
    """Return the input tokens of the results of Google's own tools."""
    seen = [reply.search_query, *reply.urls, *([reply.code.source + reply.code.output] if reply.code else [])]
    return sum(map(count_text, seen))


def _closing_parts(limited: LimitedReply, context: ResponseContext) -> list[Json]:
    """Return the closing parts of Gemini 3: empty text, which carries the signature of a text answer.

    A call carries its own signature.
    """
    if limited.reply.calls:
        return [{"text": ""}]
    if not limited.reply.text or limited.finish_reason == "CONTINUATION":
        return []
    return [{"text": "", "thoughtSignature": _sign(context, TEXT_TARGET, b"text")}]


def _call_chunks(
    request: Mapping[str, Any], reply: ModelReply, context: ResponseContext
) -> Iterator[ChunkParts]:
    for index, call in enumerate(reply.calls):
        body: Json = {"name": call.name, "args": dict(call.args)}
        if context.model.is_gemini3_or_later:
            body["id"] = make_call_id(context.digest, index)
        signed: Json = {}
        if index == 0 and request.get("tools"):
            signed["thoughtSignature"] = _sign(context, call_target(call.name), b"call")
        tokens = count_value(body)
        if not _streams_arguments(request, context) or not can_stream_arguments(call.args):
            yield ChunkParts([{"functionCall": body, **signed}], tokens)
            continue
        opener = {**{key: value for key, value in body.items() if key != "args"}, "willContinue": True}
        yield ChunkParts([{"functionCall": opener, **signed}], tokens)
        for piece in write_partial_args(call.args):
            yield ChunkParts([{"functionCall": {"partialArgs": [piece], "willContinue": True}}])
        yield ChunkParts([{"functionCall": {}}])


def _streams_arguments(request: Mapping[str, Any], context: ResponseContext) -> bool:
    wanted = calling_config_of(request).get("streamFunctionCallArguments", False)
    return context.backend.is_vertex and bool(wanted)


def _builtin_parts(request: Mapping[str, Any], reply: ModelReply, context: ResponseContext) -> Iterator[Json]:
    """Yield the invocations of Google's own tools.

    Code is always included, the others only with `includeServerSideToolInvocations`.
    """
    if request.get("toolConfig", {}).get("includeServerSideToolInvocations"):
        if reply.search_query:
            found = {"search_suggestions": f"<div>{reply.search_query}</div>"}
            yield from _invocation(context, 0, _SEARCH_TOOL_TYPE, {"queries": [reply.search_query]}, found)
        if reply.urls:
            read = [
                {"retrieved_url": url, "url_retrieval_status": retrieval_status(url)} for url in reply.urls
            ]
            yield from _invocation(
                context, 1, _URL_TOOL_TYPE, {"urls": list(reply.urls)}, {"urls_metadata": read}
            )
    if reply.code is not None:
        modern = context.model.is_gemini3_or_later
        named = {"id": _builtin_id(context, 2)} if modern else {}
        signed = {"thoughtSignature": _sign(context, TEXT_TARGET, b"code")} if modern else {}
        yield {"executableCode": {"language": "PYTHON", "code": reply.code.source, **named}, **signed}
        yield {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": reply.code.output, **named}}


def _invocation(
    context: ResponseContext, index: int, kind: str, args: Json, response: Json
) -> Iterator[Json]:
    named = {"id": _builtin_id(context, index), "toolType": kind}
    yield {"toolCall": {**named, "args": args}, "thoughtSignature": _sign(context, TEXT_TARGET, b"tool")}
    signature = _sign(context, TEXT_TARGET, b"tool-answer")
    yield {"toolResponse": {**named, "response": response}, "thoughtSignature": signature}


def _builtin_id(context: ResponseContext, index: int) -> str:
    return make_call_id(context.digest + b"built-in", index)


def _sign(context: ResponseContext, target: str, purpose: bytes) -> str:
    nonce = hashlib.blake2b(context.digest, digest_size=16, person=purpose).digest()
    return context.signer.issue(context.backend, context.model, target, nonce)
