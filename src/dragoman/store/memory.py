"""A store in memory, for tests and for use as a library; it is lost with the process."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence

import msgspec

from dragoman.store.base import (
    LEDGER_ENTRY_MAX_AGE_S,
    MAX_LEDGER_ENTRIES,
    MAX_LEDGER_LABELS,
    MAX_SESSION_CALLS,
    CallData,
    Charge,
    Conversation,
    ConversationTurn,
    HeadMoved,
    LedgerEntry,
    Tally,
    Toolset,
    first_retained_day,
    other_labels,
)

Labels = tuple[str, ...]


class MemoryLedger:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._entries: dict[str, LedgerEntry] = {}
        self._sums: dict[tuple[str, str], dict[Labels, Counter[str]]] = {}

    async def add(self, entries: Sequence[LedgerEntry], tallies: Sequence[Tally]) -> None:
        for entry in entries:
            self._entries.setdefault(entry.id, entry)
        for tally in tallies:
            by_labels = self._sums.setdefault((tally.day, tally.kind), {})
            full = len(by_labels) >= MAX_LEDGER_LABELS and tally.labels not in by_labels
            sums = by_labels.setdefault(other_labels(tally.labels) if full else tally.labels, Counter())
            sums.update(tally.sums)
        self._prune()

    async def entries(
        self, *, limit: int, before: tuple[int, str] | None = None, session: str = ""
    ) -> list[LedgerEntry]:
        found = [
            entry
            for entry in self._entries.values()
            if (before is None or _sort_key(entry) < before) and (not session or entry.session == session)
        ]
        return sorted(found, key=_sort_key, reverse=True)[:limit]

    async def entry(self, entry_id: str) -> LedgerEntry | None:
        return self._entries.get(entry_id)

    async def tallies(self, kind: str, first_day: str, last_day: str) -> list[Tally]:
        found = [
            Tally(day=day, kind=kind, labels=labels, sums=dict(sums))
            for (day, its_kind), by_labels in self._sums.items()
            if its_kind == kind and first_day <= day <= last_day
            for labels, sums in by_labels.items()
        ]
        return sorted(found, key=lambda tally: (tally.day, tally.labels))

    def _prune(self) -> None:
        now_s = self._now()
        oldest_ms = (now_s - LEDGER_ENTRY_MAX_AGE_S) * 1000
        retained = [entry for entry in self._entries.values() if entry.at_ms >= oldest_ms]
        if len(retained) > MAX_LEDGER_ENTRIES:
            retained = sorted(retained, key=_sort_key)[-MAX_LEDGER_ENTRIES:]
        if len(retained) < len(self._entries):
            self._entries = {entry.id: entry for entry in retained}
        first = first_retained_day(now_s)
        for key in [key for key in self._sums if key[0] < first]:
            del self._sums[key]


def _sort_key(entry: LedgerEntry) -> tuple[int, str]:
    return entry.at_ms, entry.id


class MemoryStore:
    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._values: dict[str, str] = {}
        self.turns = MemoryTurns(now)
        self.meters = MemoryMeters(now)
        self.session_tools = MemorySessionTools()
        self.ledger = MemoryLedger(now)

    async def get_values(self, keys: Collection[str]) -> dict[str, str]:
        return {key: self._values[key] for key in keys if key in self._values}

    async def set_values(self, items: Sequence[tuple[str, str]]) -> None:
        self._values.update(items)

    async def close(self) -> None:
        self._values.clear()


class MemoryTurns:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._turns: dict[tuple[str, str], ConversationTurn] = {}
        self._conversations: dict[tuple[str, str], Conversation] = {}
        self._leases: dict[str, tuple[str, float]] = {}

    async def save(self, turn: ConversationTurn, conversation: str = "") -> None:
        if conversation:
            key = (turn.scope, conversation)
            stored = self._conversations.get(key)
            if stored is None or stored.head != turn.parent:
                raise HeadMoved
            self._conversations[key] = msgspec.structs.replace(stored, head=turn.id)
        self._turns[turn.scope, turn.id] = turn

    async def chain(self, scope: str, turn_id: str) -> list[ConversationTurn]:
        found: list[ConversationTurn] = []
        while turn_id:
            turn = self._turns.get((scope, turn_id))
            if turn is None:
                return []
            found.append(msgspec.structs.replace(turn, answer=b""))
            turn_id = turn.parent
        return found[::-1]

    async def turn(self, scope: str, turn_id: str) -> ConversationTurn | None:
        return self._turns.get((scope, turn_id))

    async def delete(self, scope: str, turn_id: str, *, keep_turn: bool = False) -> bool:
        found = self._turns.pop((scope, turn_id), None)
        if found is not None and keep_turn:
            self._turns[scope, turn_id] = msgspec.structs.replace(found, answer=b"")
        return found is not None and (not keep_turn or found.answer != b"")

    async def conversation(self, scope: str, name: str) -> Conversation | None:
        return self._conversations.get((scope, name))

    async def put_conversation(self, conversation: Conversation) -> None:
        key = (conversation.scope, conversation.name)
        stored = self._conversations.get(key, conversation)
        self._conversations[key] = msgspec.structs.replace(stored, data=conversation.data)

    async def delete_conversation(self, scope: str, name: str) -> bool:
        return self._conversations.pop((scope, name), None) is not None

    async def acquire_lease(self, name: str, holder: str, seconds: float) -> bool:
        owner, until = self._leases.get(name, (holder, 0.0))
        if owner != holder and until > self._now():
            return False
        self._leases[name] = holder, self._now() + seconds
        return True

    async def release_lease(self, name: str, holder: str) -> None:
        if self._leases.get(name, ("", 0.0))[0] == holder:
            del self._leases[name]


class MemoryMeters:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._values: dict[str, tuple[int, int]] = {}

    async def charge(self, charges: Sequence[Charge]) -> str:
        for one in charges:
            if one.limit and self._amount(one.name) + one.amount > one.limit:
                return one.name
        for one in charges:
            self._values[one.name] = self._amount(one.name) + one.amount, one.ends_s
        return ""

    async def read(self, names: Collection[str]) -> dict[str, int]:
        return {name: self._amount(name) for name in names}

    def _amount(self, name: str) -> int:
        amount, ends_s = self._values.get(name, (0, 0))
        return amount if ends_s > self._now() else 0


class _Session:
    def __init__(self) -> None:
        self.toolset: Toolset | None = None
        self.calls: dict[str, bytes] = {}
        self.last: list[str] = []
        self.results: dict[str, bytes] = {}


class MemorySessionTools:
    def __init__(self) -> None:
        self._sessions: defaultdict[tuple[str, str], _Session] = defaultdict(_Session)

    async def set_tools(self, scope: str, session: str, tools: bytes) -> None:
        self._set(scope, session, tools=tools)

    async def set_config(self, scope: str, session: str, config: bytes) -> None:
        self._set(scope, session, config=config)

    def _set(self, scope: str, session: str, **values: bytes) -> None:
        stored = self._sessions[scope, session]
        stored.toolset = msgspec.structs.replace(stored.toolset or Toolset(), **values)

    async def toolset(self, scope: str, session: str) -> Toolset | None:
        return self._get(scope, session).toolset

    async def clear(self, scope: str, session: str) -> bool:
        return self._sessions.pop((scope, session), None) is not None

    async def register_calls(
        self, scope: str, session: str, calls: Sequence[CallData], *, last: bool = True
    ) -> None:
        stored = self._sessions[scope, session]
        stored.calls |= dict(calls)
        stored.calls = dict(list(stored.calls.items())[-MAX_SESSION_CALLS:])
        stored.last = [call_id for call_id, _ in calls] if last else stored.last

    async def call(self, scope: str, session: str, call_id: str) -> bytes | None:
        return self._get(scope, session).calls.get(call_id)

    async def calls(self, scope: str, session: str) -> list[CallData]:
        return list(self._get(scope, session).calls.items())

    async def last_calls(self, scope: str, session: str) -> list[CallData]:
        stored = self._get(scope, session)
        return [(call_id, stored.calls[call_id]) for call_id in stored.last if call_id in stored.calls]

    async def add_results(self, scope: str, session: str, results: Sequence[CallData]) -> None:
        self._sessions[scope, session].results |= dict(results)

    async def results(self, scope: str, session: str) -> dict[str, bytes]:
        return dict(self._get(scope, session).results)

    async def take_results(
        self, scope: str, session: str, call_ids: Collection[str] | None = None
    ) -> dict[str, bytes]:
        waiting = self._get(scope, session).results
        wanted = list(waiting) if call_ids is None else call_ids
        return {call_id: waiting.pop(call_id) for call_id in wanted if call_id in waiting}

    def _get(self, scope: str, session: str) -> _Session:
        """Return the session without creating it."""
        return self._sessions.get((scope, session)) or _Session()
