"""Long texts that come again as the beginning of another one: found by a sample, and then compared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

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
        self._memo: Memo[bytes, tuple[tuple[V, int], ...]] = Memo(max_bytes, name)

    def find(self, body: bytes, at: int) -> Iterator[list[V]]:
        """Of those that may be it the longest first, and of these the latest."""
        size = _power_below(len(body) - at)
        while size >= _SHORTEST:
            sample = body[at + size - _SAMPLE_BYTES : at + size]
            if sample in self._memo:
                yield [value for value, _ in self._memo.find(sample) or ()]
                self._memo.found -= 1  # it was none of these
            size >>= 1
        self._memo.missed += 1

    def put(self, text: bytes, value: V, besides: int = 0) -> None:
        """`besides` is what the value weighs without the text."""
        self._file(text, (value, len(text) + besides), None)

    def grow(self, before: bytes, old: V, text: bytes, value: V, besides: int = 0) -> None:
        """As `put`, of a text that goes on from the one `before`, whose value is worth nothing any more."""
        size = _power_below(len(before))
        if _SHORTEST <= size < _power_below(len(text)):
            self._remove(before[size - _SAMPLE_BYTES : size], old)
        self._file(text, (value, len(text) + besides), old)

    def _file(self, text: bytes, entry: tuple[V, int], old: V | None) -> None:
        size = _power_below(len(text))
        if size < _SHORTEST:
            return
        sample = text[size - _SAMPLE_BYTES : size]
        alike = [entry]
        if others := self._memo.peek(sample):
            alike += [other for other in others if other[0] is not old][: _MOST_ALIKE - 1]
        self._memo.put(sample, sum([weight for _, weight in alike]), tuple(alike))

    def _remove(self, sample: bytes, old: V) -> None:
        others = tuple(other for other in self._memo.peek(sample) or () if other[0] is not old)
        if others:
            self._memo.put(sample, sum([weight for _, weight in others]), others)
        else:
            self._memo.drop(sample)


def _power_below(size: int) -> int:
    return 1 << (size.bit_length() - 1) if size > 0 else 0
