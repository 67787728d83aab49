"""Quota reservations of running requests: made before the start, raised per round, corrected at the end.

`dragoman.gateway.limits.quotas` computes the charges; this module applies them to the store.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from dragoman.errors import DragomanError
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.limits.quotas import (
    QuotaSubject,
    ReservedCharges,
    UsageEstimate,
    estimate_usage,
    needs_price,
    quota_exceeded,
    raise_charges,
    refuse_loop,
    reserve_charges,
    settle_charges,
)
from dragoman.gateway.store_errors import ignore_store_errors, require_store
from dragoman.gateway.telemetry.request_recorder import RequestRecorder
from dragoman.ir import Usage
from dragoman.observe.prices import Price
from dragoman.observe.usage import find_price
from dragoman.store import Meters
from dragoman.translation.exchange import Exchange


class QuotaReservation:
    """The reservation of one running request. A response with gateway tools needs several rounds."""

    def __init__(
        self,
        meters: Meters,
        reservation: ReservedCharges,
        recorder: RequestRecorder,
        find: Callable[[str], Price | None],
    ) -> None:
        self._meters = meters
        self._charges = reservation
        self._recorder = recorder
        self._find_price = find
        self._input_tokens = 0

    async def raise_for_next_round(self, used: Usage) -> None:
        """Raise the reservation before another round, which reads at least the input of the last one.

        Raises DragomanError of kind `quota` if that exceeds a limit.
        """
        last_input, self._input_tokens = used.input_tokens - self._input_tokens, used.input_tokens
        wanted = self._estimate(used.plus(Usage(input_tokens=last_input)))
        additions = raise_charges(self._charges, wanted)
        exceeded = await require_store(self._meters.charge(additions.charges))
        if exceeded:
            raise quota_exceeded(exceeded, self._charges, datetime.now(UTC))
        self._charges = msgspec.structs.replace(self._charges, estimate=additions.estimate)

    async def settle(self, used: Usage) -> None:
        """Correct the reservation to the actual usage. Store errors are ignored."""
        corrections = settle_charges(self._charges, self._estimate(used))
        if corrections:
            await ignore_store_errors(self._meters.charge(corrections))

    def _estimate(self, used: Usage) -> UsageEstimate:
        """Include failed attempts, and use the price of the model that actually ran."""
        return estimate_usage(used.plus(self._recorder.wasted_usage), self._find_price(self._recorder.model))


async def reserve_quota(
    gateway: Gateway, caller: Caller, exchange: Exchange, recorder: RequestRecorder
) -> QuotaReservation | None:
    """Reserve the estimated usage of a request; the caller must `settle()` it. None if there are no quotas.

    Raises DragomanError of kind `quota` if a limit is reached or the history ends in a tool loop, and of kind
    `permission` if a limit in dollars needs a price that is not known.
    """
    limits = gateway.config.limits
    refuse_loop(gateway.config, exchange.request.messages)
    if not limits.key and not limits.session:
        return None
    price = _require_price(gateway, exchange) if needs_price(limits) else None
    now = datetime.now(UTC)
    subject = QuotaSubject(caller.scope, exchange.request.session)
    meters = gateway.store.meters
    reservation = reserve_charges(
        limits, subject, estimate_usage(Usage(input_tokens=exchange.estimate()), price), now
    )
    exceeded = await require_store(meters.charge(reservation.charges))
    if exceeded:
        raise quota_exceeded(exceeded, reservation, now)

    def find(model: str) -> Price | None:
        return (find_price(limits, model) or price) if price is not None else None

    return QuotaReservation(meters, reservation, recorder, find)


def _require_price(gateway: Gateway, exchange: Exchange) -> Price:
    """Return the price of the model; raise DragomanError if it is unknown and a limit in dollars needs it."""
    model = gateway.target(exchange.request.model).model
    limits = gateway.config.limits
    price = find_price(limits, model)
    if price is None:
        why = f"there is a limit in dollars, and the price of {model} is not known: set limits.prices"
        raise DragomanError(why, kind="permission", code="fuse")
    return price
