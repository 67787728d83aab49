"""A read cache for a store, so that the same history is not looked up again with every turn."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping

READ_CACHE_BYTES = 32 * 1024 * 1024
_ENTRY_BYTES = 200  # estimated memory of an entry besides its characters


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
        cached: dict[str, tuple[str | None, int]] = {}
        missing: list[str] = []
        for key in keys:
            entry = self._entries.get(key)
            if entry is None:
                missing.append(key)
            else:
                cached[key] = entry
        return cached, missing

    def put(self, values: Mapping[str, tuple[str | None, int]]) -> None:
        entries, added = self._entries, 0
        for key, (value, written) in values.items():
            if key in entries:
                added -= _size(key, entries.pop(key)[0])
            entries[key] = value, written
            added += _size(key, value)
        self._bytes += added
        while self._bytes > self._max_bytes:
            oldest, (evicted, _) = entries.popitem(last=False)
            self._bytes -= _size(oldest, evicted)


def _size(key: str, value: str | None) -> int:
    return _ENTRY_BYTES + len(key) + len(value or "")
