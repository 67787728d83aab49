"""Path to handler, as a table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import msgspec

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Reply
from dragoman.errors import ConfigError, DragomanError, UpstreamError
from dragoman.exchange import Exchange
from dragoman.server.auth import Caller
from dragoman.server.gateway import Gateway
from dragoman.server.http import JSON_HEADERS, Outlet
from dragoman.server.models import get_model, list_models
from dragoman.server.relay import Relay
from dragoman.tokens import new_token

#: Counting is cheap for Google; if it takes longer the estimate is better.
_COUNT_S = 5.0


class Call:
    """One admitted request, as handlers see it."""

    def __init__(self, gateway: Gateway, dialect: ClientDialect, headers: dict[str, str], path: str) -> None:
        self.gateway = gateway
        self.dialect = dialect
        self.headers = headers
        self.path = path
        self.body = b""
        self.caller = Caller()


Handler = Callable[[Call, Outlet], Awaitable[None]]


async def messages(call: Call, outlet: Outlet) -> None:
    exchange = Exchange(call.dialect, new_token=new_token, settings=call.gateway.settings)
    exchange.decode(call.body, call.headers)
    call.body = b""  # an open stream keeps nothing of the request's bytes
    await Relay(call.gateway, call.dialect, exchange, outlet, call.caller).run()


async def count_tokens(call: Call, outlet: Outlet) -> None:
    """Google's own count; our estimate when Google cannot be asked (pain H3)."""
    exchange = Exchange(call.dialect, new_token=new_token, settings=call.gateway.settings)
    exchange.decode(call.body, call.headers)
    try:
        async with asyncio.timeout(_COUNT_S):
            tokens = await _ask_count(call, exchange)
    except (UpstreamError, ConfigError, TimeoutError):
        tokens = exchange.estimate()
        outlet.add_headers((("x-dragoman-count", "estimate"),))
    await outlet.reply(Reply(200, call.dialect.encode_count(tokens), JSON_HEADERS))


async def _ask_count(call: Call, exchange: Exchange) -> int:
    target = call.gateway.target(exchange.request.model)
    body = exchange.encode_count(target)
    url = call.gateway.host.url(target.model, "countTokens")
    headers = await call.gateway.auth_headers(call.caller)
    async with call.gateway.client.post(url, headers, body, stream=True) as answer:
        raw = await answer.read()
        if answer.status != 200:
            raise exchange.upstream.decode_error(answer.status, answer.headers, raw)
    return exchange.upstream.decode_count(raw)


async def models(call: Call, outlet: Outlet) -> None:
    _, _, name = call.path.partition("/v1/models/")
    config = call.gateway.config.models
    await outlet.reply(Reply(200, get_model(name, config) if name else list_models(config), JSON_HEADERS))


async def health(call: Call, outlet: Outlet) -> None:
    """Says who answers and what is behind; asks nobody (pain O8)."""
    body = {"service": "dragoman", "status": "ok", "backend": call.gateway.config.backend}
    await outlet.reply(Reply(200, msgspec.json.encode(body), JSON_HEADERS))


async def ready(call: Call, outlet: Outlet) -> None:
    call.gateway.refuse_while_draining()
    await health(call, outlet)


async def nothing(call: Call, outlet: Outlet) -> None:
    """Paths clients call for their own sake: greetings and telemetry, which goes no further."""
    await outlet.reply(Reply(200, b"{}", JSON_HEADERS))


class Route:
    """What a path needs: a handler, a dialect for its errors, and whether it is open to everybody."""

    def __init__(self, handler: Handler, dialect: str = "anthropic", *, public: bool = False) -> None:
        self.handler = handler
        self.dialect = CLIENTS[dialect]
        self.public = public


_EXACT: dict[tuple[str, str], Route] = {
    ("POST", "/v1/messages"): Route(messages),
    ("POST", "/v1/messages/count_tokens"): Route(count_tokens),
    ("GET", "/v1/models"): Route(models),
    ("GET", "/healthz"): Route(health, public=True),
    ("GET", "/readyz"): Route(ready, public=True),
    ("GET", "/"): Route(health, public=True),
    ("GET", "/api/hello"): Route(nothing, public=True),
}
_PREFIXES: tuple[tuple[str, str, Route], ...] = (
    ("GET", "/v1/models/", Route(models)),
    ("POST", "/api/event_logging/", Route(nothing)),
    ("POST", "/api/claude_code/", Route(nothing)),
    ("POST", "/api/claude_cli/", Route(nothing)),
)


def find_route(method: str, path: str) -> Route:
    method = "GET" if method == "HEAD" else method
    route = _EXACT.get((method, path))
    if route is not None:
        return route
    for verb, prefix, candidate in _PREFIXES:
        if verb == method and path.startswith(prefix):
            return candidate
    others = [verb for verb, known in _EXACT if known == path]
    if others:
        allowed = ", ".join(others)
        raise DragomanError(f"{path} takes {allowed}, not {method}", kind="wrong_method", code=allowed)
    raise DragomanError(f"there is no {method} {path} here", kind="not_found")
