"""Hard limits outside the agent: requests, tokens, money and loops, per key and per conversation (pains P1, P5).

What a request will use is reserved before it starts and settled when it is over, so that many at once, at
several replicas, never pass a limit together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

import msgspec

from dragoman.config import Config
from dragoman.config.limits import Fuse, LimitsConfig, Window
from dragoman.errors import DragomanError
from dragoman.ir import Message, ToolCall, ToolResult, Usage
from dragoman.observe.prices import Price, cost_usd
from dragoman.observe.usage import find_price as known_price
from dragoman.repeats import Repeats
from dragoman.store import Charge

_MICRO = 1_000_000


class Who(msgspec.Struct, frozen=True):
    """Whose meters a request runs on: the caller, and the conversation if it is known."""

    caller: str
    session: str = ""


class Estimate(msgspec.Struct, frozen=True):
    """What a request uses, before or after it is known."""

    tokens: int = 0
    micro_usd: int = 0


class Reservation(msgspec.Struct, frozen=True):
    """What was put on the meters before the request; its numbers are settled when the request is over."""

    charges: tuple[Charge, ...] = ()
    estimate: Estimate = Estimate()


def find_price(model: str, limits: LimitsConfig) -> Price | None:
    return known_price(limits, model)


def estimate_of(usage: Usage, price: Price | None) -> Estimate:
    micro = math.ceil(cost_usd(usage, price) * _MICRO) if price is not None else 0
    return Estimate(usage.input_tokens + usage.output_tokens, micro)


def needs_price(limits: LimitsConfig) -> bool:
    return any(fuse.usd for fuse in (*limits.key.values(), *limits.session.values()))


def reserve(limits: LimitsConfig, who: Who, estimate: Estimate, now: datetime) -> Reservation:
    charges = [*_charges("key", limits.key, who.caller, estimate, now)]
    if who.session:
        charges += _charges("session", limits.session, f"{who.caller}/{who.session}", estimate, now)
    return Reservation(tuple(charges), estimate)


def raise_reservation(reservation: Reservation, wanted: Estimate) -> Reservation:
    """What must be reserved besides, each within its limit, and what all of it comes to; nothing is given back."""
    more, before = _more(reservation, wanted), reservation.estimate
    charges = (
        msgspec.structs.replace(charge, amount=more[_unit(charge.name)])
        for charge in reservation.charges
        if more.get(_unit(charge.name), 0) > 0
    )
    most = Estimate(max(before.tokens, wanted.tokens), max(before.micro_usd, wanted.micro_usd))
    return Reservation(tuple(charges), most)


def settle(reservation: Reservation, used: Estimate) -> list[Charge]:
    """What is still to be added to the meters, or given back; a window that has ended meanwhile keeps its own."""
    more = _more(reservation, used)
    changes = ((charge, more.get(_unit(charge.name), 0)) for charge in reservation.charges)
    return [msgspec.structs.replace(charge, amount=amount, limit=0) for charge, amount in changes if amount]


def _more(reservation: Reservation, wanted: Estimate) -> dict[str, int]:
    return {
        "tokens": wanted.tokens - reservation.estimate.tokens,
        "usd": wanted.micro_usd - reservation.estimate.micro_usd,
    }


def blown(charge_name: str, reservation: Reservation, now: datetime) -> DragomanError:
    """The refusal, with what is spent and when it begins anew."""
    charge = next(one for one in reservation.charges if one.name == charge_name)
    whose, window, unit = (charge_name.split("|")[place] for place in (0, 1, -1))
    limit = f"${charge.limit / _MICRO:g}" if unit == "usd" else f"{charge.limit:,} {unit}"
    why = f"the limit of {limit} a {window} for this {whose} is reached (limits.{whose}.{window})"
    wait_s = max(1.0, charge.ends_s - now.timestamp())
    return DragomanError(why, kind="quota", retry_after_s=wait_s, code="fuse")


def looping_call(messages: Iterable[Message], most: int) -> str:
    """The name of a tool that was called so often in a row with nothing new, or nothing."""
    repeats = Repeats()
    calls: dict[str, ToolCall] = {}
    looping = ""
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCall):
                calls[part.id] = part
            elif isinstance(part, ToolResult) and part.call_id in calls:
                call = calls[part.call_id]
                looping = call.name if repeats.count(call, part) >= most else ""
    return looping


def refuse_loop(config: Config, messages: Iterable[Message]) -> None:
    most = config.limits.repeated_calls
    name = looping_call(messages, most) if most else ""
    if name:
        why = f"{name} was called {most} times with the same arguments and the same result (limits.repeated_calls)"
        raise DragomanError(why, kind="quota", code="fuse")


def _charges(
    whose: str, fuses: Mapping[Window, Fuse], owner: str, estimate: Estimate, now: datetime
) -> Iterable[Charge]:
    for window, fuse in fuses.items():
        start, ends_s = _window(window, now)
        wanted = (
            ("requests", 1, fuse.requests),
            ("tokens", estimate.tokens, fuse.tokens),
            ("usd", estimate.micro_usd, round(fuse.usd * _MICRO)),
        )
        for unit, amount, limit in wanted:
            if limit:
                name = f"{whose}|{window}|{owner}|{start}|{unit}"
                yield Charge(name=name, amount=amount, limit=limit, ends_s=ends_s)


def _unit(name: str) -> str:
    return name.rpartition("|")[2]


def _window(window: Window, now: datetime) -> tuple[str, int]:
    """The beginning of the window that is running, as a word, and the second it ends in."""
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
