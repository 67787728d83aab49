"""A store of items that expire, bounded in bytes and number; the oldest items are evicted first."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

import msgspec

Item = TypeVar("Item")


class _StoredItem(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    item: Item
    expires: datetime
    size: int


class ResourceStore(Generic[Item]):
    """Items by name, without those that have expired. Not thread-safe: the owner holds a lock."""

    def __init__(self, *, most_bytes: int, most_items: int = 1000) -> None:
        self.max_bytes = most_bytes
        self._max_items = most_items
        self._items: dict[str, _StoredItem[Item]] = {}
        self._bytes = 0

    def put(self, name: str, item: Item, *, expires: datetime, size: int) -> None:
        """Store an item as the newest, and evict the oldest ones that no longer fit."""
        self.delete(name)
        self._items[name] = _StoredItem(item=item, expires=expires, size=size)
        self._bytes += size
        while self._bytes > self.max_bytes or len(self._items) > self._max_items:
            self.delete(next(iter(self._items)))

    def get(self, name: str, now: datetime) -> Item | None:
        kept = self._items.get(name)
        if kept is None:
            return None
        if kept.expires <= now:
            self.delete(name)
            return None
        return kept.item

    def delete(self, name: str) -> None:
        kept = self._items.pop(name, None)
        if kept is not None:
            self._bytes -= kept.size

    def newest_first(self, now: datetime) -> list[Item]:
        """Return all items, newest first."""
        for name in [name for name, kept in self._items.items() if kept.expires <= now]:
            self.delete(name)
        return [kept.item for kept in reversed(self._items.values())]
