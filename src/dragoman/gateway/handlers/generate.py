"""The two handlers that every dialect has: generate a response, and count the tokens of a request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress

import msgspec

from dragoman.dialects.base import ClientDialect, Reply
from dragoman.errors import ConfigError, DragomanError, UpstreamError
from dragoman.gateway.asgi import JSON_HEADERS, ResponseWriter
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.gateway_tools.runner import open_tool_runner
from dragoman.gateway.gateway_tools.session_state import SESSION_HEADER, check_session_name
from dragoman.gateway.limits.quota_meter import reserve_quota
from dragoman.gateway.relay.attempt_plan import AttemptPlan
from dragoman.gateway.relay.relay import OnAnswer, Relay
from dragoman.ids import new_id
from dragoman.translation.exchange import Exchange
from dragoman.upstream.generate import raise_for_status

#: Google counts quickly; after this time the local estimate is returned instead.
_COUNT_TIMEOUT_S = 5.0


_EMPTY: Mapping[str, str] = {}


class RequestContext:
    """One authenticated request, as handlers see it.

    `headers` and `query` contain no credentials. They may be shared between requests: do not modify them.
    """

    body = b""
    caller = Caller()

    def __init__(
        self,
        gateway: Gateway,
        dialect: ClientDialect,
        headers: Mapping[str, str],
        path: str,
        *,
        names: Mapping[str, str] = _EMPTY,
        query: Mapping[str, str] = _EMPTY,
    ) -> None:
        self.gateway = gateway
        self.dialect = dialect
        self.headers = headers
        self.path = path
        self.path_params = names  # the named groups of the route's pattern
        self.query = query
        self.created_s = int(time.time())
        self._started_s = time.monotonic()

    def new_exchange(self, *, keep: bool = False) -> Exchange:
        """Return a new exchange; with `keep` it also collects a streamed response, for `Exchange.whole`."""
        return Exchange(
            self.dialect,
            new_token=new_id,
            settings=self.gateway.translation_options,
            created_s=self.created_s,
            elapsed_ms=self._elapsed_ms,
            keep=keep,
            scope=self.caller.scope,
        )

    def _elapsed_ms(self) -> int:
        return int((time.monotonic() - self._started_s) * 1000)


async def generate(call: RequestContext, outlet: ResponseWriter) -> None:
    """Decode a request and answer it."""
    exchange = call.new_exchange()
    exchange.decode(call.body, call.headers)
    await answer_exchange(call, exchange, outlet)


async def answer_exchange(
    call: RequestContext, exchange: Exchange, outlet: ResponseWriter, on_answer: OnAnswer | None = None
) -> None:
    """Answer a decoded request; `on_answer` is awaited before the last byte is sent."""
    call.body = b""  # free the request's bytes while the response streams
    _apply_session_header(call, exchange)
    gateway, caller = call.gateway, call.caller
    if gateway.config.media.fetch:
        await gateway.remote_files.inline(exchange, caller.scope)
    meter = await reserve_quota(gateway, caller, exchange, outlet.recorder) if gateway.has_quotas else None
    try:
        await Relay(
            gateway,
            call.dialect,
            exchange,
            outlet,
            caller,
            on_answer,
            headers=call.headers,
            reservation=meter,
        ).run()
    finally:
        if meter is not None:
            await meter.settle(exchange.summary.usage)


def _apply_session_header(call: RequestContext, exchange: Exchange) -> None:
    """Prefer the session that the client names in a header to the one that the dialect derived."""
    named = call.headers.get(SESSION_HEADER, "")
    if named:
        check_session_name(named)
        exchange.request = msgspec.structs.replace(exchange.request, session=named)


async def count_tokens(call: RequestContext, outlet: ResponseWriter) -> None:
    """Reply with Google's token count, or with a local estimate if Google cannot be asked (pain H3)."""
    exchange = call.new_exchange()
    exchange.decode(call.body, call.headers)
    try:
        async with asyncio.timeout(_COUNT_TIMEOUT_S):
            tokens = await _count_with_tools(call, exchange, outlet.request_id)
    except (UpstreamError, ConfigError, TimeoutError):
        tokens = exchange.estimate()
        outlet.add_headers((("x-dragoman-count", "estimate"),))
    await outlet.reply(Reply(200, call.dialect.encode_count(tokens), JSON_HEADERS))


async def _count_with_tools(call: RequestContext, exchange: Exchange, request_id: str) -> int:
    """Count the request with the gateway tools that would be declared, without those that are unavailable."""
    _apply_session_header(call, exchange)
    desk = None
    with suppress(DragomanError):
        desk = await open_tool_runner(
            call.gateway,
            exchange,
            call.caller,
            request_id=request_id,
            headers=call.headers,
        )
    try:
        return await _request_count(call, exchange)
    finally:
        if desk is not None:
            await desk.close()


async def _request_count(call: RequestContext, exchange: Exchange) -> int:
    way = AttemptPlan(call.gateway, call.caller, exchange.request)
    body = exchange.encode_count(way.target)
    url = call.gateway.endpoint.url(way.target.model, "countTokens")
    headers = await way.headers()
    async with call.gateway.client.post(url, headers, body, stream=True) as answer:
        await raise_for_status(answer)
        return exchange.upstream.decode_count(await answer.read())
