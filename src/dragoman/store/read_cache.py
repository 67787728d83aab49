"""A read cache for a store, so that the same history is not looked up again with every turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping

READ_CACHE_BYTES = 32 * 1024 * 1024
_ENTRY_BYTES = 200


class ReadCache:
    """Values with the second in which they were written; the oldest entries are evicted first.

    Missing keys are cached too: a value that a client can refer to was written before the client received its
    key.
    """

    def __init__(self, max_bytes: int = READ_CACHE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, tuple[str | None, int]] = OrderedDict()

    def find(self, keys: Collection[str]) -> tuple[dict[str, tuple[str | None, int]], list[str]]:
        """Return the cached entries, and the keys that are not cached."""
        known: dict[str, tuple[str | None, int]] = {}
        unknown: list[str] = []
        for key in keys:
            kept = self._entries.get(key)
            if kept is None:
                unknown.append(key)
            else:
                known[key] = kept
        return known, unknown

    def put(self, values: Mapping[str, tuple[str | None, int]]) -> None:
        kept, more = self._entries, 0
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
