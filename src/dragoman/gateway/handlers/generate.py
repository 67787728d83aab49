"""The two handlers that every dialect has: generate a response, and count the tokens of a request."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import msgspec

from dragoman.dialects.base import Reply
from dragoman.errors import ConfigError, DragomanError, UpstreamError
from dragoman.gateway.gateway_tools.runner import open_tool_runner
from dragoman.gateway.gateway_tools.session_state import SESSION_HEADER, check_session_name
from dragoman.gateway.limits.quota_meter import reserve_quota
from dragoman.gateway.relay.attempt_plan import AttemptPlan
from dragoman.gateway.relay.relay import OnAnswer, Relay
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import JSON_HEADERS, ResponseWriter
from dragoman.translation.exchange import Exchange

#: Google counts quickly; after this time the local estimate is returned instead.
_COUNT_TIMEOUT_S = 5.0


async def generate(request: RequestContext, response: ResponseWriter) -> None:
    """Decode a request and answer it."""
    exchange = request.new_exchange()
    exchange.decode(request.body, request.headers)
    await answer_exchange(request, exchange, response)


async def answer_exchange(
    request: RequestContext, exchange: Exchange, response: ResponseWriter, on_answer: OnAnswer | None = None
) -> None:
    """Answer a decoded request; `on_answer` is awaited before the last byte is sent."""
    request.body = b""  # free the request's bytes while the response streams
    _apply_session_header(request, exchange)
    gateway, caller = request.gateway, request.caller
    if gateway.config.media.fetch:
        await gateway.remote_files.inline(exchange, caller.scope)
    reservation = (
        await reserve_quota(gateway, caller, exchange, response.recorder) if gateway.has_quotas else None
    )
    try:
        await Relay(
            gateway,
            request.dialect,
            exchange,
            response,
            caller,
            on_answer,
            headers=request.headers,
            reservation=reservation,
        ).run()
    finally:
        if reservation is not None:
            await reservation.settle(exchange.summary.usage)


def _apply_session_header(request: RequestContext, exchange: Exchange) -> None:
    """Prefer the session that the client names in a header to the one that the dialect derived."""
    named = request.headers.get(SESSION_HEADER, "")
    if named:
        check_session_name(named)
        exchange.request = msgspec.structs.replace(exchange.request, session=named)


async def count_tokens(request: RequestContext, response: ResponseWriter) -> None:
    """Reply with Google's token count, or with a local estimate if Google cannot be asked (known problem H3)."""
    exchange = request.new_exchange()
    exchange.decode(request.body, request.headers)
    try:
        async with asyncio.timeout(_COUNT_TIMEOUT_S):
            tokens = await _count_with_tools(request, exchange, response.request_id)
    except (UpstreamError, ConfigError, TimeoutError):
        tokens = exchange.estimate()
        response.add_headers((("x-dragoman-count", "estimate"),))
    await response.reply(Reply(200, request.dialect.encode_count(tokens), JSON_HEADERS))


async def _count_with_tools(request: RequestContext, exchange: Exchange, request_id: str) -> int:
    """Count the request with the gateway tools that would be declared, without those that are unavailable."""
    _apply_session_header(request, exchange)
    runner = None
    with suppress(DragomanError):
        runner = await open_tool_runner(
            request.gateway,
            exchange,
            request.caller,
            request_id=request_id,
            headers=request.headers,
        )
    try:
        return await _request_count(request, exchange)
    finally:
        if runner is not None:
            await runner.close()


async def _request_count(request: RequestContext, exchange: Exchange) -> int:
    plan = AttemptPlan(request.gateway, request.caller, exchange.request)
    body = exchange.encode_count(plan.target)
    url = request.gateway.endpoint.url(plan.target.model, "countTokens")
    headers = await plan.headers()
    async with request.gateway.client.post(url, headers, body, stream=True) as upstream:
        raw = await upstream.read()
        if upstream.status != 200:
            raise exchange.upstream.decode_error(upstream.status, upstream.headers, raw)
    return exchange.upstream.decode_count(raw)
