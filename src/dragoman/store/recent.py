"""What a store was asked for lately, so that the same history is not looked up with every turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping

RECENT_BYTES = 32 * 1024 * 1024
_ENTRY_BYTES = 200


class Recent:
    """Values with the second they were written in; the oldest are forgotten when there are too many.

    A key that was not found is never looked for again: what a client can bring back was written before the
    client got it.
    """

    def __init__(self, max_bytes: int = RECENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, tuple[str | None, int]] = OrderedDict()

    def find(self, keys: Collection[str]) -> tuple[dict[str, tuple[str | None, int]], list[str]]:
        """What is known of these keys, and which of them nobody asked for yet."""
        known: dict[str, tuple[str | None, int]] = {}
        unknown: list[str] = []
        for key in keys:
            kept = self._kept.get(key)
            if kept is None:
                unknown.append(key)
            else:
                known[key] = kept
        return known, unknown

    def keep(self, values: Mapping[str, tuple[str | None, int]]) -> None:
        kept, more = self._kept, 0
        for key, (value, written) in values.items():
            if key in kept:
                more -= _weight(key, kept.pop(key)[0])
            kept[key] = value, written
            more += _weight(key, value)
        self._bytes += more
        while self._bytes > self._max_bytes:
            oldest, (forgotten, _) = kept.popitem(last=False)
            self._bytes -= _weight(oldest, forgotten)


def _weight(key: str, value: str | None) -> int:
    return _ENTRY_BYTES + len(key) + len(value or "")
