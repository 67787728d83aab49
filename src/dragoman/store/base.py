"""What must outlive a process: signatures by call id, and the turns of conversations a client refers to.

Everything is written before the last byte of the answer that needs it leaves.
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


class Store(Protocol):
    @property
    def turns(self) -> Turns: ...

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        """What is known of these keys; unknown ones are simply missing."""
        ...

    async def remember(self, items: Sequence[tuple[str, str]]) -> None: ...

    async def close(self) -> None: ...
