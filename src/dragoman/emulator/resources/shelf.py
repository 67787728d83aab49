"""A store of items that expire, bounded in bytes and number; the oldest items are evicted first."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar

import msgspec

Item = TypeVar("Item")


class _Entry(msgspec.Struct, Generic[Item], frozen=True, kw_only=True):
    item: Item
    expires: datetime
    size: int


class Shelf(Generic[Item]):
    """Items by name, without those that have expired. Not thread-safe: the owner holds a lock."""

    def __init__(self, *, most_bytes: int, most_items: int = 1000) -> None:
        self.most_bytes = most_bytes
        self._most_items = most_items
        self._kept: dict[str, _Entry[Item]] = {}
        self._bytes = 0

    def put(self, name: str, item: Item, *, expires: datetime, size: int) -> None:
        """Store an item as the newest, and evict the oldest ones that no longer fit."""
        self.drop(name)
        self._kept[name] = _Entry(item=item, expires=expires, size=size)
        self._bytes += size
        while self._bytes > self.most_bytes or len(self._kept) > self._most_items:
            self.drop(next(iter(self._kept)))

    def get(self, name: str, now: datetime) -> Item | None:
        kept = self._kept.get(name)
        if kept is None:
            return None
        if kept.expires <= now:
            self.drop(name)
            return None
        return kept.item

    def drop(self, name: str) -> None:
        kept = self._kept.pop(name, None)
        if kept is not None:
            self._bytes -= kept.size

    def all(self, now: datetime) -> list[Item]:
        """Return all items, newest first."""
        for name in [name for name, kept in self._kept.items() if kept.expires <= now]:
            self.drop(name)
        return [kept.item for kept in reversed(self._kept.values())]
