"""Models and keys as the dashboard shows them: how they do, and what makes them wait."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from dragoman.observe.record import Record


class KeyShown(msgspec.Struct, kw_only=True):
    """A key of Google's, by its name; `rests` are seconds by model, 0 where only another replica knows how long."""

    name: str
    rests: dict[str, float] = {}
    attempts: int = 0
    failures: dict[str, int] = {}


class FuseShown(msgspec.Struct, frozen=True, kw_only=True):
    """A limit of one gateway key's: what of it is used."""

    caller: str
    window: str
    unit: str
    used: float
    limit: float
    ends_ms: int


def count_attempts(keys: Iterable[KeyShown], records: Iterable[Record]) -> None:
    """How each key did; those that clients brought themselves have no name."""
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
