"""Decode CountTokens, whose body wraps a Converse or an InvokeModel request."""

from __future__ import annotations

import base64

from dragoman import jsontext
from dragoman.dialects.base import ClientDialect, Decoded, Headers
from dragoman.dialects.bedrock.decode import decode_request
from dragoman.dialects.bedrock.invoke import decode_invoked
from dragoman.dialects.bedrock.wire import decode_count, member
from dragoman.dialects.bedrock.wire import decode_invoked as decode_wire_invoked
from dragoman.errors import InvalidRequest


def decode_count_request(body: bytes, headers: Headers, model: str, inner: ClientDialect) -> Decoded:
    """Decode the wrapped request; `inner` decodes the body of InvokeModel.

    Raise `InvalidRequest` with the place inside the wrapper.
    """
    kind, raw = member(jsontext.decode_leniently(decode_count, body).input, "input")
    where = f"input.{kind}"
    if kind not in ("converse", "invokeModel"):
        raise InvalidRequest(f"{kind!r} is not understood: use converse or invokeModel", where=where)
    try:
        if kind == "converse":
            return decode_request(bytes(raw), model, stream=False)
        invoked = jsontext.decode(decode_wire_invoked, raw, "")
        where = f"{where}.body"
        return decode_invoked(inner, _from_base64(invoked.body), headers, model, stream=False)
    except InvalidRequest as error:
        error.where = f"{where}.{error.where}" if error.where else where
        raise


def _from_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise InvalidRequest("this is not base64") from None
