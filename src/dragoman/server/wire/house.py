"""What the connections of one server share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from dragoman.config import ServerConfig

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

FIRST_HEAD_S = 30.0  # for the first request of a connection to be said

_LEAST_HEADER_BYTES = 8 * 1024


class Guest(Protocol):
    """A connection, as the server sees it."""

    def look(self, now: float) -> None:
        """Has its time come?"""

    def may_go(self, *, asked: bool) -> bool:
        """When others wait for its place: nothing runs, and no request has come; or, if it `asked` once, none of late."""

    def drain(self) -> None:
        """No more requests; what runs may finish."""

    def abort(self) -> None:
        """At once."""


class House:
    """`now` is a clock that goes by the server's looks at its connections: nobody has to ask for the time."""

    __slots__ = (
        "app",
        "draining",
        "guests",
        "loop",
        "max_head_bytes",
        "max_tasks",
        "now",
        "on_leave",
        "settings",
        "tasks",
    )

    def __init__(self, app: App, settings: ServerConfig, on_leave: Callable[[], None]) -> None:
        self.app = app
        self.settings = settings
        self.max_head_bytes = max(settings.max_header_bytes, _LEAST_HEADER_BYTES)
        # Who is refused takes no place among the requests. HTTP/1.1 needs no such bound: a connection asks one by one.
        self.max_tasks = settings.max_requests + settings.max_connections
        self.loop = asyncio.get_running_loop()
        self.guests: dict[Guest, None] = {}  # the oldest first
        self.tasks: set[asyncio.Task[None]] = set()
        self.now = self.loop.time()
        self.draining = False
        self.on_leave = on_leave

    @property
    def is_full(self) -> bool:
        return len(self.tasks) >= self.max_tasks

    def leave(self, guest: Guest) -> None:
        self.guests.pop(guest, None)
        self.on_leave()

    def make_room(self) -> None:
        """One goes who only keeps others out, if there is one: first of those who have never asked anything."""
        for asked in (False, True):
            for guest in self.guests:
                if guest.may_go(asked=asked):
                    guest.abort()
                    return
