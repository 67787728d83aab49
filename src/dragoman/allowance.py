"""Limits for the gateway tools of one answer."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.ir import ToolCall, ToolResult
from dragoman.repeats import LoopDetector


class LoopLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits per answer."""

    max_rounds: int = 16  # rounds with calls of gateway tools
    max_output_bytes: int = 4 * 1024 * 1024  # total size of all results
    max_repeats: int = 3  # equal calls with equal results

    def stricter(self, other: LoopLimits) -> LoopLimits:
        """Return the stricter value of each limit."""
        return LoopLimits(
            max_rounds=min(self.max_rounds, other.max_rounds),
            max_output_bytes=min(self.max_output_bytes, other.max_output_bytes),
            max_repeats=min(self.max_repeats, other.max_repeats),
        )


class LoopBudget:
    """Tracks the use of gateway tools against the limits."""

    def __init__(self, limits: LoopLimits) -> None:
        self._limits = limits
        self._loop_detector = LoopDetector()
        self._bytes = 0

    def spend(self, rounds: int, answered: Iterable[tuple[ToolCall, ToolResult]]) -> str:
        """Count the results of a round. Return why the loop must stop, or an empty string.

        `rounds` is the number of rounds so far, including this one.
        """
        times = 0
        for call, result in answered:
            self._bytes += len(msgspec.json.encode(result))
            times = max(times, self._loop_detector.count(call, result))
        if rounds >= self._limits.max_rounds:
            return f"they were used {rounds} times in a row"
        if self._bytes > self._limits.max_output_bytes:
            return f"they have answered {self._bytes:,} bytes"
        if times >= self._limits.max_repeats:
            return "the same call gave the same answer again and again"
        return ""
