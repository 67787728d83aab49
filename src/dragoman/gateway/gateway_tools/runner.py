"""Collect the gateway tools of one exchange; separate from `protocol`, because it needs the `Gateway`."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.gateway_tools.google_tools import GoogleToolsAsFunctions
from dragoman.gateway.gateway_tools.protocol import GatewayToolRunner, ToolRequest, collect_offers
from dragoman.translation.exchange import Exchange


async def open_tool_runner(
    gateway: Gateway,
    exchange: Exchange,
    caller: Caller,
    *,
    request_id: str,
    dialect: str,
    headers: Mapping[str, str],
) -> GatewayToolRunner | None:
    """Declare gateway tools in the exchange and return their runner; None if no source offers any.

    The caller must close the runner.
    """
    request, sources = exchange.request, gateway.tool_providers
    if request.server_tools:
        sources = (*sources, GoogleToolsAsFunctions(gateway))
    if not sources:
        return None
    asked = ToolRequest(
        request=request, caller=caller, request_id=request_id, dialect=dialect, headers=headers
    )
    desk = await collect_offers(sources, asked)
    if desk is not None:
        exchange.add_tool_loop(desk.tool_loop)
    return desk
