"""A store for tests and for the library: forgets everything with the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence

import msgspec

from dragoman.store.base import Conversation, HeadMoved, Turn


class MemoryStore:
    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._kept: dict[str, str] = {}
        self.turns = MemoryTurns(now)

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        return {key: self._kept[key] for key in keys if key in self._kept}

    async def remember(self, items: Sequence[tuple[str, str]]) -> None:
        self._kept.update(items)

    async def close(self) -> None:
        self._kept.clear()


class MemoryTurns:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._turns: dict[tuple[str, str], Turn] = {}
        self._conversations: dict[tuple[str, str], Conversation] = {}
        self._leases: dict[str, tuple[str, float]] = {}

    async def save(self, turn: Turn, conversation: str = "") -> None:
        if conversation:
            key = (turn.scope, conversation)
            known = self._conversations.get(key)
            if known is None or known.head != turn.parent:
                raise HeadMoved
            self._conversations[key] = msgspec.structs.replace(known, head=turn.id)
        self._turns[turn.scope, turn.id] = turn

    async def chain(self, scope: str, turn_id: str) -> list[Turn]:
        found: list[Turn] = []
        while turn_id:
            turn = self._turns.get((scope, turn_id))
            if turn is None:
                return []
            found.append(msgspec.structs.replace(turn, answer=b""))
            turn_id = turn.parent
        return found[::-1]

    async def turn(self, scope: str, turn_id: str) -> Turn | None:
        return self._turns.get((scope, turn_id))

    async def delete(self, scope: str, turn_id: str, *, keep_line: bool = False) -> bool:
        found = self._turns.pop((scope, turn_id), None)
        if found is not None and keep_line:
            self._turns[scope, turn_id] = msgspec.structs.replace(found, answer=b"")
        return found is not None and (not keep_line or found.answer != b"")

    async def conversation(self, scope: str, name: str) -> Conversation | None:
        return self._conversations.get((scope, name))

    async def put_conversation(self, conversation: Conversation) -> None:
        key = (conversation.scope, conversation.name)
        known = self._conversations.get(key, conversation)
        self._conversations[key] = msgspec.structs.replace(known, data=conversation.data)

    async def delete_conversation(self, scope: str, name: str) -> bool:
        return self._conversations.pop((scope, name), None) is not None

    async def lease(self, name: str, holder: str, seconds: float) -> bool:
        owner, until = self._leases.get(name, (holder, 0.0))
        if owner != holder and until > self._now():
            return False
        self._leases[name] = holder, self._now() + seconds
        return True

    async def release(self, name: str, holder: str) -> None:
        if self._leases.get(name, ("", 0.0))[0] == holder:
            del self._leases[name]
