"""A bounded memory for pure functions: the same bytes in, the same value out, computed once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Memo(Generic[K, V]):
    """Keeps what was asked for last, up to `max_bytes` as the caller weighs it."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: dict[K, tuple[V, int]] = {}

    def find(self, key: K) -> V | None:
        found = self._kept.pop(key, None)
        if found is None:
            return None
        self._kept[key] = found
        return found[0]

    def get(self, key: K, weight: int, make: Callable[[], V]) -> V:
        found = self.find(key)
        if found is not None:
            return found
        value = make()
        self.put(key, weight, value)
        return value

    def put(self, key: K, weight: int, value: V) -> None:
        if weight <= self._max_bytes:
            # Another thread may have made it meanwhile: it weighs once.
            self._bytes += weight - self._kept.pop(key, (value, 0))[1]
            self._kept[key] = (value, weight)
            while self._bytes > self._max_bytes:
                self._bytes -= self._kept.pop(next(iter(self._kept)))[1]

    def __len__(self) -> int:
        return len(self._kept)
