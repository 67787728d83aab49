"""A cache of decoded history prefixes.

The history of a request begins with the history of the turn before it, byte for byte. Each prefix is cached with its
decoded items, and only the new items at the end are decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Generic, TypeVar

import msgspec

from dragoman.incremental.fingerprint_index import FingerprintIndex, is_indexable
from dragoman.incremental.items import HISTORY_CACHE_BYTES, estimate_item_bytes
from dragoman.ir import Message

T = TypeVar("T")

_SPACE = b" \t\r\n"
_MAX_GAP_BYTES = 16  # histories with more whitespace between two elements are not cached
_MAX_CHANGED_ELEMENTS = 6  # last elements that may differ from the cached ones: clients move cache_control on
_PREFIX_CACHE_BYTES = 6 * HISTORY_CACHE_BYTES


#: Return the messages of a conversation, given the earlier messages, the items those were made of, and the new items.
MergeItems = Callable[[tuple[Message, ...], Sequence[T], Sequence[T]], tuple[Message, ...]]


class HistoryPrefix(msgspec.Struct, Generic[T], frozen=True):
    """The first elements of a history list: their bytes and their decoded values.

    `text` is the bytes of the list after its opening bracket up to the end of the last element of the prefix. `comma`
    is the separator, with its whitespace, between any two elements. `ends` are the offsets in `text` where the
    elements end. `items`, `messages` and `annotated` are as in `DecodedHistory`.
    `following` are the decoded elements that followed the prefix and may come back changed, for example by a moved
    cache point; `following_texts` are their bytes, without volatile parts. `envelope` is the number of the cached
    envelope, or 0.
    """

    text: bytes = b""
    comma: bytes = b""
    ends: tuple[int, ...] = ()
    items: tuple[T, ...] = ()
    messages: tuple[Message, ...] = ()
    annotated: tuple[int, ...] = ()
    following_texts: tuple[bytes, ...] = ()
    following: tuple[T, ...] = ()
    envelope: int = 0
    shortened_from: HistoryPrefix[T] | None = None  # the cached prefix that this one was shortened from

    def match_following(self, texts: list[bytes]) -> list[T]:
        """Return the decoded values of those elements in `texts` that followed the prefix the last time too."""
        same: list[T] = []
        for text, before, item in zip(texts, self.following_texts, self.following, strict=False):
            if text != before:
                break
            same.append(item)
        return same


NO_PREFIX: HistoryPrefix[Any] = HistoryPrefix()


class PrefixCache(Generic[T]):
    """The cached prefixes of one dialect; `without_volatile` and `merge_items` as in `BodySpec`."""

    def __init__(
        self,
        name: str,
        without_volatile: Callable[[list[bytes]], list[bytes]],
        merge_items: MergeItems[T],
    ) -> None:
        self._index: FingerprintIndex[HistoryPrefix[T]] = FingerprintIndex(
            _PREFIX_CACHE_BYTES, f"{name} histories"
        )
        self._without_volatile = without_volatile
        self._merge_items = merge_items

    def find(self, body: bytes, start: int) -> HistoryPrefix[T]:
        """Return the longest cached prefix of the list that begins at `start`, or `NO_PREFIX`."""
        for prefixes in self._index.find(body, start):
            for prefix in prefixes:
                if body.startswith(prefix.text, start):  # nearly always true for the first
                    return prefix
            for prefix in prefixes:
                if cut := self._match_shortened(prefix, body, start):
                    return cut
        return NO_PREFIX

    def put(self, before: HistoryPrefix[T], prefix: HistoryPrefix[T]) -> None:
        """Cache `prefix` in place of `before`, the prefix that it continues."""
        size = len(prefix.text) + sum(map(len, prefix.following_texts))
        weight = estimate_item_bytes(size, len(prefix.ends) + len(prefix.following))
        old = before.shortened_from or before
        self._index.grow(old.text, old, prefix.text, prefix, weight)

    def _match_shortened(self, prefix: HistoryPrefix[T], body: bytes, start: int) -> HistoryPrefix[T] | None:
        """Return the prefix without its last elements, which differ in this body; None if more of it differs."""
        number = len(prefix.ends)
        for known in range(number - 1, max(0, number - _MAX_CHANGED_ELEMENTS), -1):
            text = prefix.text[: prefix.ends[known - 1]]
            if body.startswith(text, start):
                return self._shorten(prefix, text, known)
        return None

    def _shorten(self, prefix: HistoryPrefix[T], text: bytes, known: int) -> HistoryPrefix[T]:
        """Shorten a prefix to its first `known` elements, whose bytes are `text`; the others become `following`."""
        items, ends, comma = prefix.items[:known], prefix.ends, len(prefix.comma)
        raws = [prefix.text[ends[at - 1] + comma : ends[at]] for at in range(known, len(ends))]
        return HistoryPrefix(
            text=text,
            comma=prefix.comma,
            ends=ends[:known],
            items=items,
            messages=self._merge_items((), (), items),
            annotated=tuple(filter(known.__gt__, prefix.annotated)),
            following_texts=(*self._without_volatile(raws), *prefix.following_texts),
            following=prefix.items[known:] + prefix.following,
            envelope=prefix.envelope,
            shortened_from=prefix,
        )


def locate_elements(
    body: bytes, start: int, known: HistoryPrefix[Any], raws: list[bytes]
) -> tuple[bytes, bytes, tuple[int, ...], int] | None:
    """Locate the new elements `raws` in the body, after the prefix `known` of the list that begins at `start`.

    Return the fields `text`, `comma` and `ends` of the prefix that contains all but the last element, and the offset in
    the body after the last element. Return None if the list is too short to be cached, or if the same separator is not
    between all of its elements.
    """
    if start < 0 or len(raws) < 2:
        return None
    end = start + len(known.text)
    gap, comma = (known.comma, known.comma) if known.ends else _gaps(body, end, raws[0])
    new = gap + comma.join(raws)
    if not comma or not body.startswith(new, end):
        return None
    end_of_new = end + len(new)
    text = body[start : end_of_new - len(raws[-1]) - len(comma)]
    if not is_indexable(text):
        return None
    sizes = map(len(comma).__add__, map(len, raws))
    ends = tuple(accumulate(sizes, initial=len(known.text) + len(gap) - len(comma)))[1:-1]
    return text, comma, known.ends + ends, end_of_new


def _gaps(body: bytes, start: int, first: bytes) -> tuple[bytes, bytes]:
    """Return the bytes before the first element of a list and between the first and the second element.

    Both are empty if they are not just whitespace and one comma, or too long.
    """
    gap = _gap(body, start)
    comma = _gap(body, start + len(gap) + len(first))
    return (gap, comma) if not gap.strip(_SPACE) and comma.strip(_SPACE) == b"," else (b"", b"")


def _gap(body: bytes, at: int) -> bytes:
    """Return the whitespace and commas at an offset, at most `_MAX_GAP_BYTES`."""
    ahead = body[at : at + _MAX_GAP_BYTES]
    return ahead[: len(ahead) - len(ahead.lstrip(_SPACE + b","))]
