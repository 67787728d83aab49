"""The dashboard's API for models, keys and cost: health, cooldowns, quotas and spending."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import msgspec

from dragoman.errors import InvalidRequest
from dragoman.gateway.auth.authenticator import caller_name
from dragoman.gateway.context import Gateway
from dragoman.gateway.dashboard.summaries import ModelSummary, summarize_models
from dragoman.gateway.dashboard.traffic import (
    SUMMARIZED_REQUESTS,
    cost_function,
    decode_records,
    newest_entries,
    send_json,
)
from dragoman.gateway.handlers.pagination import read_page_size
from dragoman.gateway.limits.quotas import QuotaSubject, UsageEstimate, parse_charge_name, reserve_charges
from dragoman.gateway.request import RequestContext
from dragoman.gateway.response_writer import ResponseWriter
from dragoman.gateway.store_errors import require_store
from dragoman.observe.record import RequestRecord
from dragoman.observe.usage import KINDS, MICROS_PER_USD, NO_LABEL, tallies_of_all
from dragoman.store.base import LEDGER_DAYS, MAX_LEDGER_ENTRIES, OTHER_LABEL, Tally


class KeyUsage(msgspec.Struct, kw_only=True):
    """A Google API key by its name.

    `rests` is the remaining cooldown in seconds by model, 0 if only another replica knows it.
    """

    name: str
    rests: dict[str, float] = {}
    attempts: int = 0
    failures: dict[str, int] = {}


class QuotaUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The used share of one limit of a gateway key."""

    caller: str
    window: str
    unit: str
    used: float
    limit: float
    ends_ms: int


def count_attempts(keys: Iterable[KeyUsage], records: Iterable[RequestRecord]) -> None:
    """Count attempts and failures of each key; keys that clients send themselves are skipped."""
    known = {key.name: key for key in keys}
    failures: dict[str, Counter[str]] = {}
    for attempt in (attempt for record in records for attempt in record.attempts):
        key = known.get(attempt.key)
        if key is None:
            continue
        key.attempts += 1
        if attempt.error:
            failures.setdefault(key.name, Counter())[attempt.error] += 1
    for name, kinds in failures.items():
        known[name].failures = dict(kinds)


#: Labels by which the total can be grouped.
COST_GROUPINGS = ("model", "client", "key", "dialect")
_MAX_GROUPS = 7  # more colours cannot be told apart
OTHERS = "others"


class CostGroup(msgspec.Struct, kw_only=True):
    """`days` is the cost of each day in millionths of a dollar; `sums` covers all days."""

    name: str
    days: list[int]
    sums: dict[str, int]


class CostReport(msgspec.Struct, frozen=True, kw_only=True):
    days: list[str]
    groups: list[CostGroup]
    sums: dict[str, int]


def last_days(last: date, count: int) -> list[str]:
    return [(last - timedelta(days=back)).isoformat() for back in range(count - 1, -1, -1)]


def build_cost_report(tallies: Iterable[Tally], days: Sequence[str], by: str) -> CostReport:
    """Return the cost by group, the most expensive first; groups beyond the limit become `OTHERS`."""
    place = KINDS["total"].index(by)
    at = {day: index for index, day in enumerate(days)}
    groups: dict[str, CostGroup] = {}
    for tally in tallies:
        name = tally.labels[place]
        group = groups.setdefault(name, CostGroup(name=name, days=[0] * len(days), sums={}))
        group.days[at[tally.day]] += tally.sums.get("micro_usd", 0)
        _add_sums(group.sums, tally.sums)
    ranked = sorted(
        groups.values(),
        key=lambda group: (-group.sums.get("micro_usd", 0), -group.sums["requests"], group.name),
    )
    total: dict[str, int] = {}
    for group in ranked:
        _add_sums(total, group.sums)
    return CostReport(days=list(days), groups=_limit_groups(ranked), sums=total)


def _limit_groups(ranked: list[CostGroup]) -> list[CostGroup]:
    if len(ranked) <= _MAX_GROUPS + 1:
        return ranked
    rest = CostGroup(name=OTHERS, days=[0] * len(ranked[0].days), sums={})
    for one in ranked[_MAX_GROUPS:]:
        rest.days = [mine + more for mine, more in zip(rest.days, one.days, strict=True)]
        _add_sums(rest.sums, one.sums)
    return [*ranked[:_MAX_GROUPS], rest]


def _add_sums(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount


_DEFAULT_DAYS = 30
_NO_CALLERS = (OTHER_LABEL, NO_LABEL, OTHERS)


async def get_models(request: RequestContext, response: ResponseWriter) -> None:
    """Reply with the use of each model, circuit breakers, keys, quotas and fallbacks."""
    gateway = request.gateway
    entries = await newest_entries(request, SUMMARIZED_REQUESTS)
    records = await asyncio.to_thread(decode_records, entries)
    models = summarize_models(records, cost_function(gateway))
    body = {
        "of": len(records),
        "rows": models,
        "breakers": _failing_breakers(gateway),
        "keys": await _key_usage(gateway, models, records),
        "fuses": await _quota_usage(gateway, records),
        "fallbacks": gateway.config.models.fallbacks,
    }
    await send_json(response, body)


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
    reported = await require_store(gateway.key_pool.reported_cooldowns([one.name for one in used]))
    usage = [KeyUsage(name=state.name, rests=dict(state.cooldowns_s)) for state in gateway.key_pool.states()]
    for key in usage:
        key.rests = {model: 0.0 for name, model in reported if name == key.name} | key.rests
    count_attempts(usage, records)
    return usage


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
    usage: list[QuotaUsage] = []
    for caller, charge in charges:
        _, window, unit = parse_charge_name(charge.name)
        scale = MICROS_PER_USD if unit == "usd" else 1
        usage.append(
            QuotaUsage(
                caller=caller_name(caller, gateway.caller_names),
                window=window,
                unit=unit,
                used=used.get(charge.name, 0) / scale,
                limit=charge.limit / scale,
                ends_ms=charge.ends_s * 1000,
            )
        )
    return usage


async def get_cost(request: RequestContext, response: ResponseWriter) -> None:
    """Reply with the cost of the last `days`, grouped `by` one of `COST_GROUPINGS`."""
    count = read_page_size(request.query, "days", _DEFAULT_DAYS, LEDGER_DAYS)
    by = request.query.get("by", COST_GROUPINGS[0])
    if by not in COST_GROUPINGS:
        raise InvalidRequest(f"must be one of {', '.join(COST_GROUPINGS)}", where="by")
    days = last_days(datetime.now(UTC).date(), count)
    body: Any = build_cost_report(await _read_tallies(request, days), days, by)
    if by == "key":
        for one in body.groups:
            one.name = (
                one.name if one.name in _NO_CALLERS else caller_name(one.name, request.gateway.caller_names)
            )
    await send_json(response, body)


async def _read_tallies(request: RequestContext, days: Sequence[str]) -> Sequence[Tally]:
    """Return the sums per day.

    A caller without a key may see only requests since the start of the gateway. The stored sums have no time
    of day, so for such a caller they are computed from the requests themselves.
    """
    gateway = request.gateway
    if request.caller.key_hash:
        return await require_store(gateway.store.ledger.tallies("total", days[0], days[-1]))
    entries = await newest_entries(request, MAX_LEDGER_ENTRIES)
    sums = await asyncio.to_thread(lambda: tallies_of_all(decode_records(entries), gateway.config.limits))
    return [one for one in sums if one.kind == "total" and one.day in days]
