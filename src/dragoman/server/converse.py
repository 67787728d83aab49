"""The two things every dialect asks for: an answer, and how many tokens a question has."""

from __future__ import annotations

import asyncio
import time

from dragoman.dialects.base import ClientDialect, Reply
from dragoman.errors import ConfigError, UpstreamError
from dragoman.exchange import Exchange
from dragoman.server.auth import Caller
from dragoman.server.gateway import Gateway
from dragoman.server.http import JSON_HEADERS, Outlet
from dragoman.server.relay import OnAnswer, Relay
from dragoman.tokens import new_token

#: Counting is cheap for Google; if it takes longer the estimate is better.
_COUNT_S = 5.0


class Call:
    """One admitted request, as handlers see it."""

    def __init__(
        self,
        gateway: Gateway,
        dialect: ClientDialect,
        headers: dict[str, str],
        path: str,
        *,
        names: dict[str, str] | None = None,
        query: dict[str, str] | None = None,
    ) -> None:
        self.gateway = gateway
        self.dialect = dialect
        self.headers = headers
        self.path = path
        self.names = names or {}  # what the pattern of the path found
        self.query = query or {}
        self.body = b""
        self.caller = Caller()
        self.created_s = int(time.time())

    def exchange(self, *, keep: bool = False) -> Exchange:
        return Exchange(
            self.dialect,
            new_token=new_token,
            settings=self.gateway.settings,
            created_s=self.created_s,
            keep=keep,
        )


async def converse(call: Call, outlet: Outlet) -> None:
    exchange = call.exchange()
    exchange.decode(call.body, call.headers)
    await relay(call, exchange, outlet)


async def relay(call: Call, exchange: Exchange, outlet: Outlet, on_answer: OnAnswer | None = None) -> None:
    """Answer a decoded request; `on_answer` is called before the last byte leaves."""
    call.body = b""  # an open stream keeps nothing of the request's bytes
    await Relay(call.gateway, call.dialect, exchange, outlet, call.caller, on_answer).run()


async def count_tokens(call: Call, outlet: Outlet) -> None:
    """Google's own count; our estimate when Google cannot be asked (pain H3)."""
    exchange = call.exchange()
    exchange.decode(call.body, call.headers)
    try:
        async with asyncio.timeout(_COUNT_S):
            tokens = await _ask_count(call, exchange)
    except (UpstreamError, ConfigError, TimeoutError):
        tokens = exchange.estimate()
        outlet.add_headers((("x-dragoman-count", "estimate"),))
    await outlet.reply(Reply(200, call.dialect.encode_count(tokens), JSON_HEADERS))


async def _ask_count(call: Call, exchange: Exchange) -> int:
    target = call.gateway.target(exchange.request.model, exchange.request.tools)
    body = exchange.encode_count(target)
    url = call.gateway.host.url(target.model, "countTokens")
    headers = await call.gateway.auth_headers(call.caller)
    async with call.gateway.client.post(url, headers, body, stream=True) as answer:
        raw = await answer.read()
        if answer.status != 200:
            raise exchange.upstream.decode_error(answer.status, answer.headers, raw)
    return exchange.upstream.decode_count(raw)
