"""Quota reservations of running requests: made before the start, raised per round, corrected at the end.

`dragoman.server.fuses` computes the charges; this module applies them to the store.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from dragoman.errors import DragomanError
from dragoman.exchange import Exchange
from dragoman.ir import Usage
from dragoman.observe.prices import Price
from dragoman.server.auth import Caller
from dragoman.server.fuses import (
    Estimate,
    Reservation,
    Who,
    blown,
    estimate_of,
    find_price,
    needs_price,
    raise_reservation,
    refuse_loop,
    reserve,
    settle,
)
from dragoman.server.gateway import Gateway
from dragoman.server.reach import quietly, reach
from dragoman.server.trail import Trail
from dragoman.store import Meters


class Meter:
    """The reservation of one running request. A response with gateway tools needs several rounds."""

    def __init__(
        self, meters: Meters, reservation: Reservation, trail: Trail, find: Callable[[str], Price | None]
    ) -> None:
        self._meters = meters
        self._reservation = reservation
        self._trail = trail
        self._find_price = find
        self._read = 0

    async def go_on(self, used: Usage) -> None:
        """Raise the reservation before another round, which reads at least the input of the last one.

        Raises DragomanError of kind `quota` if that exceeds a limit.
        """
        last, self._read = used.input_tokens - self._read, used.input_tokens
        wanted = self._estimate(used.plus(Usage(input_tokens=last)))
        more = raise_reservation(self._reservation, wanted)
        refused = await reach(self._meters.charge(more.charges))
        if refused:
            raise blown(refused, self._reservation, datetime.now(UTC))
        self._reservation = msgspec.structs.replace(self._reservation, estimate=more.estimate)

    async def settle(self, used: Usage) -> None:
        """Correct the reservation to the actual usage. Store errors are ignored."""
        rest = settle(self._reservation, self._estimate(used))
        if rest:
            await quietly(self._meters.charge(rest))

    def _estimate(self, used: Usage) -> Estimate:
        """Include failed attempts, and use the price of the model that actually ran."""
        return estimate_of(used.plus(self._trail.wasted), self._find_price(self._trail.model))


async def open_meter(gateway: Gateway, caller: Caller, exchange: Exchange, trail: Trail) -> Meter | None:
    """Reserve the estimated usage of a request; the caller must `settle()` it. None if there are no quotas.

    Raises DragomanError of kind `quota` if a limit is reached or the history ends in a tool loop, and of kind
    `permission` if a limit in dollars needs a price that is not known.
    """
    limits = gateway.config.limits
    refuse_loop(gateway.config, exchange.request.messages)
    if not limits.key and not limits.session:
        return None
    price = _price(gateway, exchange) if needs_price(limits) else None
    now = datetime.now(UTC)
    who = Who(caller.scope, exchange.request.session)
    meters = gateway.store.meters
    reservation = reserve(limits, who, estimate_of(Usage(input_tokens=exchange.estimate()), price), now)
    refused = await reach(meters.charge(reservation.charges))
    if refused:
        raise blown(refused, reservation, now)

    def find(model: str) -> Price | None:
        return (find_price(model, limits) or price) if price is not None else None

    return Meter(meters, reservation, trail, find)


def _price(gateway: Gateway, exchange: Exchange) -> Price:
    """Return the price of the model; raise DragomanError if it is unknown and a limit in dollars needs it."""
    model = gateway.target(exchange.request.model).model
    limits = gateway.config.limits
    price = find_price(model, limits)
    if price is None:
        why = f"there is a limit in dollars, and the price of {model} is not known: set limits.prices"
        raise DragomanError(why, kind="permission", code="fuse")
    return price
