"""A cache of parsed request parts, keyed by their bytes.

Each request of a conversation repeats most of the previous one. A content that was parsed before is not
parsed, counted or validated again.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

from dragoman.memo import Memo

#: Contract, message type and raw bytes: everything that a parsed value depends on.
Key = tuple[str, str, Hashable]


class Piece:
    """A parsed value, shared by all requests with the same bytes, so it must not be modified.

    `tokens` caches the token counts by modality. `passed` names the rule set that the piece passed last.
    """

    __slots__ = ("passed", "tokens", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.tokens: dict[str, int] | None = None
        self.passed = ""


class Parsed(dict[str, Any]):
    """A parsed request in canonical spelling, with its cached pieces.

    There is one piece for each content and one for all other fields together.
    """

    __slots__ = ("contents", "rest")

    def __init__(self, contents: list[Piece] | None, rest: Piece) -> None:
        super().__init__(rest.value)
        self.rest = rest
        self.contents = contents or []
        if contents is not None:
            self["contents"] = [piece.value for piece in contents]

    def unseen(self, rules: str) -> dict[str, Any]:
        """Return the request without the pieces that already passed these rules.

        At least one content remains, because a request without contents is invalid.
        """
        fresh = [piece.value for piece in self.contents if piece.passed != rules]
        part: dict[str, Any] = {} if self.rest.passed == rules else dict(self.rest.value)
        if "contents" in self:
            part["contents"] = fresh or self["contents"][-1:]
        return part

    def settle(self, rules: str) -> None:
        """Record that all pieces passed these rules."""
        self.rest.passed = rules
        for piece in self.contents:
            piece.passed = rules


#: The limit counts the raw bytes; the parsed values take a few times as much memory.
MEMORY: Memo[Key, Piece] = Memo(max_bytes=32 * 1024 * 1024)
#: Emulators in several threads share the cache.
_LOCK = threading.Lock()


def recall(key: Key) -> Piece | None:
    with _LOCK:
        return MEMORY.find(key)


def keep(key: Key, value: Any, weight: int) -> Piece:
    piece = Piece(value)
    with _LOCK:
        MEMORY.put(key, weight, piece)
    return piece
