"""The dashboard's API for models, keys and cost: health, cooldowns, quotas and spending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dragoman.dashboard.cost_view import BY, OTHERS, days_until, show_cost
from dragoman.dashboard.models_view import FuseShown, KeyShown, count_attempts
from dragoman.dashboard.summary import ModelUse, models_of
from dragoman.errors import InvalidRequest
from dragoman.observe.record import Record
from dragoman.observe.usage import MICRO, NOBODY, Tallied, tallies_of_all
from dragoman.server.callers import caller_name
from dragoman.server.converse import Call
from dragoman.server.dashboard_traffic import SUMMED, costs, newest, records_of, reply
from dragoman.server.fuses import Estimate, Who, reserve
from dragoman.server.gateway import Gateway
from dragoman.server.http import Outlet
from dragoman.server.pages import read_size
from dragoman.server.reach import reach
from dragoman.store.base import LEDGER_DAYS, LEDGER_LINES, OTHER_LABEL

_DAYS = 30
_NO_CALLERS = (OTHER_LABEL, NOBODY, OTHERS)


async def models(call: Call, outlet: Outlet) -> None:
    """Reply with the use of each model, circuit breakers, keys, quotas and fallbacks."""
    gateway = call.gateway
    lines = await newest(call, SUMMED)
    records = await asyncio.to_thread(records_of, lines)
    used = models_of(records, costs(gateway))
    body = {
        "of": len(records),
        "rows": used,
        "breakers": _breakers(gateway),
        "keys": await _keys(gateway, used, records),
        "fuses": await _fuses(gateway, records),
        "fallbacks": gateway.config.models.fallbacks,
    }
    await reply(outlet, body)


def _breakers(gateway: Gateway) -> dict[str, dict[str, float]]:
    """Return the failing circuit breakers of this worker by model."""
    now_s = time.monotonic()
    return {
        model: {"failures": breaker.failures, "rests_s": breaker.rests_s(now_s)}
        for model, breaker in gateway.breakers.items()
        if breaker.failures
    }


async def _keys(gateway: Gateway, used: list[ModelUse], records: list[Record]) -> list[KeyShown]:
    heard = await reach(gateway.keys.heard([one.name for one in used]))
    shown = [KeyShown(name=state.name, rests=dict(state.rests)) for state in gateway.keys.state()]
    for key in shown:
        key.rests = {model: 0.0 for name, model in heard if name == key.name} | key.rests
    count_attempts(shown, records)
    return shown


async def _fuses(gateway: Gateway, records: list[Record]) -> list[FuseShown]:
    """Return what the callers of these requests have used of their quotas."""
    limits, now = gateway.config.limits, datetime.now(UTC)
    callers = dict.fromkeys(record.caller for record in records if record.caller)
    charges = [
        (caller, charge)
        for caller in callers
        for charge in reserve(limits, Who(caller), Estimate(), now).charges
    ]
    used = await reach(gateway.store.meters.read([charge.name for _, charge in charges])) if charges else {}
    shown: list[FuseShown] = []
    for caller, charge in charges:
        _, window, *_, unit = charge.name.split("|")
        scale = MICRO if unit == "usd" else 1
        shown.append(
            FuseShown(
                caller=caller_name(caller, gateway.callers),
                window=window,
                unit=unit,
                used=used.get(charge.name, 0) / scale,
                limit=charge.limit / scale,
                ends_ms=charge.ends_s * 1000,
            )
        )
    return shown


async def cost(call: Call, outlet: Outlet) -> None:
    """Reply with the cost of the last `days`, grouped `by` one of `BY`."""
    many = read_size(call.query, "days", _DAYS, LEDGER_DAYS)
    by = call.query.get("by", BY[0])
    if by not in BY:
        raise InvalidRequest(f"must be one of {', '.join(BY)}", where="by")
    days = days_until(datetime.now(UTC).date(), many)
    body: Any = show_cost(await _tallies(call, days), days, by)
    if by == "key":
        for one in body.groups:
            one.name = one.name if one.name in _NO_CALLERS else caller_name(one.name, call.gateway.callers)
    await reply(outlet, body)


async def _tallies(call: Call, days: Sequence[str]) -> Sequence[Tallied]:
    """Return the sums per day.

    A caller without a key may see only requests since the start of the gateway. The stored sums have no time
    of day, so for such a caller they are computed from the requests themselves.
    """
    gateway = call.gateway
    if call.caller.key_hash:
        return await reach(gateway.store.ledger.tallies("total", days[0], days[-1]))
    lines = await newest(call, LEDGER_LINES)
    sums = await asyncio.to_thread(lambda: tallies_of_all(records_of(lines), gateway.config.limits))
    return [one for one in sums if one.kind == "total" and one.day in days]
