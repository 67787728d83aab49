"""Collect the gateway tools of one exchange; separate from `own`, because it needs the `Gateway`."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.exchange import Exchange
from dragoman.server.auth import Caller
from dragoman.server.gateway import Gateway
from dragoman.server.own import Asked, Desk, find_desk
from dragoman.server.side import SideCalls


async def open_desk(
    gateway: Gateway,
    exchange: Exchange,
    caller: Caller,
    *,
    request_id: str,
    dialect: str,
    headers: Mapping[str, str],
) -> Desk | None:
    """Declare gateway tools in the exchange and return their runner; None if no source offers any.

    The caller must close the runner.
    """
    request, sources = exchange.request, gateway.sources
    if request.server_tools:
        sources = (*sources, SideCalls(gateway))
    if not sources:
        return None
    asked = Asked(request=request, caller=caller, request_id=request_id, dialect=dialect, headers=headers)
    desk = await find_desk(sources, asked)
    if desk is not None:
        exchange.offer(desk.rounds)
    return desk
