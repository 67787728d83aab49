"""One request, as it is parsed, routed and authenticated, and then passed to its handler.

Separate from `routes`, because the table of routes imports the handlers, which import this module.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from typing import Literal

import msgspec

from dragoman.dialects import recognize_dialect
from dragoman.dialects.base import ClientDialect
from dragoman.gateway.auth.authenticator import CREDENTIAL_HEADERS, Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.response_writer import ResponseWriter
from dragoman.gateway.telemetry.request_recorder import RequestRecorder
from dragoman.ids import new_id
from dragoman.translation.exchange import Exchange

AuthMethod = Literal["key", "dashboard", "login"]

_PRIVATE_HEADERS = frozenset({*CREDENTIAL_HEADERS, "content-length"})


class RequestContext:
    """One request. The application sets `route`, `caller` and `body` before it calls the handler.

    Handlers get the request without credentials. They must not modify `headers` and `query`, which requests may share.
    """

    route: RouteMatch
    caller = Caller()
    body = b""

    def __init__(
        self,
        gateway: Gateway,
        recorder: RequestRecorder,
        *,
        method: str,
        path: str,
        query: Mapping[str, str],
        headers: Mapping[str, str],
    ) -> None:
        self.gateway = gateway
        self.recorder = recorder
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.created_s = int(time.time())
        self._started_s = time.monotonic()

    @cached_property
    def dialect(self) -> ClientDialect:
        """The dialect of the route. Until that is known, the one that path and headers look like, for errors."""
        return recognize_dialect(self.path, self.headers)

    @property
    def path_params(self) -> Mapping[str, str]:
        return self.route.path_params

    @property
    def has_body(self) -> bool:
        return self.method in ("POST", "PUT")

    def set_route(self, route: RouteMatch) -> None:
        self.route, self.dialect = route, route.dialect

    def remove_credentials(self) -> None:
        self.headers = {name: value for name, value in self.headers.items() if name not in _PRIVATE_HEADERS}
        self.query = {name: value for name, value in self.query.items() if name != "key"}

    def new_exchange(self, *, keep_events: bool = False) -> Exchange:
        """Return a new exchange; with `keep_events` it also collects a streamed response, for `Exchange.whole_body`."""
        return Exchange(
            self.dialect,
            new_id=new_id,
            options=self.gateway.translation_options,
            created_s=self.created_s,
            elapsed_ms=self._elapsed_ms,
            keep_events=keep_events,
            scope=self.caller.scope,
        )

    def _elapsed_ms(self) -> int:
        return int((time.monotonic() - self._started_s) * 1000)


Handler = Callable[[RequestContext, ResponseWriter], Awaitable[None]]


class RouteMatch(msgspec.Struct, frozen=True):
    """The route of one request; `path_params` holds the named groups that the pattern matched in its path."""

    handler: Handler
    dialect: ClientDialect
    public: bool
    admin: bool
    auth: AuthMethod
    path_params: Mapping[str, str]
