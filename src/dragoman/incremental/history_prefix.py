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
    elements end. `pieces`, `said` and `telling` are as in `History`.
    `behind` are the decoded elements that followed the prefix and may come back changed, for example by a moved
    cache point; `behind_texts` are their bytes, without volatile parts. `frame` is the number of the cached envelope,
    or 0.
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
        for text, before, piece in zip(texts, self.following_texts, self.following, strict=False):
            if text != before:
                break
            same.append(piece)
        return same


NO_PREFIX: HistoryPrefix[Any] = HistoryPrefix()


class PrefixCache(Generic[T]):
    """The cached prefixes of one dialect; `known_as` and `said` as in `Skimmer`."""

    def __init__(
        self,
        name: str,
        known_as: Callable[[list[bytes]], list[bytes]],
        said: MergeItems[T],
    ) -> None:
        self._index: FingerprintIndex[HistoryPrefix[T]] = FingerprintIndex(
            _PREFIX_CACHE_BYTES, f"{name} histories"
        )
        self._without_volatile = known_as
        self._merge_items = said

    def find(self, body: bytes, start: int) -> HistoryPrefix[T]:
        """Return the longest cached prefix of the list that begins at `start`, or `NOTHING`."""
        for runs in self._index.find(body, start):
            for run in runs:
                if body.startswith(run.text, start):  # nearly always true for the first
                    return run
            for run in runs:
                if cut := self._match_shortened(run, body, start):
                    return cut
        return NO_PREFIX

    def put(self, before: HistoryPrefix[T], run: HistoryPrefix[T]) -> None:
        """Cache `run` in place of `before`, the prefix that it continues."""
        size = len(run.text) + sum(map(len, run.following_texts))
        weight = estimate_item_bytes(size, len(run.ends) + len(run.following))
        old = before.shortened_from or before
        self._index.grow(old.text, old, run.text, run, weight)

    def _match_shortened(self, run: HistoryPrefix[T], body: bytes, start: int) -> HistoryPrefix[T] | None:
        """Return the prefix without its last elements, which differ in this body; None if more of it differs."""
        number = len(run.ends)
        for known in range(number - 1, max(0, number - _MAX_CHANGED_ELEMENTS), -1):
            text = run.text[: run.ends[known - 1]]
            if body.startswith(text, start):
                return self._shorten(run, text, known)
        return None

    def _shorten(self, run: HistoryPrefix[T], text: bytes, known: int) -> HistoryPrefix[T]:
        """Shorten a prefix to its first `known` elements, whose bytes are `text`; the others become `behind`."""
        pieces, ends, comma = run.items[:known], run.ends, len(run.comma)
        raws = [run.text[ends[at - 1] + comma : ends[at]] for at in range(known, len(ends))]
        return HistoryPrefix(
            text=text,
            comma=run.comma,
            ends=ends[:known],
            items=pieces,
            messages=self._merge_items((), (), pieces),
            annotated=tuple(filter(known.__gt__, run.annotated)),
            following_texts=(*self._without_volatile(raws), *run.following_texts),
            following=run.items[known:] + run.following,
            envelope=run.envelope,
            shortened_from=run,
        )


def locate_elements(
    body: bytes, start: int, known: HistoryPrefix[Any], raws: list[bytes]
) -> tuple[bytes, bytes, tuple[int, ...], int] | None:
    """Locate the new elements `raws` in the body, after the prefix `known` of the list that begins at `start`.

    Return the fields `text`, `comma` and `ends` of the prefix that contains all but the last element, and the offset in
    the body after the last element. Return None if the list is too short to be cached, or if the same separator is not
    between all of its elements.
    """
    end = start + len(known.text)
    gap, comma = (known.comma, known.comma) if known.ends else _gaps(body, end, raws[0])
    new = gap + comma.join(raws)
    if not comma or not body.startswith(new, end):
        return None
    behind = end + len(new)
    text = body[start : behind - len(raws[-1]) - len(comma)]
    if not is_indexable(text):
        return None
    sizes = map(len(comma).__add__, map(len, raws))
    ends = tuple(accumulate(sizes, initial=len(known.text) + len(gap) - len(comma)))[1:-1]
    return text, comma, known.ends + ends, behind


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
