"""Quotas on requests, tokens and money per key and per session, and on repeated tool calls (known problems P1, P5).

The estimated usage of a request is reserved before it starts and corrected when it has ended, so that
concurrent requests, also at several replicas, cannot exceed a limit together. This module only computes the
charges; `dragoman.gateway.limits.quota_meter` applies them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from dragoman.config import Config
from dragoman.config.model import LimitsConfig, QuotaConfig, QuotaWindow
from dragoman.errors import DragomanError
from dragoman.ir import Message, ToolCall, ToolResult, Usage
from dragoman.observe.prices import Price, cost_usd
from dragoman.observe.usage import MICROS_PER_USD
from dragoman.store import Charge
from dragoman.translation.tool_loop import LoopDetector


class QuotaSubject(msgspec.Struct, frozen=True):
    """The subject of quotas: the caller, and the session if it is known."""

    caller: str
    session: str = ""


class UsageEstimate(msgspec.Struct, frozen=True):
    """The tokens and the cost of a request, estimated or final."""

    tokens: int = 0
    micro_usd: int = 0


class ReservedCharges(msgspec.Struct, frozen=True):
    """The charges that were made before a request, and the estimate they are based on."""

    charges: tuple[Charge, ...] = ()
    estimate: UsageEstimate = UsageEstimate()


def estimate_usage(usage: Usage, price: Price | None) -> UsageEstimate:
    micro = math.ceil(cost_usd(usage, price) * MICROS_PER_USD) if price is not None else 0
    return UsageEstimate(usage.input_tokens + usage.output_tokens, micro)


def needs_price(limits: LimitsConfig) -> bool:
    """Return whether any limit is in dollars."""
    return any(quota.usd for quota in (*limits.key.values(), *limits.session.values()))


def reserve_charges(
    limits: LimitsConfig, subject: QuotaSubject, estimate: UsageEstimate, now: datetime
) -> ReservedCharges:
    """Return the charges of one request against every limit that applies to `subject`."""
    charges = [*_quota_charges("key", limits.key, subject.caller, estimate, now)]
    if subject.session:
        charges += _quota_charges(
            "session", limits.session, f"{subject.caller}/{subject.session}", estimate, now
        )
    return ReservedCharges(tuple(charges), estimate)


def raise_charges(reservation: ReservedCharges, wanted: UsageEstimate) -> ReservedCharges:
    """Return the additional charges up to `wanted`, and the raised estimate; nothing is refunded.

    The result's `charges` are only the additions, its `estimate` is the total.
    """
    additions, before = _difference(reservation, wanted), reservation.estimate
    charges = (
        msgspec.structs.replace(charge, amount=additions[_unit(charge.name)])
        for charge in reservation.charges
        if additions.get(_unit(charge.name), 0) > 0
    )
    highest = UsageEstimate(max(before.tokens, wanted.tokens), max(before.micro_usd, wanted.micro_usd))
    return ReservedCharges(tuple(charges), highest)


def settle_charges(reservation: ReservedCharges, used: UsageEstimate) -> list[Charge]:
    """Return the charges, positive or negative, that correct a reservation to the actual usage.

    They apply to the windows in which the request was reserved, even if those have ended.
    """
    corrections = _difference(reservation, used)
    changes = ((charge, corrections.get(_unit(charge.name), 0)) for charge in reservation.charges)
    return [msgspec.structs.replace(charge, amount=amount, limit=0) for charge, amount in changes if amount]


def _difference(reservation: ReservedCharges, wanted: UsageEstimate) -> dict[str, int]:
    return {
        "tokens": wanted.tokens - reservation.estimate.tokens,
        "usd": wanted.micro_usd - reservation.estimate.micro_usd,
    }


def quota_exceeded(charge_name: str, reservation: ReservedCharges, now: datetime) -> DragomanError:
    """Return the error for an exceeded quota, with its limit and the time until the window ends."""
    charge = next(charge for charge in reservation.charges if charge.name == charge_name)
    subject_kind, window, unit = parse_charge_name(charge_name)
    limit = f"${charge.limit / MICROS_PER_USD:g}" if unit == "usd" else f"{charge.limit:,} {unit}"
    why = (
        f"the limit of {limit} a {window} for this {subject_kind} is reached (limits.{subject_kind}.{window})"
    )
    wait_s = max(1.0, charge.ends_s - now.timestamp())
    return DragomanError(why, kind="quota", retry_after_s=wait_s, code="fuse")


def find_looping_tool(messages: Iterable[Message], limit: int) -> str:
    """Return the tool that was called `most` times in a row with equal arguments and results, or ""."""
    detector = LoopDetector()
    calls: dict[str, ToolCall] = {}
    looping = ""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult) and part.call_id in calls:
                call = calls[part.call_id]
                looping = call.name if detector.count(call, part) >= limit else ""
    return looping


def refuse_loop(config: Config, messages: Iterable[Message]) -> None:
    """Raise DragomanError if the history ends in a loop of equal tool calls (limits.repeated_calls)."""
    limit = config.limits.repeated_calls
    name = find_looping_tool(messages, limit) if limit else ""
    if name:
        why = f"{name} was called {limit} times with the same arguments and the same result (limits.repeated_calls)"
        raise DragomanError(why, kind="quota", code="fuse")


def _quota_charges(
    subject_kind: str,
    quotas: Mapping[QuotaWindow, QuotaConfig],
    owner: str,
    estimate: UsageEstimate,
    now: datetime,
) -> Iterable[Charge]:
    for window, quota in quotas.items():
        start, ends_s = _window(window, now)
        limits = (
            ("requests", 1, quota.requests),
            ("tokens", estimate.tokens, quota.tokens),
            ("usd", estimate.micro_usd, round(quota.usd * MICROS_PER_USD)),
        )
        for unit, amount, limit in limits:
            if limit:
                name = f"{subject_kind}|{window}|{owner}|{start}|{unit}"
                yield Charge(name=name, amount=amount, limit=limit, ends_s=ends_s)


def parse_charge_name(name: str) -> tuple[str, str, str]:
    """Return the kind of subject (key or session), the window and the unit of a charge."""
    subject_kind, window, *_, unit = name.split("|")
    return subject_kind, window, unit


def _unit(name: str) -> str:
    return parse_charge_name(name)[2]


def _window(window: QuotaWindow, now: datetime) -> tuple[str, int]:
    """Return the start of the current window as text for the meter's name, and the Unix time of its end."""
    now = now.astimezone(UTC)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    starts = {
        "minute": now.replace(second=0, microsecond=0),
        "hour": now.replace(minute=0, second=0, microsecond=0),
        "day": day,
        "month": day.replace(day=1),
    }
    lengths = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}
    start = starts[window]
    end = start + lengths[window] if window in lengths else (start + timedelta(days=32)).replace(day=1)
    return start.strftime("%Y%m%d%H%M"), int(end.timestamp())
