"""Counters per tool: calls, outcomes, time and bytes."""

from __future__ import annotations

import msgspec

from dragoman.tools.hooks import Outcome

#: Key for all calls of tools that do not exist: a model can invent any number of names, so they share one entry.
UNKNOWN_TOOL = "(unknown)"


class ToolMetrics(msgspec.Struct, kw_only=True):
    """The counters of one tool."""

    calls: int = 0
    errors: int = 0  # all error results, including the four kinds below
    timeouts: int = 0
    refused: int = 0
    invalid: int = 0  # arguments that do not match the schema
    cancelled: int = 0
    cached: int = 0
    seconds: float = 0.0
    bytes: int = 0


_OUTCOME_COUNTERS: dict[Outcome, str] = {
    "timeout": "timeouts",
    "refused": "refused",
    "invalid": "invalid",
    "cancelled": "cancelled",
}


def count_call(metrics: ToolMetrics, outcome: Outcome, *, is_error: bool, seconds: float, size: int) -> None:
    """Add one call to the counters."""
    metrics.calls += 1
    metrics.errors += is_error
    metrics.seconds += seconds
    metrics.bytes += size
    if outcome in _OUTCOME_COUNTERS:
        name = _OUTCOME_COUNTERS[outcome]
        setattr(metrics, name, getattr(metrics, name) + 1)
