"""Persistent sessions: every message is on disk before the agent continues.

Each saved turn in the store holds either messages to append to the history or a history that replaces it.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from dragoman.agent.events import SaveHistory
from dragoman.agent.history import add_missing_results
from dragoman.agent.limits import SessionUsage
from dragoman.errors import InvalidRequest
from dragoman.ids import new_id
from dragoman.ir import Message
from dragoman.store.base import Conversation, ConversationTurn, HeadMoved, Turns

SCOPE = "agent"
_INDEX = "*index"
_INDEX_LEASE = "agent-index"
_LEASE_S = 5.0
_MAX_LISTED = 200
_TITLE_CHARS = 60
_MAX_NAME_CHARS = 100


class _SavedMessages(msgspec.Struct, frozen=True, kw_only=True):
    messages: tuple[Message, ...]
    instead: bool = False


class SessionEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the list of sessions."""

    name: str
    title: str = ""
    used_s: int = 0
    messages: int = 0


class _Metadata(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a session, stored beside its turns."""

    spent: SessionUsage = SessionUsage()
    model: str = ""
    root: str = ""


class SavedSession:
    """A saved session; created by `SessionStore.open`."""

    def __init__(
        self, turns: Turns, name: str, head: str, history: tuple[Message, ...], metadata: _Metadata
    ) -> None:
        self.name = name
        self.history = history
        self.usage = metadata.spent
        self.model = metadata.model
        self.root = metadata.root
        self._turns = turns
        self._head = head

    async def save(self, save: SaveHistory) -> None:
        """Save messages.

        If another process has continued this session meanwhile, save the whole history under a new name instead of
        mixing the two.
        """
        self.history = save.messages if save.replace else (*self.history, *save.messages)
        saved = _SavedMessages(messages=save.messages, instead=save.replace)
        turn = ConversationTurn(
            id=f"turn_{new_id()}", scope=SCOPE, parent=self._head, data=msgspec.json.encode(saved)
        )
        try:
            await self._turns.save(turn, self.name)
        except HeadMoved:
            self.name = f"{self.name}-{new_id()[:6]}"
            self._head = ""
            await self.save_metadata(self.usage, self.model, self.root)
            whole = msgspec.json.encode(_SavedMessages(messages=self.history, instead=True))
            turn = ConversationTurn(id=turn.id, scope=SCOPE, data=whole)
            await self._turns.save(turn, self.name)
        self._head = turn.id

    async def save_metadata(self, usage: SessionUsage, model: str, root: str) -> None:
        """Save the session's metadata."""
        self.usage, self.model, self.root = usage, model, root
        data = msgspec.json.encode(_Metadata(spent=usage, model=model, root=root))
        await self._turns.put_conversation(Conversation(name=self.name, scope=SCOPE, data=data))


class SessionStore:
    """All sessions in a store."""

    def __init__(self, turns: Turns, now: Callable[[], float] = time.time) -> None:
        self._turns = turns
        self._now = now

    async def open(self, name: str) -> SavedSession:
        """Open the session of this name, or create it. Raise `InvalidRequest` for an invalid name."""
        check_name(name)
        found = await self._turns.conversation(SCOPE, name)
        if found is None:
            created = Conversation(name=name, scope=SCOPE, created_s=int(self._now()))
            await self._turns.put_conversation(created)
            return SavedSession(self._turns, name, "", (), _Metadata())
        history: tuple[Message, ...] = ()
        for turn in await self._turns.chain(SCOPE, found.head) if found.head else ():
            saved = msgspec.json.decode(turn.data, type=_SavedMessages)
            history = saved.messages if saved.instead else (*history, *saved.messages)
        metadata = msgspec.json.decode(found.data, type=_Metadata)
        session = SavedSession(self._turns, name, found.head, history, metadata)
        lost = add_missing_results(history)[len(history) :]
        if lost:  # the process died while tools were running
            await session.save(SaveHistory(lost))
        return session

    async def exists(self, name: str) -> bool:
        return await self._turns.conversation(SCOPE, name) is not None

    async def list(self) -> list[SessionEntry]:
        """Return the entries, most recently used first."""
        index = await self._turns.conversation(SCOPE, _INDEX)
        return msgspec.json.decode(index.data, type=list[SessionEntry]) if index is not None else []

    async def update_index(self, session: SavedSession) -> None:
        """Add the session to the list, or move it to the front.

        Do nothing if it is empty, or if another process is writing the list: the next save tries again.
        """
        holder = new_id()
        if not session.history or not await self._turns.acquire_lease(_INDEX_LEASE, holder, _LEASE_S):
            return
        try:
            own = SessionEntry(
                name=session.name,
                title=_title(session.history),
                used_s=int(self._now()),
                messages=len(session.history),
            )
            others = [entry for entry in await self.list() if entry.name != session.name]
            data = msgspec.json.encode([own, *others][:_MAX_LISTED])
            await self._turns.put_conversation(Conversation(name=_INDEX, scope=SCOPE, data=data))
        finally:
            await self._turns.release_lease(_INDEX_LEASE, holder)


def check_name(name: str) -> None:
    """Raise `InvalidRequest` for an invalid session name; names that begin with `*` are reserved."""
    if not name.strip() or name.startswith("*") or len(name) > _MAX_NAME_CHARS or not name.isprintable():
        why = f"a session's name is 1 to {_MAX_NAME_CHARS} printable characters and does not begin with *"
        raise InvalidRequest(why, where=repr(name))


def _title(history: tuple[Message, ...]) -> str:
    text = next((part.text for part in history[0].parts if hasattr(part, "text")), "")
    line = " ".join(text.split())
    return line if len(line) <= _TITLE_CHARS else f"{line[: _TITLE_CHARS - 1]}…"
