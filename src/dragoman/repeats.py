"""Detect a model that repeats the same call without progress."""

from __future__ import annotations

import msgspec

from dragoman import ir


class LoopDetector:
    """Counts consecutive calls with the same arguments and the same result.

    A different result is progress: running the tests after every edit is not a loop.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, bytes], tuple[int, ir.ToolResult]] = {}

    def count(self, call: ir.ToolCall, result: ir.ToolResult) -> int:
        """Record a call; return how many times in a row it had this result."""
        key = (call.name, _canonical(call.args))
        answer = msgspec.structs.replace(result, call_id="")
        times, before = self._seen.get(key, (0, answer))
        times = times + 1 if before == answer else 1
        self._seen[key] = times, answer
        return times


def _canonical(args: bytes) -> bytes:
    """Return the arguments with sorted keys and without white space, so that equal objects compare equal."""
    try:
        return msgspec.json.encode(msgspec.json.decode(args), order="deterministic")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return args
