"""The head of a request, parsed once, before it is authenticated."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dragoman.dialects.base import ClientDialect
from dragoman.server.auth import CREDENTIAL_HEADERS
from dragoman.server.http import Scope, address_of, headers_of
from dragoman.server.routes import dialect_of
from dragoman.server.trail import Noted
from dragoman.server.watch import Watch

_PRIVATE_HEADERS = frozenset({*CREDENTIAL_HEADERS, "content-length"})


class Errand(msgspec.Struct, frozen=True):
    """The parsed head of a request.

    `headers` and `query` still contain credentials; handlers get `public_headers()` and `public_query()`.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    dialect: ClientDialect  # guessed from path and headers; encodes errors until the route is known
    noted: Noted

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT")

    def public_headers(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name not in _PRIVATE_HEADERS}

    def public_query(self) -> dict[str, str]:
        return {name: value for name, value in self.query.items() if name != "key"}


def read_errand(scope: Scope, watch: Watch) -> Errand:
    headers, (path, query) = headers_of(scope), address_of(scope)
    method: str = scope["method"]
    return Errand(method, path, query, headers, dialect_of(path, headers), watch.note(method, path, headers))
