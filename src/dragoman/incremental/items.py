"""Decode the items of a conversation, with a cache keyed by their bytes.

Clients send the whole history again with every request, so most items were decoded before. Errors carry the path of
the item, such as `messages[3]`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, Protocol, TypeVar

import msgspec

from dragoman import jsontext
from dragoman.errors import InvalidRequest
from dragoman.incremental.lru import LruCache
from dragoman.ir import Message
from dragoman.notes import Note

T = TypeVar("T")

#: Estimated memory of a cached item: its raw bytes, the decoded message, and the values derived from it.
_MEMORY_PER_BYTE = 5
_MEMORY_PER_ITEM = 2000

#: Size limit of a cache of decoded items.
HISTORY_CACHE_BYTES = 64 * 1024 * 1024


def decode_items(
    memo: LruCache[bytes, T], name: str, raws: Iterable[bytes | msgspec.Raw], read: Callable[[bytes, str], T]
) -> list[T]:
    """Decode items, using and filling the cache `memo`.

    `read` decodes one item from its bytes and its path `name[index]`. It may raise `InvalidRequest` with a path
    relative to the item.
    """
    keys = list(map(bytes, raws))
    pairs = enumerate(zip(keys, memo.find_all(keys), strict=True))
    return [item or _read_and_cache(memo, f"{name}[{index}]", key, read) for index, (key, item) in pairs]


def decode_new_items(
    name: str,
    raws: list[bytes],
    read: Callable[[bytes, str], T],
    *,
    start: int = 0,
    several: Callable[[list[bytes]], list[T] | None] | None = None,
) -> list[T]:
    """Decode items without a cache; `name` and `read` as in `decode_items`, `start` is the index of the first item.

    `several` decodes many items at once, to the same values. It returns None if any of them is invalid; `read` then
    decodes them one by one and raises the error with its path.
    """
    new = several(raws) if several is not None and raws else None
    return new or [decode_at(f"{name}[{index}]", raw, read) for index, raw in enumerate(raws, start)]


class ItemWithNotes(Protocol):
    """A decoded item whose notes have paths relative to the item."""

    @property
    def notes(self) -> tuple[Note, ...]: ...


NotedT = TypeVar("NotedT", bound=ItemWithNotes)


class DecodedHistory(msgspec.Struct, Generic[T], frozen=True):
    """A decoded conversation.

    `items` are the decoded items, `messages` the neutral messages made of them. `annotated` holds the indexes of the
    items that carry anything besides messages: notes, or changes of the tools.
    """

    items: tuple[T, ...]
    messages: tuple[Message, ...] = ()
    annotated: tuple[int, ...] = ()


def absolute_notes(path: str, history: DecodedHistory[NotedT]) -> tuple[Note, ...]:
    """Return the notes of all items with absolute paths; `path` is that of the history."""
    return tuple(
        Note(note.kind, f"{path}[{index}]{note.where}", note.why)
        for index in history.annotated
        for note in history.items[index].notes
    )


def _read_and_cache(memo: LruCache[bytes, T], where: str, raw: bytes, read: Callable[[bytes, str], T]) -> T:
    item = decode_at(where, raw, read)
    memo.put(raw, estimate_item_bytes(len(raw)), item)
    return item


def decode_at(where: str, raw: bytes, read: Callable[[bytes, str], T]) -> T:
    """Decode the value at the path `where`; `read` as in `decode_items`."""
    try:
        return read(jsontext.validate_text(raw, where), where)
    except InvalidRequest as error:
        if not error.where.startswith(where):
            error.where = where + error.where
        raise


def estimate_item_bytes(size: int, number: int = 1) -> int:
    """Return the estimated memory of `number` decoded items with `size` bytes of JSON in total."""
    return _MEMORY_PER_BYTE * size + _MEMORY_PER_ITEM * number
