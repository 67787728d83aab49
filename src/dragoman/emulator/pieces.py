"""A cache of parsed request parts, keyed by their bytes.

Each request of a conversation repeats most of the previous one. A content that was parsed before is not
parsed, counted or validated again.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

from dragoman.memo import LruCache

#: Contract, message type and raw bytes: everything that a parsed value depends on.
FragmentKey = tuple[str, str, Hashable]


class CachedFragment:
    """A parsed value, shared by all requests with the same bytes, so it must not be modified.

    `tokens` caches the token counts by modality. `passed` names the rule set that the piece passed last.
    """

    __slots__ = ("passed_rules", "tokens", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.tokens: dict[str, int] | None = None
        self.passed_rules = ""


class ParsedRequest(dict[str, Any]):
    """A parsed request in canonical spelling, with its cached pieces.

    There is one piece for each content and one for all other fields together.
    """

    __slots__ = ("content_fragments", "other_fields")

    def __init__(self, contents: list[CachedFragment] | None, rest: CachedFragment) -> None:
        super().__init__(rest.value)
        self.other_fields = rest
        self.content_fragments = contents or []
        if contents is not None:
            self["contents"] = [piece.value for piece in contents]

    def unchecked_part(self, rules: str) -> dict[str, Any]:
        """Return the request without the pieces that already passed these rules.

        At least one content remains, because a request without contents is invalid.
        """
        fresh = [piece.value for piece in self.content_fragments if piece.passed_rules != rules]
        part: dict[str, Any] = (
            {} if self.other_fields.passed_rules == rules else dict(self.other_fields.value)
        )
        if "contents" in self:
            part["contents"] = fresh or self["contents"][-1:]
        return part

    def mark_checked(self, rules: str) -> None:
        """Record that all pieces passed these rules."""
        self.other_fields.passed_rules = rules
        for piece in self.content_fragments:
            piece.passed_rules = rules


#: The limit counts the raw bytes; the parsed values take a few times as much memory.
FRAGMENT_CACHE: LruCache[FragmentKey, CachedFragment] = LruCache(max_bytes=32 * 1024 * 1024)
#: Emulators in several threads share the cache.
_CACHE_LOCK = threading.Lock()


def find_fragment(key: FragmentKey) -> CachedFragment | None:
    with _CACHE_LOCK:
        return FRAGMENT_CACHE.find(key)


def store_fragment(key: FragmentKey, value: Any, weight: int) -> CachedFragment:
    piece = CachedFragment(value)
    with _CACHE_LOCK:
        FRAGMENT_CACHE.put(key, weight, piece)
    return piece
