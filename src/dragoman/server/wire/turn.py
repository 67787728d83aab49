"""One request and its answer, as ASGI has them; HTTP/1.1 and HTTP/2 differ in how bytes leave."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from dragoman.server.wire.house import House, Message

#: `scope["extensions"][LEAVING](callback)`: tell me when the client has gone. None takes it back.
LEAVING = "dragoman.leaving"
#: `scope["extensions"][BODY]()`: all of the body if it has come by now, instead of receiving it; else None.
BODY = "dragoman.body"
UNTAKEN_BYTES = 128 * 1024  # of a body; beyond that the client is made to wait

_log = logging.getLogger("dragoman")


class Turn:
    """Body pieces come in by `feed` and `end` and go out by `receive`.

    `cut` says that no more of the body comes, but the client may still listen; `leave`, that nobody does.
    """

    __slots__ = (
        *("_callback", "_cut", "_pieces", "_told", "_waiter"),
        *("answered", "body_over", "gone", "house", "untaken"),
    )

    def __init__(self, house: House) -> None:
        self.house = house
        self.untaken = 0
        self.body_over = False
        self.answered = False
        self.gone = False
        self._pieces: list[bytes] = []
        self._told = False  # the end of the body
        self._cut = False
        self._waiter: asyncio.Future[None] | None = None
        self._callback: Callable[[], None] | None = None

    def begin(self, scope: dict[str, Any]) -> None:
        scope["extensions"] = {LEAVING: self.tell_leaving, BODY: self.take_body}
        work: Any = self.house.app(scope, self.receive, self.send)
        task = self.house.loop.create_task(work)
        self.house.tasks.add(task)
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
