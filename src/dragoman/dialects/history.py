"""The pieces of a conversation: each is read once, by its bytes, and what goes wrong is told with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

import msgspec

from dragoman import jsontext
from dragoman.errors import InvalidRequest
from dragoman.memo import Memo
from dragoman.notes import Note

T = TypeVar("T")

#: The raw bytes, the neutral message, and what is noted in its notebook.
_KEPT_PER_BYTE = 5

#: For a memory of such pieces: the history comes back with every turn, byte for byte.
HISTORY_BYTES = 64 * 1024 * 1024


def read_pieces(
    memo: Memo[bytes, T], name: str, raws: Iterable[msgspec.Raw], read: Callable[[bytes, str], T]
) -> list[T]:
    """`read` gets the bytes of a piece and its place, `name[index]`; it may name places below that alone."""
    return [
        memo.find(raw) or _read_piece(memo, f"{name}[{index}]", raw, read)
        for index, raw in enumerate(map(bytes, raws))
    ]


class Noted(Protocol):
    """A piece that was read; its notes know only the place inside it."""

    @property
    def notes(self) -> tuple[Note, ...]: ...


def placed_notes(name: str, pieces: Iterable[Noted]) -> list[Note]:
    return [
        Note(note.kind, f"{name}[{index}]{note.where}", note.why)
        for index, piece in enumerate(pieces)
        for note in piece.notes
    ]


def _read_piece(memo: Memo[bytes, T], where: str, raw: bytes, read: Callable[[bytes, str], T]) -> T:
    try:
        return memo.get(raw, _KEPT_PER_BYTE * len(raw), lambda: read(jsontext.checked(raw, where), where))
    except InvalidRequest as error:
        if not error.where.startswith(where):
            error.where = where + error.where
        raise
