"""Cost over time: daily tallies grouped by model, client, key or dialect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta

import msgspec

from dragoman.observe.usage import KINDS, StoredTally

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


def last_days(last: date, many: int) -> list[str]:
    return [(last - timedelta(days=back)).isoformat() for back in range(many - 1, -1, -1)]


def build_cost_report(tallies: Iterable[StoredTally], days: Sequence[str], by: str) -> CostReport:
    """Return the cost by group, the most expensive first; groups beyond the limit become `OTHERS`."""
    place = KINDS["total"].index(by)
    at = {day: index for index, day in enumerate(days)}
    found: dict[str, CostGroup] = {}
    for tally in tallies:
        name = tally.labels[place]
        one = found.setdefault(name, CostGroup(name=name, days=[0] * len(days), sums={}))
        one.days[at[tally.day]] += tally.sums.get("micro_usd", 0)
        _add_sums(one.sums, tally.sums)
    ranked = sorted(
        found.values(), key=lambda one: (-one.sums.get("micro_usd", 0), -one.sums["requests"], one.name)
    )
    total: dict[str, int] = {}
    for one in ranked:
        _add_sums(total, one.sums)
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
