"""One request and its answer, as ASGI has them; HTTP/1.1 and HTTP/2 differ in how bytes leave."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from dragoman.http1.requests import Kept
from dragoman.server.wire.heads import TextFields
from dragoman.server.wire.house import House, Message

#: `scope["extensions"][TURN]` is the turn: what it can do beside ASGI, nobody else's server can.
TURN = "dragoman.turn"
UNTAKEN_BYTES = 128 * 1024  # of a body; beyond that the client is made to wait

_log = logging.getLogger("dragoman")


class Turn:
    """Body pieces come in by `feed` and `end` and go out by `receive`; an answer goes out by `start` and `give`.

    `cut` says that no more of the body comes, but the client may still listen; `leave`, that nobody does.
    """

    #: Of a head that may come again: what is worked out of it is kept there, and `length` is what differs.
    kept: Kept | None = None
    length: int | None = None
    untaken = 0
    body_over = False
    answered = False
    gone = False
    _told = False  # the end of the body
    _cut = False
    _waiter: asyncio.Future[None] | None = None
    _callback: Callable[[], None] | None = None
    _start: tuple[int, TextFields] | None = None

    def __init__(self, house: House) -> None:
        self.house = house
        self._pieces: list[bytes] = []

    def begin(self, scope: dict[str, Any]) -> None:
        scope["extensions"] = {TURN: self}
        house = self.house
        work: Any = house.app(scope, self.receive, self.send)
        task = house.loop.create_task(work)
        house.tasks.add(task)
        task.add_done_callback(self._done)

    def feed(self, piece: bytes, *, over: bool) -> None:
        if piece:
            self._pieces.append(piece)
            self.untaken += len(piece)
        self.body_over = over
        if self._waiter is not None and (piece or over):
            self._wake()

    def cut(self) -> None:
        self._cut = True
        self._wake()

    def leave(self) -> None:
        if not self.gone:
            self.gone = True
            self._wake()
            self._tell()

    def tell_leaving(self, callback: Callable[[], None] | None) -> None:
        """Tell me when the client has gone. None takes it back."""
        self._callback = callback
        if callback is not None and self.gone:
            self.house.loop.call_soon(self._tell)

    async def receive(self) -> Message:
        if self._told:
            while not (self.gone or self._cut or self.answered):
                await self._wait()
            return {"type": "http.disconnect"}
        while not (self._pieces or self.body_over or self.gone or self._cut):
            self._want()
            await self._wait()
        if self.gone or (self._cut and not self._pieces):
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": self._take(), "more_body": not self._told}

    def take_body(self) -> bytes | None:
        """All of the body if it has come by now, instead of receiving it."""
        if self._told or self.gone or not self.body_over:
            return None
        return self._take()

    def _take(self) -> bytes:
        pieces, self._pieces = self._pieces, []
        self.untaken = 0
        self._told = self.body_over
        self._took()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            fields = message["headers"]
            self.start(
                message["status"],
                [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields],
            )
        else:
            await self.give(message.get("body", b""), more=message.get("more_body", False))

    def start(self, status: int, fields: TextFields) -> None:
        """The head of the answer; it leaves with the first piece of the body."""
        self._start = (status, fields)

    async def give(self, body: bytes, *, more: bool) -> None:
        """A piece of the answer's body, the last one if there is no `more`."""
        raise NotImplementedError

    def _want(self) -> None:
        """The application waits for a body of which nothing is here."""

    def _took(self) -> None:
        """The application has all that was here of the body."""

    def _fail(self) -> None:
        """The application has ended, and its answer has not."""

    def _end(self) -> None:
        """The application has answered and ended."""

    def _done(self, task: asyncio.Task[None]) -> None:
        self.house.tasks.discard(task)
        self._callback = None
        error = None if task.cancelled() else task.exception()
        if error is not None:
            _log.debug("a request ended with %r", error)
        self._pieces = []
        if self.gone:
            return
        if self.answered:
            self._end()
        else:
            self._fail()

    def _tell(self) -> None:
        callback, self._callback = self._callback, None
        if callback is not None:
            callback()

    async def _wait(self) -> None:
        self._waiter = self.house.loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
