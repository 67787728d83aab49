"""Usage and cost of requests as daily sums: by caller, client, dialect and model, by session, and by tool.

No I/O. Requests whose price is unknown are counted as `unpriced`, not as free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from dragoman.config.model import LimitsConfig
from dragoman.dialects import gemini
from dragoman.observe.prices import Price, cost_usd, list_price
from dragoman.observe.record import RequestRecord
from dragoman.store.base import Tally

MICROS_PER_USD = 1_000_000
NO_LABEL = "-"
CLIENT, GATEWAY = "client", "gateway"

#: The labels of each kind of tally.
KINDS: dict[str, tuple[str, ...]] = {
    "total": ("key", "client", "dialect", "model"),
    "session": ("key", "session"),
    "tool": ("tool", "by"),
}
_REQUEST_SUMS = (
    *("requests", "failed", "left", "input", "cached", "output", "thought", "micro_usd", "unpriced"),
    *("calls", "repairs", "sentinels", "retries", "ms", "wait_ms"),
)
#: The sums of each kind; a tally omits those that are 0.
SUMS: dict[str, tuple[str, ...]] = {
    "total": _REQUEST_SUMS,
    "session": _REQUEST_SUMS,
    "tool": ("calls", "results", "failed", "repairs", "bytes", "ms", "timed"),
}
#: How usage can be grouped: the kind of tally, and which of its labels; none for "day".
GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "day": ("total", ()),
    "model": ("total", ("model",)),
    "session": ("session", ("key", "session")),
    "tool": ("tool", ("tool", "by")),
    "client": ("total", ("client",)),
    "key": ("total", ("key",)),
    "dialect": ("total", ("dialect",)),
}
_MAX_CACHED_PRICES = 256
_MAX_CACHED_CLIENTS = 256
_DAY_S = 86_400
_CLIENT_NAME = re.compile(r"[\w.@+-]{1,40}")


class UsageGroup(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of all tallies with the same names."""

    names: tuple[str, ...]
    sums: dict[str, int]


def is_counted(record: RequestRecord) -> bool:
    """Return whether the request counts as usage: an authenticated caller asked for a model's answer."""
    asked = record.model or record.asked_model or record.error
    return bool(asked and record.caller and record.method == "POST")


def find_price(limits: LimitsConfig, *models: str) -> Price | None:
    """Return the price of the first model that has one; the settings take precedence over the built-in table."""
    names = [name for model in models if model for name in (model, gemini.ALIASES.get(model, model))]
    for name in names:
        own = limits.prices.get(name)
        if own is not None:
            cached = own.input if own.cached is None else own.cached
            return Price(input=own.input, output=own.output, cached=cached)
    return next((price for price in map(list_price, names) if price is not None), None)


class CostCalculator:
    """Compute costs, with a cache of prices."""

    def __init__(self, limits: LimitsConfig) -> None:
        self._limits = limits
        self._cache: dict[tuple[str, str], Price | None] = {}

    def cost_micro_usd(self, record: RequestRecord) -> int | None:
        """Return the list price in millionths of a dollar; None if the price is unknown."""
        usage = record.usage
        if not usage.input_tokens and not usage.output_tokens:
            return 0
        models = (record.answered_model, record.model)
        try:
            price = self._cache[models]
        except KeyError:
            price = self._find(models)
        return None if price is None else round(cost_usd(usage, price) * MICROS_PER_USD)

    def _find(self, models: tuple[str, str]) -> Price | None:
        if len(self._cache) >= _MAX_CACHED_PRICES:  # bounded, because clients choose the names
            self._cache.clear()
        price = self._cache[models] = find_price(self._limits, *models)
        return price


def cost_micro_usd(record: RequestRecord, limits: LimitsConfig) -> int | None:
    return CostCalculator(limits).cost_micro_usd(record)


def tallies_of(record: RequestRecord, limits: LimitsConfig) -> Iterator[Tally]:
    """Yield what a request adds to each tally, without sums that are 0."""
    return _tallies(record, CostCalculator(limits))


def tallies_of_all(records: Iterable[RequestRecord], limits: LimitsConfig) -> list[Tally]:
    """Return the merged tallies of all records; each price is looked up once."""
    prices = CostCalculator(limits)
    return merge(one for record in records for one in _tallies(record, prices))


def _tallies(record: RequestRecord, prices: CostCalculator) -> Iterator[Tally]:
    day = _day(int(record.started_s // _DAY_S))
    sums = _request_sums(record, prices)
    who = (record.caller, client_name(record.client), record.dialect or NO_LABEL, record.model or NO_LABEL)
    yield Tally(day=day, kind="total", labels=who, sums=sums)
    if record.session:
        yield Tally(day=day, kind="session", labels=(record.caller, record.session), sums=sums)
    if record.calls or record.own_calls or record.results or record.runs:
        for labels, tool_sums in _tool_sums(record).items():
            yield Tally(day=day, kind="tool", labels=labels, sums=tool_sums)


@lru_cache(maxsize=4)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * _DAY_S, UTC).date().isoformat()


@lru_cache(maxsize=_MAX_CACHED_CLIENTS)
def client_name(user_agent: str) -> str:
    """Return the first product name of a User-Agent without its version."""
    found = _CLIENT_NAME.match(user_agent)
    return found[0] if found else NO_LABEL


def repaired_tools(record: RequestRecord) -> Iterator[str]:
    """Yield the tool name of every call whose arguments were repaired."""
    mended = [note.where for note in record.notes if note.kind == "mended"]
    if not mended:  # the usual case
        return
    called = {*record.calls, *record.own_calls}
    for where in mended:
        # A tool name may contain dots. Notes about the client's request do not begin with the name of a call.
        yield from (name for name in called if where == name or where.startswith(f"{name}."))


def count_retries(record: RequestRecord) -> int:
    """Return how many attempts failed and were followed by another; rounds of gateway tools do not count."""
    attempts = record.attempts
    return sum(bool(attempt.error) for attempt in attempts[:-1]) if len(attempts) > 1 else 0


def _request_sums(record: RequestRecord, prices: CostCalculator) -> dict[str, int]:
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
            "repairs": sum(1 for _ in repaired_tools(record)) if notes else 0,
            "sentinels": sum(note.kind == "sentinel" for note in notes) if notes else 0,
            "retries": count_retries(record),
            "ms": record.total_ms,
            "wait_ms": record.wait_ms,
        }
    )


def _tool_sums(record: RequestRecord) -> dict[tuple[str, str], dict[str, int]]:
    found: dict[tuple[str, str], dict[str, int]] = {}

    def add(tool: str, by: str, **amounts: int) -> None:
        sums = found.setdefault((tool or NO_LABEL, by), {})
        for name, amount in amounts.items():
            if amount:
                sums[name] = sums.get(name, 0) + int(amount)

    for name in record.calls:
        add(name, CLIENT, calls=1)
    for name in record.own_calls:
        add(name, GATEWAY, calls=1)
    for name in repaired_tools(record):
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


def merge(sums: Iterable[Tally]) -> list[Tally]:
    """Add up sums with the same day, kind and labels."""
    found: dict[tuple[str, str, tuple[str, ...]], dict[str, int]] = {}
    for one in sums:
        _add(found.setdefault((one.day, one.kind, one.labels), {}), one.sums)
    return [
        Tally(day=day, kind=kind, labels=labels, sums=added) for (day, kind, labels), added in found.items()
    ]


def group_tallies(tallies: Iterable[Tally], by: str) -> list[UsageGroup]:
    """Sum tallies by the labels in `GROUPS[by]`; days are sorted by date, all others as `_rank` does."""
    kind, names = GROUPS[by]
    places = [KINDS[kind].index(name) for name in names]
    found: dict[tuple[str, ...], dict[str, int]] = {}
    for tally in tallies:
        key = tuple(tally.labels[place] for place in places) if places else (tally.day,)
        _add(found.setdefault(key, {}), tally.sums)
    groups = [UsageGroup(names=key, sums=sums) for key, sums in found.items()]
    return sorted(groups, key=(lambda one: (one.names,)) if by == "day" else _rank)


def total_sums(groups: Iterable[UsageGroup]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for one in groups:
        _add(sums, one.sums)
    return sums


def _rank(one: UsageGroup) -> tuple[object, ...]:
    """Sort by cost, then by tokens, then by number of requests and calls."""
    sums = one.sums
    tokens = sums.get("input", 0) + sums.get("output", 0)
    busy = sums.get("requests", 0) + sums.get("calls", 0)
    return -sums.get("micro_usd", 0), -tokens, -busy, one.names


def _add(sums: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        sums[name] = sums.get(name, 0) + amount


def _without_zeros(sums: Mapping[str, int]) -> dict[str, int]:
    return {name: int(amount) for name, amount in sums.items() if amount}
