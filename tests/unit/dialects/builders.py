"""What becomes of a client's requests, in the short forms that the tests of every dialect read."""

from __future__ import annotations

from typing import Any, Protocol

import pytest

from dragoman.dialects.base import ClientDialect, Decoded, Headers
from dragoman.errors import InvalidRequest
from dragoman.ir import Message, Part, Request, Signature

Json = dict[str, Any]

SIGNATURE = Signature("c2lnbmF0dXJl", "gemini-g3")
PIXEL = "iVBORw0KGgo="


class Body(Protocol):
    """How a dialect writes a request down: its messages or items, and the fields beside them."""

    def __call__(self, *given: Json, **fields: Any) -> bytes: ...


class Reader:
    """Reads what a dialect's `body` writes; a request of which nothing is said asks `default`."""

    def __init__(self, dialect: ClientDialect, body: Body, default: Json) -> None:
        self._dialect = dialect
        self._body = body
        self._default = default

    def _raw(self, given: tuple[Json, ...], fields: Json) -> bytes:
        return self._body(*(given or (self._default,)), **fields)

    def decode(self, *given: Json, headers: Headers | None = None, **fields: Any) -> Decoded:
        return self._dialect.decode_request(self._raw(given, fields), headers or {})

    def request(self, *given: Json, **fields: Any) -> Request:
        return self.decode(*given, **fields).request

    def messages(self, *given: Json) -> tuple[Message, ...]:
        return self.request(*given).messages

    def parts(self, *given: Json) -> tuple[Part, ...]:
        (only,) = self.messages(*given)
        return only.parts

    def noted(self, *given: Json, **fields: Any) -> list[tuple[str, str]]:
        """What was noted, and where."""
        return [(note.kind, note.where) for note in self.decode(*given, **fields).notes]

    def refused(self, *given: Json, **fields: Any) -> InvalidRequest:
        return self.refusal(self._raw(given, fields))

    def refusal(self, raw: bytes) -> InvalidRequest:
        with pytest.raises(InvalidRequest) as caught:
            self._dialect.decode_request(raw, {})
        return caught.value
