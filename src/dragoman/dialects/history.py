"""The pieces of a conversation: each is read once, by its bytes, and what goes wrong is told with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from dragoman import jsontext
from dragoman.errors import InvalidRequest
from dragoman.ir import Message
from dragoman.memo import Memo
from dragoman.notes import Note

T = TypeVar("T")

#: The raw bytes, the neutral message, and what is noted in its notebook.
_KEPT_PER_BYTE = 5
_KEPT_PER_PIECE = 2000

#: For a memory of such pieces: the history comes back with every turn, byte for byte.
HISTORY_BYTES = 64 * 1024 * 1024


def read_pieces(
    memo: Memo[bytes, T],
    name: str,
    raws: Iterable[bytes | msgspec.Raw],
    read: Callable[[bytes, str], T],
    *,
    start: int = 0,
    several: Callable[[list[bytes]], list[T] | None] | None = None,
) -> list[T]:
    """`read` gets the bytes of a piece and its place, `name[index]`; it may name places below that alone.

    `several` reads pieces at once, and the same of them; None if anything is amiss, which `read` will tell better.
    """
    keys = list(map(bytes, raws))
    found = memo.find_all(keys)
    missing = [key for key, piece in zip(keys, found, strict=True) if piece is None]
    new = several(missing) if several is not None and missing else None
    if new is None:
        pairs = enumerate(zip(keys, found, strict=True), start)
        return [piece or _read(memo, f"{name}[{index}]", key, read) for index, (key, piece) in pairs]
    memo.put_all(missing, map(weigh_pieces, map(len, missing)), new)
    rest = iter(new)
    return [piece or next(rest) for piece in found]


def read_new(
    name: str,
    raws: list[bytes],
    read: Callable[[bytes, str], T],
    *,
    start: int,
    several: Callable[[list[bytes]], list[T] | None] | None = None,
) -> list[T]:
    """As `read_pieces`, of those that nobody has seen; whoever keeps them, keeps them elsewhere."""
    new = several(raws) if several is not None and raws else None
    if new is None:
        return [_read_at(f"{name}[{index}]", raw, read) for index, raw in enumerate(raws, start)]
    return new


class Noted(Protocol):
    """A piece that was read; its notes know only the place inside it."""

    @property
    def notes(self) -> tuple[Note, ...]: ...


class History(msgspec.Struct, Generic[T], frozen=True):
    """The pieces of a conversation, what they say, and which of them have more to tell than words."""

    pieces: tuple[T, ...]
    said: tuple[Message, ...] = ()
    telling: tuple[int, ...] = ()


def placed_notes(name: str, pieces: Sequence[Noted], telling: Sequence[int]) -> tuple[Note, ...]:
    """Only those that are `telling` have any."""
    if not telling:  # nearly always
        return ()
    return tuple(
        Note(note.kind, f"{name}[{index}]{note.where}", note.why)
        for index in telling
        for note in pieces[index].notes
    )


def read_piece(memo: Memo[bytes, T], where: str, raw: bytes, read: Callable[[bytes, str], T]) -> T:
    """One that stands by itself, at `where`."""
    return memo.find(raw) or _read(memo, where, raw, read)


def _read(memo: Memo[bytes, T], where: str, raw: bytes, read: Callable[[bytes, str], T]) -> T:
    piece = _read_at(where, raw, read)
    memo.put(raw, weigh_pieces(len(raw)), piece)
    return piece


def _read_at(where: str, raw: bytes, read: Callable[[bytes, str], T]) -> T:
    try:
        return read(jsontext.checked(raw, where), where)
    except InvalidRequest as error:
        if not error.where.startswith(where):
            error.where = where + error.where
        raise


def weigh_pieces(size: int, number: int = 1) -> int:
    """So many of so many bytes together."""
    return _KEPT_PER_BYTE * size + _KEPT_PER_PIECE * number
