"""A bounded memory for pure functions: the same bytes in, the same value out, computed once."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


#: What the memories with a name weigh together at most, unless `share` says otherwise.
SHARED_BYTES = 256 * 1024 * 1024

#: Keys and values as objects, besides what their texts weigh: small ones are many.
ENTRY_BYTES = 500

#: A full memory makes room for so small a part of itself at once.
_SPARE = 64
_GIVEN_AT_ONCE = 16  # looking for the heaviest takes longer than forgetting

#: For whoever wants to know how well they remember, and for what they share.
_NAMED: dict[str, Memo[Any, Any]] = {}


class _Shared:
    max_bytes = SHARED_BYTES
    bytes = 0  # what they weigh, as far as it was followed


class Memo(Generic[K, V]):
    """Keeps what was asked for last, up to `max_bytes` as the caller weighs it.

    One with a name stays as long as the process, and shares what there is with the others.
    """

    def __init__(self, max_bytes: int, name: str = "") -> None:
        self._max_bytes = max_bytes
        self._entry_bytes = ENTRY_BYTES if name else 0
        self._bytes = 0
        # Of a plain dict the first key is found behind all that were taken from its front, one by one.
        self._kept: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.found = 0
        self.missed = 0
        if name:
            _NAMED[name] = self

    def find(self, key: K) -> V | None:
        found = self._kept.get(key)
        if found is None:
            self.missed += 1
            return None
        self.found += 1
        try:  # noqa: SIM105 (`suppress` takes longer than all of this)
            self._kept.move_to_end(key)
        except KeyError:  # another thread has forgotten it meanwhile
            pass
        return found[0]

    def find_all(self, keys: Iterable[K]) -> list[V | None]:
        """As `find` for each of them."""
        kept, found = self._kept, 0
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
        self.found += found
        self.missed += len(values) - found
        return values

    def get(self, key: K, weight: int, make: Callable[[], V]) -> V:
        found = self.find(key)
        if found is not None:
            return found
        value = make()
        self.put(key, weight, value)
        return value

    def put(self, key: K, weight: int, value: V) -> None:
        weight += self._entry_bytes
        if weight <= self._max_bytes:
            # Another thread may have made it meanwhile: it weighs once.
            before = self._kept.pop(key, None)
            self._kept[key] = value, weight
            self._grow(weight if before is None else weight - before[1])

    def put_all(self, keys: Iterable[K], weights: Iterable[int], values: Iterable[V]) -> None:
        kept, each, most, added = self._kept, self._entry_bytes, self._max_bytes, 0
        for key, weight, value in zip(keys, weights, values, strict=True):
            weight += each
            if weight <= most:
                before = kept.pop(key, None)
                kept[key] = value, weight
                added += weight if before is None else weight - before[1]
        self._grow(added)

    def drop(self, key: K) -> None:
        """What is not worth its weight any more."""
        gone = self._kept.pop(key, None)
        if gone is not None:
            self._grow(-gone[1])

    def _grow(self, added: int) -> None:
        self._bytes += added
        while self._bytes > self._max_bytes:
            self._forget_oldest()
        if self._entry_bytes:
            _Shared.bytes += added
            if _Shared.bytes > _Shared.max_bytes:
                _make_room()

    def _forget_oldest(self) -> int:
        _, (_, weight) = self._kept.popitem(last=False)
        self._bytes -= weight
        return weight

    def peek(self, key: K) -> V | None:
        """What is there. Looking is no lookup: it is not counted."""
        found = self._kept.get(key)
        return found[0] if found is not None else None

    def __len__(self) -> int:
        return len(self._kept)


def memo_lookups() -> dict[str, tuple[int, int]]:
    """By the name of a memory: how often it knew, and how often it did not."""
    return {name: (memo.found, memo.missed) for name, memo in _NAMED.items()}


def share(max_bytes: int) -> None:
    """What all memories with a name may weigh together."""
    _Shared.max_bytes = max_bytes
    _make_room()


def shared_bytes() -> int:
    """What they weigh now."""
    return sum(map(_WEIGHT, tuple(_NAMED.values())))


_WEIGHT = operator.attrgetter("_bytes")


def _make_room() -> None:
    """Whichever weighs most gives up what it was asked for longest ago; a little more than must be, for a while."""
    over = shared_bytes() - _Shared.max_bytes
    if over > 0:
        over += _Shared.max_bytes // _SPARE
    while over > 0:
        heaviest = max(tuple(_NAMED.values()), key=_WEIGHT)
        if not heaviest._bytes:  # another thread has made room meanwhile
            break
        for _ in range(_GIVEN_AT_ONCE):
            if over > 0 and heaviest._bytes:
                over -= heaviest._forget_oldest()
    _Shared.bytes = shared_bytes()
