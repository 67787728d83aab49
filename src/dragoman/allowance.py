"""How much the tools of one answer may be used."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from dragoman.ir import ToolCall, ToolResult
from dragoman.repeats import Repeats


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Of one answer."""

    max_rounds: int = 16  # with calls of ours
    max_output_bytes: int = 4 * 1024 * 1024  # of all results together
    max_repeats: int = 3  # the same call with the same answer

    def both(self, other: Limits) -> Limits:
        """The tighter of two, each way."""
        return Limits(
            max_rounds=min(self.max_rounds, other.max_rounds),
            max_output_bytes=min(self.max_output_bytes, other.max_output_bytes),
            max_repeats=min(self.max_repeats, other.max_repeats),
        )


class Allowance:
    """What is left of the limits."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._repeats = Repeats()
        self._bytes = 0

    def spend(self, rounds: int, answered: Iterable[tuple[ToolCall, ToolResult]]) -> str:
        """After so many rounds, these answers: why this is enough, or nothing."""
        times = 0
        for call, result in answered:
            self._bytes += len(msgspec.json.encode(result))
            times = max(times, self._repeats.count(call, result))
        if rounds >= self._limits.max_rounds:
            return f"they were used {rounds} times in a row"
        if self._bytes > self._limits.max_output_bytes:
            return f"they have answered {self._bytes:,} bytes"
        if times >= self._limits.max_repeats:
            return "the same call gave the same answer again and again"
        return ""
