"""The same call again and again is a loop."""

from __future__ import annotations

import msgspec

from dragoman import ir


class Repeats:
    """Counts calls that are made again with the same arguments and answered the same way.

    Another answer is progress: running the tests after every edit is no loop.
    """

    def __init__(self) -> None:
        self._seen: dict[tuple[str, bytes], tuple[int, ir.ToolResult]] = {}

    def count(self, call: ir.ToolCall, result: ir.ToolResult) -> int:
        key = (call.name, _canonical(call.args))
        answer = msgspec.structs.replace(result, call_id="")
        times, before = self._seen.get(key, (0, answer))
        times = times + 1 if before == answer else 1
        self._seen[key] = times, answer
        return times


def _canonical(args: bytes) -> bytes:
    """The same object in another order or spacing is the same call."""
    try:
        return msgspec.json.encode(msgspec.json.decode(args), order="deterministic")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return args
