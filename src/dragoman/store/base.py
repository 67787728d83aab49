"""What must outlive a process: signatures by call id, the turns of conversations a client refers to, the tools
that sessions have here, and the ledger of what was asked.

Everything but the ledger is written before the last byte of the answer that needs it leaves.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

import msgspec


class StoreUnavailable(Exception):
    """The disk or the server behind a store does not answer; what can go on without state goes on."""


class HeadMoved(Exception):
    """Somebody else added a turn to the conversation first; this one was not saved."""


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One request and its answer. `parent` is the turn before, `data` what its dialect wants to know again.

    `answer` is what the client got, for it to read again; a line of turns is found without it.
    Whoever asks for a turn must name its `scope`: what one caller kept no other can see.
    """

    id: str
    scope: str
    data: bytes
    parent: str = ""
    answer: bytes = b""


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """A named line of turns; `head` is the last one, `data` what the client noted about it."""

    name: str
    scope: str
    head: str = ""
    data: bytes = b"{}"
    created_s: int = 0


class Turns(Protocol):
    async def save(self, turn: Turn, conversation: str = "") -> None:
        """Keep a turn; as the new head of the conversation if one is named and its head is the turn's parent."""
        ...

    async def chain(self, scope: str, turn_id: str) -> list[Turn]:
        """The turn and all before it, oldest first, without answers; empty if it or one before it is gone."""
        ...

    async def turn(self, scope: str, turn_id: str) -> Turn | None:
        """The turn alone, with its answer."""
        ...

    async def delete(self, scope: str, turn_id: str, *, keep_line: bool = False) -> bool:
        """Forget a turn, and with it what follows; or its answer only, so that the line goes on."""
        ...

    async def conversation(self, scope: str, name: str) -> Conversation | None: ...

    async def put_conversation(self, conversation: Conversation) -> None:
        """A new one, or new `data` for one that exists: its head stays."""
        ...

    async def delete_conversation(self, scope: str, name: str) -> bool: ...

    async def lease(self, name: str, holder: str, seconds: float) -> bool:
        """Whether `name` now belongs to `holder` for so long; the holder may ask again to keep it."""
        ...

    async def release(self, name: str, holder: str) -> None: ...


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """So much more on the meter `name`, which must not pass `limit` (0: it may); forgotten after `ends_s`."""

    name: str
    amount: int
    ends_s: int
    limit: int = 0


class Meters(Protocol):
    """Whole numbers that many requests at many replicas add to at once, and never pass."""

    async def charge(self, charges: Sequence[Charge]) -> str:
        """Add all of them, or none if one would pass its limit: then the name of the first such meter."""
        ...

    async def read(self, names: Collection[str]) -> dict[str, int]:
        """What the meters show; one that was never charged shows 0."""
        ...


class Toolset(msgspec.Struct, frozen=True, kw_only=True):
    """What a session has: its tools, and how they are to be chosen; both as their owner wrote them."""

    tools: bytes = b""
    config: bytes = b""


#: An id and what is known of it.
Entry = tuple[str, bytes]


class SessionTools(Protocol):
    """Tools, calls and results of sessions; each belongs to a `scope`, and nobody else's session has them.

    A session that is used lives on; one that is not is forgotten whole.
    """

    async def set_tools(self, scope: str, session: str, tools: bytes) -> None: ...

    async def set_config(self, scope: str, session: str, config: bytes) -> None: ...

    async def toolset(self, scope: str, session: str) -> Toolset | None:
        """What was set, or None for a session that has nothing."""
        ...

    async def clear(self, scope: str, session: str) -> bool:
        """Forget the tools, their config, the calls and the results; whether there was anything."""
        ...

    async def register_calls(
        self, scope: str, session: str, calls: Sequence[Entry], *, last: bool = True
    ) -> None:
        """These are the last calls now, unless they are not; one that is known gets the new data at its old place."""
        ...

    async def call(self, scope: str, session: str, call_id: str) -> bytes | None: ...

    async def calls(self, scope: str, session: str) -> list[Entry]:
        """Everything that was registered, oldest first; of very many the newest `MAX_CALLS`."""
        ...

    async def last_calls(self, scope: str, session: str) -> list[Entry]: ...

    async def add_results(self, scope: str, session: str, results: Sequence[Entry]) -> None: ...

    async def results(self, scope: str, session: str) -> dict[str, bytes]:
        """What waits to be taken, by call id."""
        ...

    async def take_results(
        self, scope: str, session: str, call_ids: Collection[str] | None = None
    ) -> dict[str, bytes]:
        """The same, all or those of these calls, and gone: nobody else can take them."""
        ...


#: Of one session.
MAX_CALLS = 1000


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One request in the ledger: `data` is its record as whoever noted it wrote it."""

    id: str
    at_ms: int
    session: str = ""
    data: bytes


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Sums of one day for one kind of thing (`model`, `session`, `tool`, …) told apart by labels."""

    day: str  # 2026-11-16, UTC
    kind: str
    labels: tuple[str, ...]
    sums: dict[str, int]


#: Of all lines the newest, and none that is older.
LEDGER_LINES = 20_000
LEDGER_LINES_S = 30 * 86_400
#: Tallies stay longer: they are small.
LEDGER_DAYS = 400
#: Of one day and kind; clients could make any number of names, so what is too many is one tally of these labels.
LEDGER_LABELS = 500
OTHER_LABEL = "other"


class Ledger(Protocol):
    """What was asked and what it came to; bounded, and nobody's request depends on it."""

    async def note(self, lines: Sequence[Line], tallies: Sequence[Tally]) -> None:
        """Keep the lines, add up the sums: exactly, whoever else notes meanwhile. A line that is known stays."""
        ...

    async def lines(
        self, *, limit: int, before: tuple[int, str] | None = None, session: str = ""
    ) -> list[Line]:
        """The newest first; `before` is the time and the id of the last one seen."""
        ...

    async def line(self, line_id: str) -> Line | None: ...

    async def tallies(self, kind: str, first_day: str, last_day: str) -> list[Tally]:
        """Of these days, both included, by day and labels."""
        ...


class Store(Protocol):
    @property
    def turns(self) -> Turns: ...

    @property
    def meters(self) -> Meters: ...

    @property
    def session_tools(self) -> SessionTools: ...

    @property
    def ledger(self) -> Ledger: ...

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        """What is known of these keys; unknown ones are simply missing."""
        ...

    async def remember(self, items: Sequence[tuple[str, str]]) -> None: ...

    async def close(self) -> None: ...
