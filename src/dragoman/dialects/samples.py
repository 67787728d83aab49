"""Long texts that come again as the beginning of another one: found by a sample, and then compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from dragoman.memo import Memo

V = TypeVar("V")

_SHORTEST = 1024  # what is shorter is quicker read
_SAMPLE_BYTES = 64
_MOST_ALIKE = 4  # conversations that have parted since, or that read the same file


class Sampled(Generic[V]):
    """Values of long texts, found where such a text begins inside another one.

    A text is filed under the last bytes of its longest part whose length is a power of two, so a few looks find it
    wherever it ends. Who finds something must compare: only the sample is known to be the same.
    """

    def __init__(self, max_bytes: int, name: str) -> None:
        self._memo: Memo[bytes, _Alike[V]] = Memo(max_bytes, name)

    def find(self, body: bytes, at: int) -> Iterator[tuple[V, ...]]:
        """Of those that may be it the longest first, and of these the latest."""
        memo = self._memo
        size = _power_below(len(body) - at)
        while size >= _SHORTEST:
            alike = memo.find(body[at + size - _SAMPLE_BYTES : at + size])
            if alike is not None:
                yield alike[0]
                memo.found -= 1  # it was none of these
            else:
                memo.missed -= 1
            size >>= 1
        memo.missed += 1

    def put(self, text: bytes, value: V, besides: int = 0) -> None:
        """`besides` is what the value weighs without the text."""
        self._file(text, value, len(text) + besides, None)

    def grow(self, before: bytes, old: V, text: bytes, value: V, besides: int = 0) -> None:
        """As `put`, of a text that goes on from the one `before`, whose value is worth nothing any more."""
        if len(before) < _power_below(len(text)):
            self._remove(before, old)
        self._file(text, value, len(text) + besides, old)

    def _file(self, text: bytes, value: V, weight: int, old: V | None) -> None:
        size = _power_below(len(text))
        if size < _SHORTEST:
            return
        sample = text[size - _SAMPLE_BYTES : size]
        alike = self._memo.peek(sample)
        if alike is None or alike[0] == (old,):  # nearly always
            self._memo.put(sample, weight, ((value,), (weight,)))
            return
        values, weights = _without(alike, old)
        values, weights = (value, *values)[:_MOST_ALIKE], (weight, *weights)[:_MOST_ALIKE]
        self._memo.put(sample, sum(weights), (values, weights))

    def _remove(self, text: bytes, old: V) -> None:
        size = _power_below(len(text))
        if size < _SHORTEST:
            return
        sample = text[size - _SAMPLE_BYTES : size]
        left = _without(self._memo.peek(sample) or _NONE, old)
        if left[0]:
            self._memo.put(sample, sum(left[1]), left)
        else:
            self._memo.drop(sample)


#: Values of texts with the same sample, and what each of them weighs.
_Alike = tuple[tuple[V, ...], tuple[int, ...]]
_NONE: _Alike[Any] = ((), ())


def _without(alike: _Alike[V], old: V | None) -> _Alike[V]:
    kept = [index for index, value in enumerate(alike[0]) if value is not old]
    return tuple(alike[0][index] for index in kept), tuple(alike[1][index] for index in kept)


def is_kept(text: bytes) -> bool:
    """Whether it is worth it."""
    return len(text) >= _SHORTEST


def _power_below(size: int) -> int:
    return 1 << size.bit_length() >> 1
