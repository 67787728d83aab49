"""The head of a request, parsed once, before it is authenticated."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from dragoman.dialects.base import ClientDialect
from dragoman.gateway.asgi import Scope, path_and_query, request_headers
from dragoman.gateway.auth.authenticator import CREDENTIAL_HEADERS
from dragoman.gateway.routes import guess_dialect
from dragoman.gateway.telemetry.observer_hub import ObserverHub
from dragoman.gateway.telemetry.request_recorder import RecordedHead

_PRIVATE_HEADERS = frozenset({*CREDENTIAL_HEADERS, "content-length"})


class RequestHead(msgspec.Struct, frozen=True):
    """The parsed head of a request.

    `headers` and `query` still contain credentials; handlers get `public_headers()` and `public_query()`.
    """

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    dialect: ClientDialect  # guessed from path and headers; encodes errors until the route is known
    recorded: RecordedHead

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT")

    def public_headers(self) -> dict[str, str]:
        return {name: value for name, value in self.headers.items() if name not in _PRIVATE_HEADERS}

    def public_query(self) -> dict[str, str]:
        return {name: value for name, value in self.query.items() if name != "key"}


def read_request_head(scope: Scope, watch: ObserverHub) -> RequestHead:
    headers, (path, query) = request_headers(scope), path_and_query(scope)
    method: str = scope["method"]
    return RequestHead(
        method, path, query, headers, guess_dialect(path, headers), watch.record_head(method, path, headers)
    )
