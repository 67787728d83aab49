"""A parsed request and its pieces: equal bytes give the same piece, and what is learnt about it stays known."""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

from dragoman.memo import Memo

#: Contract, message, and the bytes that were read: all that a parsed value depends on.
Key = tuple[str, str, Hashable]


class Piece:
    """A parsed value. Every request with the same bytes has this very one, so nobody may change it.

    `tokens` is its count by modality once somebody has counted; `passed` names the rules it passed last.
    """

    __slots__ = ("passed", "tokens", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.tokens: dict[str, int] | None = None
        self.passed = ""


class Parsed(dict[str, Any]):
    """A request in canonical spelling that knows its pieces: each content, and everything else as one."""

    __slots__ = ("contents", "rest")

    def __init__(self, contents: list[Piece] | None, rest: Piece) -> None:
        super().__init__(rest.value)
        self.rest = rest
        self.contents = contents or []
        if contents is not None:
            self["contents"] = [piece.value for piece in contents]

    def unseen(self, rules: str) -> dict[str, Any]:
        """The request as it would be without what has passed these rules; one content always remains."""
        fresh = [piece.value for piece in self.contents if piece.passed != rules]
        part: dict[str, Any] = {} if self.rest.passed == rules else dict(self.rest.value)
        if "contents" in self:
            part["contents"] = fresh or self["contents"][-1:]
        return part

    def settle(self, rules: str) -> None:
        """All of it passed."""
        self.rest.passed = rules
        for piece in self.contents:
            piece.passed = rules


#: Weighed by the bytes that were read; the values made of them are a few times larger.
MEMORY: Memo[Key, Piece] = Memo(max_bytes=32 * 1024 * 1024)
#: Emulators of several threads share the memory.
_LOCK = threading.Lock()


def recall(key: Key) -> Piece | None:
    with _LOCK:
        return MEMORY.find(key)


def keep(key: Key, value: Any, weight: int) -> Piece:
    piece = Piece(value)
    with _LOCK:
        MEMORY.put(key, weight, piece)
    return piece
