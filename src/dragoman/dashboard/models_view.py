"""API keys and quotas as the dashboard shows them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from dragoman.observe.record import RequestRecord


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
