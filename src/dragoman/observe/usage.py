"""What a request used and what it cost, as sums to be added up: by caller, client, dialect and model, by session, by
tool. Pure; a price that is not known is counted as unknown, never as nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Protocol

import msgspec

from dragoman.config.limits import LimitsConfig
from dragoman.dialects import gemini
from dragoman.observe.prices import Price, cost_usd, price_of
from dragoman.observe.record import Record

MICRO = 1_000_000
NOBODY = "-"
CLIENT, GATEWAY = "client", "gateway"

#: The labels of each kind of sums.
KINDS: dict[str, tuple[str, ...]] = {
    "total": ("key", "client", "dialect", "model"),
    "session": ("key", "session"),
    "tool": ("tool", "by"),
}
_REQUEST_SUMS = (
    *("requests", "failed", "left", "input", "cached", "output", "thought", "micro_usd", "unpriced"),
    *("calls", "repairs", "sentinels", "retries", "ms", "wait_ms"),
)
#: The sums of each kind; a tally has only those that are not 0.
SUMS: dict[str, tuple[str, ...]] = {
    "total": _REQUEST_SUMS,
    "session": _REQUEST_SUMS,
    "tool": ("calls", "results", "failed", "repairs", "bytes", "ms", "timed"),
}
#: What usage can be looked at by: of which kind, and which of its labels; a day is no label.
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "day": ("total", ()),
    "model": ("total", ("model",)),
    "session": ("session", ("key", "session")),
    "tool": ("tool", ("tool", "by")),
    "client": ("total", ("client",)),
    "key": ("total", ("key",)),
    "dialect": ("total", ("dialect",)),
}
_KNOWN_PRICES = 256
_KNOWN_CLIENTS = 256
_DAY_S = 86_400
_CLIENT_NAME = re.compile(r"[\w.@+-]{1,40}")


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    """What one or many requests add to a tally; sums that are 0 are left out."""

    day: str
    kind: str
    labels: tuple[str, ...]
    sums: dict[str, int]


class Tallied(Protocol):
    """As a store gives them back."""

    @property
    def day(self) -> str: ...
    @property
    def labels(self) -> tuple[str, ...]: ...
    @property
    def sums(self) -> dict[str, int]: ...


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that has the same names."""

    names: tuple[str, ...]
    sums: dict[str, int]


def is_counted(record: Record) -> bool:
    """Whether somebody who may ask wanted an answer of a model's: no probe, no list, no stranger."""
    asked = record.model or record.asked_model or record.error
    return bool(asked and record.caller and record.method == "POST")


def find_price(limits: LimitsConfig, *models: str) -> Price | None:
    """Of the first of these names that has one; the settings know better than the table."""
    names = [name for model in models if model for name in (model, gemini.ALIASES.get(model, model))]
    for name in names:
        own = limits.prices.get(name)
        if own is not None:
            cached = own.input if own.cached is None else own.cached
            return Price(input=own.input, output=own.output, cached=cached)
    return next((price for price in map(price_of, names) if price is not None), None)


class Prices:
    """Remembers what it found."""

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        self._known: dict[tuple[str, str], Price | None] = {}

    def cost_micro_usd(self, record: Record) -> int | None:
        """At list price, in millionths of a dollar; None if nobody knows the price."""
        usage = record.usage
        if not usage.input_tokens and not usage.output_tokens:
            return 0
        models = (record.answered_model, record.model)
        try:
            price = self._known[models]
        except KeyError:
            price = self._find(models)
        return None if price is None else round(cost_usd(usage, price) * MICRO)

    def _find(self, models: tuple[str, str]) -> Price | None:
        if len(self._known) >= _KNOWN_PRICES:  # names come from clients
            self._known.clear()
        price = self._known[models] = find_price(self._limits, *models)
        return price


def cost_micro_usd(record: Record, limits: LimitsConfig) -> int | None:
    return Prices(limits).cost_micro_usd(record)


def tallies_of(record: Record, limits: LimitsConfig) -> Iterator[Sums]:
    return _tallies(record, Prices(limits))


def tallies_of_all(records: Iterable[Record], limits: LimitsConfig) -> list[Sums]:
    """Merged; what the records have in common is looked up once."""
    prices = Prices(limits)
    return merge(one for record in records for one in _tallies(record, prices))


def _tallies(record: Record, prices: Prices) -> Iterator[Sums]:
    day = _day(int(record.started_s // _DAY_S))
    sums = _request_sums(record, prices)
    who = (record.caller, client_name(record.client), record.dialect or NOBODY, record.model or NOBODY)
    yield Sums(day=day, kind="total", labels=who, sums=sums)
    if record.session:
        yield Sums(day=day, kind="session", labels=(record.caller, record.session), sums=sums)
    if record.calls or record.own_calls or record.results or record.runs:
        for labels, tool_sums in _tool_sums(record).items():
            yield Sums(day=day, kind="tool", labels=labels, sums=tool_sums)


@lru_cache(maxsize=4)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * _DAY_S, UTC).date().isoformat()


@lru_cache(maxsize=_KNOWN_CLIENTS)
def client_name(user_agent: str) -> str:
    """The first product a client says it is, without its version."""
    found = _CLIENT_NAME.match(user_agent)
    return found[0] if found else NOBODY


def mended_tools(record: Record) -> Iterator[str]:
    """The tool of every argument of the model's that was mended."""
    mended = [note.where for note in record.notes if note.kind == "mended"]
    if not mended:  # nearly always
        return
    called = {*record.calls, *record.own_calls}
    for where in mended:
        # A name may have dots of its own; what a client's own document had wrong is no call of this answer.
        yield from (name for name in called if where == name or where.startswith(f"{name}."))


def retries(record: Record) -> int:
    """Attempts that failed and were not the last: the rounds of the gateway's own tools are none."""
    attempts = record.attempts
    return sum(bool(attempt.error) for attempt in attempts[:-1]) if len(attempts) > 1 else 0


def _request_sums(record: Record, prices: Prices) -> dict[str, int]:
    usage, cost, notes = record.usage, prices.cost_micro_usd(record), record.notes
    return _without_zeros(
        {
            "requests": 1,
            "failed": bool(record.error),
            "left": record.left,
            "input": usage.input_tokens,
            "cached": usage.cached_tokens,
            "output": usage.output_tokens,
            "thought": usage.thought_tokens,
            "micro_usd": cost or 0,
            "unpriced": cost is None,
            "calls": len(record.calls) + len(record.own_calls),
            "repairs": sum(1 for _ in mended_tools(record)) if notes else 0,
            "sentinels": sum(note.kind == "sentinel" for note in notes) if notes else 0,
            "retries": retries(record),
            "ms": record.total_ms,
            "wait_ms": record.wait_ms,
        }
    )


def _tool_sums(record: Record) -> dict[tuple[str, str], dict[str, int]]:
    found: dict[tuple[str, str], dict[str, int]] = {}

    def add(tool: str, by: str, **amounts: int) -> None:
        sums = found.setdefault((tool or NOBODY, by), {})
        for name, amount in amounts.items():
            if amount:
                sums[name] = sums.get(name, 0) + int(amount)

    for name in record.calls:
        add(name, CLIENT, calls=1)
    for name in record.own_calls:
        add(name, GATEWAY, calls=1)
    for name in mended_tools(record):
        add(name, CLIENT if name in record.calls else GATEWAY, repairs=1)
    for result in record.results:
        timed = result.ms is not None
        add(
            result.name,
            CLIENT,
            results=1,
            failed=result.failed,
            bytes=result.size,
            ms=result.ms or 0,
            timed=timed,
        )
    for run in record.runs:
        add(
            run.name,
            GATEWAY,
            results=not run.later,
            failed=run.failed,
            bytes=run.size,
            ms=run.ms,
            timed=1,
        )
    return found


def merge(sums: Iterable[Sums]) -> list[Sums]:
    """Those of the same day, kind and labels as one."""
    found: dict[tuple[str, str, tuple[str, ...]], dict[str, int]] = {}
    for one in sums:
        _add(found.setdefault((one.day, one.kind, one.labels), {}), one.sums)
    return [
        Sums(day=day, kind=kind, labels=labels, sums=added) for (day, kind, labels), added in found.items()
    ]


def group(tallies: Iterable[Tallied], by: str) -> list[Group]:
    """Summed by the names that `GROUPS` has for it; days in their order, the rest as `rank` says."""
    kind, names = GROUPS[by]
    places = [KINDS[kind].index(name) for name in names]
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for tally in tallies:
        key = tuple(tally.labels[place] for place in places) if places else (tally.day,)
        _add(found.setdefault(key, {}), tally.sums)
    groups = [Group(names=key, sums=sums) for key, sums in found.items()]
    return sorted(groups, key=(lambda one: (one.names,)) if by == "day" else _rank)


def total(groups: Iterable[Group]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for one in groups:
        _add(sums, one.sums)
    return sums


def _rank(one: Group) -> tuple[object, ...]:
    """The dearest first, then the busiest."""
    sums = one.sums
    tokens = sums.get("input", 0) + sums.get("output", 0)
    busy = sums.get("requests", 0) + sums.get("calls", 0)
    return -sums.get("micro_usd", 0), -tokens, -busy, one.names


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount


def _without_zeros(sums: Mapping[str, int]) -> dict[str, int]:
    return {name: int(amount) for name, amount in sums.items() if amount}
