"""The dashboard's API for models, keys and cost: health, cooldowns, quotas and spending."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dragoman.dashboard.cost_view import COST_GROUPINGS, OTHERS, build_cost_report, last_days
from dragoman.dashboard.models_view import KeyUsage, QuotaUsage, count_attempts
from dragoman.dashboard.summary import ModelSummary, summarize_models
from dragoman.errors import InvalidRequest
from dragoman.observe.record import RequestRecord
from dragoman.observe.usage import MICROS_PER_USD, NO_LABEL, StoredTally, tallies_of_all
from dragoman.server.callers import caller_name
from dragoman.server.converse import RequestContext
from dragoman.server.dashboard_traffic import (
    SUMMARIZED_REQUESTS,
    cost_function,
    decode_records,
    newest_entries,
    send_json,
)
from dragoman.server.fuses import QuotaSubject, UsageEstimate, reserve_charges
from dragoman.server.gateway import Gateway
from dragoman.server.http import ResponseWriter
from dragoman.server.pages import read_page_size
from dragoman.server.reach import require_store
from dragoman.store.base import LEDGER_DAYS, MAX_LEDGER_ENTRIES, OTHER_LABEL

_DEFAULT_DAYS = 30
_NO_CALLERS = (OTHER_LABEL, NO_LABEL, OTHERS)


async def get_models(call: RequestContext, outlet: ResponseWriter) -> None:
    """Reply with the use of each model, circuit breakers, keys, quotas and fallbacks."""
    gateway = call.gateway
    lines = await newest_entries(call, SUMMARIZED_REQUESTS)
    records = await asyncio.to_thread(decode_records, lines)
    used = summarize_models(records, cost_function(gateway))
    body = {
        "of": len(records),
        "rows": used,
        "breakers": _failing_breakers(gateway),
        "keys": await _key_usage(gateway, used, records),
        "fuses": await _quota_usage(gateway, records),
        "fallbacks": gateway.config.models.fallbacks,
    }
    await send_json(outlet, body)


def _failing_breakers(gateway: Gateway) -> dict[str, dict[str, float]]:
    """Return the failing circuit breakers of this worker by model."""
    now_s = time.monotonic()
    return {
        model: {"failures": breaker.failures, "rests_s": breaker.remaining_open_s(now_s)}
        for model, breaker in gateway.breakers.items()
        if breaker.failures
    }


async def _key_usage(
    gateway: Gateway, used: list[ModelSummary], records: list[RequestRecord]
) -> list[KeyUsage]:
    heard = await require_store(gateway.key_pool.reported_cooldowns([one.name for one in used]))
    shown = [KeyUsage(name=state.name, rests=dict(state.cooldowns_s)) for state in gateway.key_pool.states()]
    for key in shown:
        key.rests = {model: 0.0 for name, model in heard if name == key.name} | key.rests
    count_attempts(shown, records)
    return shown


async def _quota_usage(gateway: Gateway, records: list[RequestRecord]) -> list[QuotaUsage]:
    """Return what the callers of these requests have used of their quotas."""
    limits, now = gateway.config.limits, datetime.now(UTC)
    callers = dict.fromkeys(record.caller for record in records if record.caller)
    charges = [
        (caller, charge)
        for caller in callers
        for charge in reserve_charges(limits, QuotaSubject(caller), UsageEstimate(), now).charges
    ]
    used = (
        await require_store(gateway.store.meters.read([charge.name for _, charge in charges]))
        if charges
        else {}
    )
    shown: list[QuotaUsage] = []
    for caller, charge in charges:
        _, window, *_, unit = charge.name.split("|")
        scale = MICROS_PER_USD if unit == "usd" else 1
        shown.append(
            QuotaUsage(
                caller=caller_name(caller, gateway.caller_names),
                window=window,
                unit=unit,
                used=used.get(charge.name, 0) / scale,
                limit=charge.limit / scale,
                ends_ms=charge.ends_s * 1000,
            )
        )
    return shown


async def get_cost(call: RequestContext, outlet: ResponseWriter) -> None:
    """Reply with the cost of the last `days`, grouped `by` one of `BY`."""
    many = read_page_size(call.query, "days", _DEFAULT_DAYS, LEDGER_DAYS)
    by = call.query.get("by", COST_GROUPINGS[0])
    if by not in COST_GROUPINGS:
        raise InvalidRequest(f"must be one of {', '.join(COST_GROUPINGS)}", where="by")
    days = last_days(datetime.now(UTC).date(), many)
    body: Any = build_cost_report(await _read_tallies(call, days), days, by)
    if by == "key":
        for one in body.groups:
            one.name = (
                one.name if one.name in _NO_CALLERS else caller_name(one.name, call.gateway.caller_names)
            )
    await send_json(outlet, body)


async def _read_tallies(call: RequestContext, days: Sequence[str]) -> Sequence[StoredTally]:
    """Return the sums per day.

    A caller without a key may see only requests since the start of the gateway. The stored sums have no time
    of day, so for such a caller they are computed from the requests themselves.
    """
    gateway = call.gateway
    if call.caller.key_hash:
        return await require_store(gateway.store.ledger.tallies("total", days[0], days[-1]))
    lines = await newest_entries(call, MAX_LEDGER_ENTRIES)
    sums = await asyncio.to_thread(lambda: tallies_of_all(decode_records(lines), gateway.config.limits))
    return [one for one in sums if one.kind == "total" and one.day in days]
