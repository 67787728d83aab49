"""The protocols and values of the state store.

A store keeps thought signatures by call id, the turns of conversations that clients refer to, the tools of
sessions, quota meters, and the ledger of requests. Everything but the ledger is written before the last byte
of the answer that depends on it is sent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import msgspec


class StoreUnavailable(Exception):
    """The disk or the server of a store does not respond; features that work without state continue."""


class HeadMoved(Exception):
    """Another request added a turn to the conversation first; this turn was not saved."""


class ConversationTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its answer.

    `parent` is the id of the previous turn and `data` is what the dialect needs to continue. `answer` is the
    response body, for clients that retrieve it again; `chain` does not load it. A turn is found only under
    its `scope`, so that no caller sees the turns of another.
    """

    id: str
    scope: str
    data: bytes
    parent: str = ""
    answer: bytes = b""


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A named chain of turns: `head` is the last turn, `data` is the client's metadata."""

    name: str
    scope: str
    head: str = ""
    data: bytes = b"{}"
    created_s: int = 0


class Turns(Protocol):
    async def save(self, turn: ConversationTurn, conversation: str = "") -> None:
        """Save a turn; if a conversation is named, also make the turn its head.

        Raise `HeadMoved` if the head of the conversation is not the turn's parent.
        """
        ...

    async def chain(self, scope: str, turn_id: str) -> list[ConversationTurn]:
        """Return the turn and its ancestors, oldest first, without answers; empty if one of them is missing."""
        ...

    async def turn(self, scope: str, turn_id: str) -> ConversationTurn | None:
        """Return the turn with its answer."""
        ...

    async def delete(self, scope: str, turn_id: str, *, keep_turn: bool = False) -> bool:
        """Delete a turn, which breaks the chain of all later ones; with `keep_turn` delete only its answer.

        Return whether anything was deleted.
        """
        ...

    async def conversation(self, scope: str, name: str) -> Conversation | None: ...

    async def put_conversation(self, conversation: Conversation) -> None:
        """Create a conversation, or replace the `data` of an existing one without changing its head."""
        ...

    async def delete_conversation(self, scope: str, name: str) -> bool: ...

    async def acquire_lease(self, name: str, holder: str, seconds: float) -> bool:
        """Acquire or renew the lease `name`; return False if another holder has it."""
        ...

    async def release_lease(self, name: str, holder: str) -> None: ...


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """Add `amount` to the meter `name`, up to `limit` (0 means no limit); the meter expires at `ends_s`."""

    name: str
    amount: int
    ends_s: int
    limit: int = 0


class Meters(Protocol):
    """Integer counters with limits, shared by all replicas."""

    async def charge(self, charges: Sequence[Charge]) -> str:
        """Add all charges, or none if one would exceed its limit; return the name of that meter, or ""."""
        ...

    async def read(self, names: Collection[str]) -> dict[str, int]:
        """Return the values of the meters; a meter that does not exist is 0."""
        ...


class Toolset(msgspec.Struct, frozen=True, kw_only=True):
    """The tools and the tool config of a session, each in the encoding of the caller that set it."""

    tools: bytes = b""
    config: bytes = b""


#: An id and its data.
CallData = tuple[str, bytes]


class SessionToolStore(Protocol):
    """Tools, calls and results of sessions, separated by `scope`.

    A session expires as a whole when it has not been used for the retention time.
    """

    async def set_tools(self, scope: str, session: str, tools: bytes) -> None: ...

    async def set_config(self, scope: str, session: str, config: bytes) -> None: ...

    async def toolset(self, scope: str, session: str) -> Toolset | None:
        """Return the tools and the config of the session, or None if neither is set."""
        ...

    async def clear(self, scope: str, session: str) -> bool:
        """Delete the tools, the config, the calls and the results; return whether there were any."""
        ...

    async def register_calls(
        self, scope: str, session: str, calls: Sequence[CallData], *, last: bool = True
    ) -> None:
        """Register calls, and make them the last calls unless `last` is false.

        A call that is already registered gets the new data and keeps its position.
        """
        ...

    async def call(self, scope: str, session: str, call_id: str) -> bytes | None: ...

    async def calls(self, scope: str, session: str) -> list[CallData]:
        """Return the registered calls, oldest first; only the newest `MAX_SESSION_CALLS` are kept."""
        ...

    async def last_calls(self, scope: str, session: str) -> list[CallData]: ...

    async def add_results(self, scope: str, session: str, results: Sequence[CallData]) -> None: ...

    async def results(self, scope: str, session: str) -> dict[str, bytes]:
        """Return the results that have not been taken yet, by call id."""
        ...

    async def take_results(
        self, scope: str, session: str, call_ids: Collection[str] | None = None
    ) -> dict[str, bytes]:
        """Return and remove results: all of them, or those of `call_ids`. A result is given out only once."""
        ...


#: How many calls are kept for one session.
MAX_SESSION_CALLS = 1000


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One request in the ledger; `data` is its encoded record."""

    id: str
    at_ms: int
    session: str = ""
    data: bytes


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of one day for one kind (`model`, `session`, `tool`, …) and one combination of labels."""

    day: str  # YYYY-MM-DD, UTC
    kind: str
    labels: tuple[str, ...]
    sums: dict[str, int]


#: The ledger keeps at most this many entries, and none older than this.
MAX_LEDGER_ENTRIES = 20_000
LEDGER_ENTRY_MAX_AGE_S = 30 * 86_400
#: Tallies are small, so they are kept longer.
LEDGER_DAYS = 400
#: Maximum of label combinations for one day and kind. Clients can send any number of names, so the rest is
#: summed up under `OTHER_LABEL`.
MAX_LEDGER_LABELS = 500
OTHER_LABEL = "other"


def first_retained_day(now_s: float) -> str:
    return (datetime.fromtimestamp(now_s, UTC) - timedelta(days=LEDGER_DAYS)).date().isoformat()


def other_labels(labels: tuple[str, ...]) -> tuple[str, ...]:
    return (OTHER_LABEL,) * len(labels)


class Ledger(Protocol):
    """A bounded record of requests and of their daily sums; no request depends on it."""

    async def add(self, entries: Sequence[LedgerEntry], tallies: Sequence[Tally]) -> None:
        """Add entries and sums; concurrent additions are not lost. An entry with a known id is not changed."""
        ...

    async def entries(
        self, *, limit: int, before: tuple[int, str] | None = None, session: str = ""
    ) -> list[LedgerEntry]:
        """Return entries, newest first; `before` is the time and the id of the last entry of the previous page."""
        ...

    async def entry(self, entry_id: str) -> LedgerEntry | None: ...

    async def tallies(self, kind: str, first_day: str, last_day: str) -> list[Tally]:
        """Return the tallies from `first_day` to `last_day` inclusive, sorted by day and labels."""
        ...


class Store(Protocol):
    @property
    def turns(self) -> Turns: ...

    @property
    def meters(self) -> Meters: ...

    @property
    def session_tools(self) -> SessionToolStore: ...

    @property
    def ledger(self) -> Ledger: ...

    async def get_values(self, keys: Collection[str]) -> dict[str, str]:
        """Return the stored values; keys without a value are missing from the result."""
        ...

    async def set_values(self, items: Sequence[tuple[str, str]]) -> None: ...

    async def close(self) -> None: ...
