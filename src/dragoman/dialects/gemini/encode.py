"""Encode a neutral request as a `GenerateContentRequest` or as the body of `countTokens`.

The system instruction, the tools and the settings are usually the same in every turn of a conversation, so their JSON,
the envelope, is cached. The contents are inserted into it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.dialects.base import Encoded, Target, UpstreamStream
from dragoman.dialects.gemini.built_in_tools import BuiltIns, encode_built_ins
from dragoman.dialects.gemini.contents import encode_contents
from dragoman.dialects.gemini.generation_config import encode_generation
from dragoman.dialects.gemini.models import profile_of
from dragoman.dialects.gemini.parts import NOBODY, EncodingContext
from dragoman.dialects.gemini.server_tools_stream import ServerToolsStream
from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.dialects.gemini.tools import Declarations, declare, encode_tool_choice
from dragoman.errors import InvalidRequest, UpstreamProtocolError
from dragoman.incremental.lru import LruCache
from dragoman.ir import Request
from dragoman.notes import Note

_ENCODER = msgspec.json.Encoder()
_THINKING = "generationConfig.thinkingConfig"
_ONE_CALL = "Call at most one function at a time and wait for its result."
_NO_SWITCH = "Gemini has no such switch; it is asked for in the instructions, and further calls are held back"
_OPENING = b'{"contents":['


def origin_of(target: Target) -> str:
    """Return the origin of the signatures that this target makes: the back end and the model family."""
    return f"{target.backend}-{profile_of(target.model).family}"


class RequestFields(msgspec.Struct, frozen=True):
    """The fields of a request body with empty `contents`, and what is needed to encode the contents.

    The notes on the contents are reported between `before` and `after`.
    """

    body: dict[str, Any]
    built_ins: BuiltIns
    setting: EncodingContext
    before: tuple[Note, ...]
    after: tuple[Note, ...]


class UpstreamEnvelope(msgspec.Struct, frozen=True):
    """`Fields` as JSON, and what is needed to encode the contents and to decode the answer."""

    closing: bytes  # after the last content
    rest: tuple[bytes, ...]  # the other fields, one JSON text or none
    whole: bytes  # the complete body if the target accepts no `contents`, otherwise empty
    setting: EncodingContext
    origin: str
    single_call: bool
    built_ins: BuiltIns
    before: tuple[Note, ...]
    after: tuple[Note, ...]

    def enclose(self, contents: list[bytes]) -> bytes:
        """Return the complete body.

        One join copies the long contents only once; only the first and the last piece are copied twice.
        """
        if self.whole:
            return self.whole
        pieces = [*(contents or (b"",)), *self.rest]
        pieces[0] = _OPENING + pieces[0]
        last = -1 - len(self.rest)
        pieces[last] += self.closing
        return b",".join(pieces)


#: Everything that the envelope depends on. Comparison is fast, because unchanged fields are identical objects.
_Key = tuple[object, ...]
_ENVELOPES: LruCache[_Key, UpstreamEnvelope] = LruCache(32 * 1024 * 1024, "surroundings")


def make_envelope(request: Request, target: Target) -> UpstreamEnvelope:
    """Encode everything but the contents, from the cache if the same fields were encoded before."""
    key: _Key = (
        request.system,
        request.tools,
        request.server_tools,
        request.tool_choice,
        request.thinking,
        request.sampling,
        request.output,
        request.native,
        target,
    )
    known = _ENVELOPES.find(key)
    if known is None:
        known = _make_envelope(request, target)
        _ENVELOPES.put(key, 2 * (len(known.whole) + sum(map(len, known.rest))), known)
    return known


def _make_envelope(request: Request, target: Target) -> UpstreamEnvelope:
    fields = make_fields(request, target)
    json = _ENCODER.encode(fields.body)
    named = "contents" in fields.body
    rest = json[len(_OPENING) + len(b"],") :] if named else b""
    return UpstreamEnvelope(
        closing=b"]" if rest else b"]}",
        rest=(rest,) if rest else (),
        whole=b"" if named else json,
        setting=fields.setting,
        origin=origin_of(target),
        single_call=not request.tool_choice.parallel,
        built_ins=fields.built_ins,
        before=fields.before,
        after=fields.after,
    )


def make_fields(request: Request, target: Target) -> RequestFields:
    """Encode every field of the body except `contents`, which stays empty."""
    declarations = declare(request.tools, target)
    functions = bool(declarations.declared)
    built_ins = encode_built_ins(request.server_tools, target, functions=functions)
    config, asked, changed = encode_generation(request, target, tooled=functions or bool(built_ins.tools))
    notes = [*changed]
    system = [part.text for part in request.system] + asked + list(built_ins.asked)
    if functions and not request.tool_choice.parallel:
        system.append(_ONE_CALL)
        notes.append(Note("moved", "tool_choice.disable_parallel_tool_use", _NO_SWITCH))
    body: dict[str, Any] = {"contents": []}
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    if tools := _tools(declarations, built_ins):
        body["tools"] = tools
    if choice := _tool_config(request, declarations, built_ins):
        body["toolConfig"] = choice
    if config:
        body["generationConfig"] = config
    _add_native(body, request.native, target)
    for place in target.omit_fields:
        notes += _remove_field(body, place)
    origin = origin_of(target) if target.trust_signatures else NOBODY
    setting = EncodingContext(profile_of(target.model), declarations.names, origin, bool(built_ins.offered))
    before = (*declarations.notes, *built_ins.notes)
    return RequestFields(body, built_ins, setting, before, tuple(notes))


def _tools(declarations: Declarations, built_ins: BuiltIns) -> list[dict[str, Any]]:
    functions = [{"functionDeclarations": declarations.json}] if declarations.declared else []
    return [*functions, *built_ins.tools]


def _tool_config(request: Request, declarations: Declarations, built_ins: BuiltIns) -> dict[str, Any]:
    config = encode_tool_choice(request.tool_choice, declarations) or {}
    return {**config, "includeServerSideToolInvocations": True} if built_ins.shown else config


def _remove_field(body: dict[str, Any], place: str) -> list[Note]:
    """Remove the field that this back end rejected; `place` is the path in Google's error message.

    Such a path mixes both spellings, for example `generation_config.responseJsonSchema`.
    """
    *parents, field = (_normalized(name) for name in place.split("."))
    node: Any = body
    for parent in parents:
        node = next((value for name, value in node.items() if _normalized(name) == parent), None)
        if not isinstance(node, dict):
            return []
    removed = [name for name in node if _normalized(name) == field]
    for name in removed:
        del node[name]
    return [Note("dropped", name, "this back end does not know it") for name in removed]


def _normalized(name: str) -> str:
    """Return a name in a form that is equal for snake_case and camelCase."""
    return name.replace("_", "").lower()


def _add_native(body: dict[str, Any], native: tuple[tuple[str, bytes], ...], target: Target) -> None:
    """Put the fields that a Gemini client sent, and the neutral request does not model, back in their places."""
    for place, raw in native:
        if place == "tools":
            body.setdefault("tools", []).append(msgspec.Raw(raw))
        elif not (place == _THINKING and target.own_thinking):
            *parents, field = place.split(".")
            node = body
            for parent in parents:
                node = node.setdefault(parent, {})
            node[field] = msgspec.Raw(raw)


_COUNT_ENCODER = msgspec.json.Encoder()


def ends_with_user(target: Target) -> bool:
    return profile_of(target.model).ends_with_user


def context_tokens(target: Target) -> int:
    return profile_of(target.model).input_tokens


def encode_request(request: Request, target: Target, new_id: Callable[[], str]) -> Encoded:
    """Encode a request; raise `InvalidRequest` if it names a remote MCP server."""
    # Only the operator may allow URLs that clients send (known problem Q9).
    for remote in request.remotes:
        why = f"the MCP server {remote.label!r} is not called from here; its operator may allow it (mcp.servers)"
        raise InvalidRequest(why, where=remote.where)
    around = make_envelope(request, target)
    contents, lost = encode_contents(request.messages, around.setting)

    def reader() -> UpstreamStream:
        plain = GeminiStream(around.setting.names, around.origin, new_id, single_call=around.single_call)
        built_ins = around.built_ins
        return ServerToolsStream(plain, built_ins, around.origin, new_id) if built_ins.offered else plain

    notes = (*around.before, *lost, *around.after)
    return Encoded(body=around.enclose(contents), notes=notes, reader=reader)


def encode_count(request: Request, target: Target) -> bytes:
    """Encode the body of `countTokens`.

    AI Studio counts the system instruction and tools only inside `generateContentRequest`; Vertex takes the
    fields at the top level.
    """
    fields = make_fields(request, target)
    contents, _ = encode_contents(request.messages, fields.setting)
    body = {**fields.body}
    if "contents" in body:
        body["contents"] = [*map(msgspec.Raw, contents)]
    body.pop("toolConfig", None)
    if target.backend == "vertex":
        return _COUNT_ENCODER.encode(body)
    return _COUNT_ENCODER.encode({"generateContentRequest": {"model": f"models/{target.model}", **body}})


def decode_count(body: bytes) -> int:
    """Return the number of tokens; raise `UpstreamGarbage` if the body cannot be read."""
    try:
        return msgspec.json.decode(body, type=_Count, strict=False).totalTokens
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise UpstreamProtocolError("the upstream's token count cannot be read") from None


class _Count(msgspec.Struct):
    totalTokens: int = 0  # noqa: N815
