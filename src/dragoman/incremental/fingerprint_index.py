"""An index that finds which known texts a longer text begins with.

Hashing whole request bodies would not help, because each one is a little longer than the last. The index looks at a
few fixed positions instead, and the caller compares the candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from dragoman.incremental.lru import LruCache

V = TypeVar("V")

_SHORTEST = 1024  # shorter texts are faster to parse than to look up
_SAMPLE_BYTES = 64
_MAX_VALUES = 4  # per fingerprint; branches of one conversation share one


class FingerprintIndex(Generic[V]):
    """Map texts to values; find the values of all texts that may begin at an offset of a body.

    The fingerprint of a text is 64 bytes of it: those that end at the largest power of two that is not above its
    length. A lookup therefore needs one cache access per power of two. The caller must compare the texts, because only
    the fingerprints are known to be equal.
    """

    def __init__(self, max_bytes: int, name: str) -> None:
        self._cache: LruCache[bytes, _Bucket[V]] = LruCache(max_bytes, name)

    def find(self, body: bytes, at: int) -> Iterator[tuple[V, ...]]:
        """Yield the values of candidate texts at offset `at`: longer texts first, newest value first."""
        memo = self._cache
        size = _power_below(len(body) - at)
        while size >= _SHORTEST:
            bucket = memo.find(body[at + size - _SAMPLE_BYTES : at + size])
            if bucket is not None:
                yield bucket[0]
                memo.hits -= 1  # the caller asks for more, so this was no hit
            else:
                memo.misses -= 1
            size >>= 1
        memo.misses += 1

    def put(self, text: bytes, value: V, besides: int = 0) -> None:
        """Add a text; `besides` is the size of the value in bytes without the text."""
        self._insert(text, value, len(text) + besides, None)

    def grow(self, before: bytes, old: V, text: bytes, value: V, besides: int = 0) -> None:
        """Add a text that continues the text `before`, and remove the value `old` of that one."""
        if len(before) < _power_below(len(text)):
            self._remove(before, old)
        self._insert(text, value, len(text) + besides, old)

    def _insert(self, text: bytes, value: V, weight: int, old: V | None) -> None:
        size = _power_below(len(text))
        if size < _SHORTEST:
            return
        fingerprint = text[size - _SAMPLE_BYTES : size]
        bucket = self._cache.peek(fingerprint)
        if bucket is None or bucket[0] == (old,):  # the usual case
            self._cache.put(fingerprint, weight, ((value,), (weight,)))
            return
        values, weights = _without(bucket, old)
        values, weights = (value, *values)[:_MAX_VALUES], (weight, *weights)[:_MAX_VALUES]
        self._cache.put(fingerprint, sum(weights), (values, weights))

    def _remove(self, text: bytes, old: V) -> None:
        size = _power_below(len(text))
        if size < _SHORTEST:
            return
        fingerprint = text[size - _SAMPLE_BYTES : size]
        left = _without(self._cache.peek(fingerprint) or _EMPTY_BUCKET, old)
        if left[0]:
            self._cache.put(fingerprint, sum(left[1]), left)
        else:
            self._cache.drop(fingerprint)


#: The values of texts with the same fingerprint, and the size of each in bytes.
_Bucket = tuple[tuple[V, ...], tuple[int, ...]]
_EMPTY_BUCKET: _Bucket[Any] = ((), ())


def _without(bucket: _Bucket[V], old: V | None) -> _Bucket[V]:
    kept = [index for index, value in enumerate(bucket[0]) if value is not old]
    return tuple(bucket[0][index] for index in kept), tuple(bucket[1][index] for index in kept)


def is_indexable(text: bytes) -> bool:
    """Return whether a text is long enough to be indexed."""
    return len(text) >= _SHORTEST


def _power_below(size: int) -> int:
    return 1 << size.bit_length() >> 1
