"""A size-bounded LRU cache for the results of pure functions.

Caches with a name live as long as the process, share one memory budget, and are counted for metrics.
"""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


#: Default limit for the total size of all named caches; `set_shared_limit` changes it.
SHARED_BYTES = 96 * 1024 * 1024

#: Overhead of one entry of a named cache, for the objects of key and value; matters for many small entries.
ENTRY_BYTES = 500

#: When the budget is exceeded, eviction frees this fraction of it (one 64th) in addition.
_MARGIN_DIVISOR = 64
_EVICTIONS_PER_SEARCH = (
    16  # entries evicted per search for the largest cache, which costs more than an eviction
)

#: All named caches, for metrics and the shared budget.
_NAMED: dict[str, LruCache[Any, Any]] = {}


class _SharedBudget:
    max_bytes = SHARED_BYTES
    bytes = (
        0  # approximate total: evictions by a cache's own limit are not subtracted until `_evict` recounts
    )


class LruCache(Generic[K, V]):
    """An LRU cache of at most `max_bytes`; the caller supplies the weight of each entry in bytes.

    A cache with a `name` is registered for the life of the process and shares the budget of all named caches.
    Methods may be called from several threads.
    """

    def __init__(self, max_bytes: int, name: str = "") -> None:
        self._max_bytes = max_bytes
        self._entry_bytes = ENTRY_BYTES if name else 0
        self._bytes = 0
        # Not a plain dict: finding its first key takes time linear in the keys deleted from its front.
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.hits = 0
        self.misses = 0
        if name:
            _NAMED[name] = self

    def find(self, key: K) -> V | None:
        """Return the cached value and mark it as recently used; None if there is none."""
        found = self._entries.get(key)
        if found is None:
            self.misses += 1
            return None
        self.hits += 1
        try:  # noqa: SIM105 (`suppress` takes longer than the rest of this method)
            self._entries.move_to_end(key)
        except KeyError:  # another thread has evicted it meanwhile
            pass
        return found[0]

    def find_all(self, keys: Iterable[K]) -> list[V | None]:
        """Like `find`, for many keys."""
        kept, found = self._entries, 0
        values: list[V | None] = []
        for key in keys:
            entry = kept.get(key)
            if entry is None:
                values.append(None)
                continue
            found += 1
            values.append(entry[0])
            try:  # noqa: SIM105 (as above)
                kept.move_to_end(key)
            except KeyError:
                pass
        self.hits += found
        self.misses += len(values) - found
        return values

    def get(self, key: K, weight: int, make: Callable[[], V]) -> V:
        """Return the cached value, or call `make` and cache its result."""
        found = self.find(key)
        if found is not None:
            return found
        value = make()
        self.put(key, weight, value)
        return value

    def put(self, key: K, weight: int, value: V) -> None:
        """Cache a value and evict the least recently used ones if necessary; skip a value larger than the cache."""
        weight += self._entry_bytes
        if weight <= self._max_bytes:
            # Another thread may have cached the same key meanwhile: do not count its weight twice.
            before = self._entries.pop(key, None)
            self._entries[key] = value, weight
            self._grow(weight if before is None else weight - before[1])

    def drop(self, key: K) -> None:
        """Remove an entry if it is there."""
        gone = self._entries.pop(key, None)
        if gone is not None:
            self._grow(-gone[1])

    def _grow(self, added: int) -> None:
        self._bytes += added
        while self._bytes > self._max_bytes:
            self._evict_oldest()
        if self._entry_bytes:
            _SharedBudget.bytes += added
            if _SharedBudget.bytes > _SharedBudget.max_bytes:
                _evict()

    def _evict_oldest(self) -> int:
        _, (_, weight) = self._entries.popitem(last=False)
        self._bytes -= weight
        return weight

    def peek(self, key: K) -> V | None:
        """Return the cached value without counting a lookup or marking it as used."""
        found = self._entries.get(key)
        return found[0] if found is not None else None

    def __len__(self) -> int:
        return len(self._entries)


def cache_lookups() -> dict[str, tuple[int, int]]:
    """Return the hits and misses of each named cache."""
    return {name: (memo.hits, memo.misses) for name, memo in _NAMED.items()}


def set_shared_limit(max_bytes: int) -> None:
    """Set the limit for the total size of all named caches, and evict down to it."""
    _SharedBudget.max_bytes = max_bytes
    _evict()


def caches_enabled() -> bool:
    """Return whether anything may be cached: not if the limit for all named caches is 0."""
    return _SharedBudget.max_bytes > 0


def shared_bytes() -> int:
    """Return the total size of all named caches."""
    return sum(map(_get_bytes, tuple(_NAMED.values())))


_get_bytes = operator.attrgetter("_bytes")


def _evict() -> None:
    """Evict the least recently used entries of the largest cache until the total is a bit below the limit.

    The margin avoids an eviction with every new entry.
    """
    over = shared_bytes() - _SharedBudget.max_bytes
    if over > 0:
        over += _SharedBudget.max_bytes // _MARGIN_DIVISOR
    while over > 0:
        largest = max(tuple(_NAMED.values()), key=_get_bytes)
        if not largest._bytes:  # another thread has evicted everything meanwhile
            break
        for _ in range(_EVICTIONS_PER_SEARCH):
            if over > 0 and largest._bytes:
                over -= largest._evict_oldest()
    _SharedBudget.bytes = shared_bytes()
