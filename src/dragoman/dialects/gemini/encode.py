"""Encode a neutral request as a `GenerateContentRequest` or as the body of `countTokens`."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.dialects.base import Encoded, Target, UpstreamStream
from dragoman.dialects.gemini.contents import encode_contents
from dragoman.dialects.gemini.grounded import ServerToolsStream
from dragoman.dialects.gemini.models import profile_of
from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.dialects.gemini.surroundings import make_envelope, make_fields
from dragoman.errors import InvalidRequest, UpstreamProtocolError
from dragoman.ir import Request

_COUNT_ENCODER = msgspec.json.Encoder()


def ends_with_user(target: Target) -> bool:
    return profile_of(target.model).ends_with_user


def context_tokens(target: Target) -> int:
    return profile_of(target.model).input_tokens


def encode_request(request: Request, target: Target, new_id: Callable[[], str]) -> Encoded:
    """Encode a request; raise `InvalidRequest` if it names a remote MCP server."""
    for remote in request.remotes:  # only the operator may allow addresses that clients send (Q9)
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
