"""One stream of HTTP/2: a request, and an answer that leaves as fast as the stream's window opens."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from dragoman.http1.heads import Fields
from dragoman.server.wire.heads import date, is_bodiless
from dragoman.server.wire.http2_heads import NOT_HERE
from dragoman.server.wire.turn import Turn

if TYPE_CHECKING:
    from dragoman.server.wire.http2 import Http2Connection


class Http2Turn(Turn):
    """start body* on one stream, as fast as its window opens."""

    def __init__(self, connection: Http2Connection, stream: int, method: str, fields: Fields) -> None:
        super().__init__(connection.house)
        self._connection = connection
        self._method = method
        self._wants_word = any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in fields
        )
        self._begun = False
        self._bodiless = False
        self._opened: asyncio.Future[None] | None = None
        self.stream = stream
        self.unacknowledged = 0
        self.blocked_since = 0.0
        self.ended = False  # the application has

    async def give(self, body: bytes, *, more: bool) -> None:
        if self.gone or self.answered:
            return
        try:
            await self._write(body, end=not more)
        except ProtocolError:  # the stream is over, and we shall be told
            self._connection.give_up(self, ErrorCodes.INTERNAL_ERROR)
            self.leave()
            return
        if not more and not self.gone:
            self.answered = True
            self._wake()
            if self.body_over:
                self._connection.finish(self)

    @property
    def is_blocked(self) -> bool:
        """It waits for its window to open."""
        return self._opened is not None

    def unblock(self) -> None:
        if self._opened is not None and not self._opened.done():
            self._opened.set_result(None)

    def leave(self) -> None:
        super().leave()
        self.unblock()

    async def _write(self, body: bytes, *, end: bool) -> None:
        connection = self._connection
        if not self._begun:
            self._send_head(end=end and not body)
            if end and not body:
                connection.flush()
                return
        if self._bodiless:
            if end:
                connection.send_data(self.stream, b"", end=True)
            return
        at = 0
        while not self.gone and (at < len(body) or end):
            room = connection.window(self.stream)
            if room <= 0 < len(body) - at:
                connection.flush()
                await self._until_open()
                continue
            piece = body[at : at + room]
            at += len(piece)
            end_here = end and at == len(body)
            connection.send_data(self.stream, piece, end=end_here, cut=at < len(body))
            self.blocked_since = 0.0
            if connection.is_full:
                await connection.until_taken()
            if end_here:
                return
        connection.flush()

    def _send_head(self, *, end: bool) -> None:
        if self._start is None:
            raise RuntimeError("an answer begins with its status")
        status, given = self._start
        named = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in given]
        fields = [(name, value) for name, value in named if name not in NOT_HERE]
        if all(name != b"date" for name, _ in fields):
            fields.append((b"date", date().encode()))
        self._begun = True
        self._bodiless = is_bodiless(self._method, status)
        self._connection.send_head(self.stream, [(b":status", b"%d" % status), *fields], end=end)

    async def _until_open(self) -> None:
        if not self.blocked_since:  # a window that opened for nothing is not the end of it
            self.blocked_since = self.house.now
        self._opened = self.house.loop.create_future()
        try:
            await self._opened
        finally:
            self._opened = None

    def _want(self) -> None:
        if self._wants_word and not self._begun:
            self._wants_word = False
            self._connection.send_head(self.stream, [(b":status", b"100")], end=False)
            self._connection.flush()

    def _took(self) -> None:
        taken, self.unacknowledged = self.unacknowledged, 0
        if not self.gone:
            self._connection.acknowledge(taken, self.stream)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.ended = True
        self._connection.running -= 1
        super()._done(task)

    def _fail(self) -> None:
        if self._begun:
            self._connection.give_up(self, ErrorCodes.INTERNAL_ERROR)
            return
        with suppress(ProtocolError):  # the connection is at its end
            self._connection.send_head(
                self.stream, [(b":status", b"500"), (b"content-length", b"0")], end=True
            )
        self._connection.flush()
        self._end()

    def _end(self) -> None:
        if self.body_over:
            self._connection.finish(self)
        else:  # nobody reads the rest of it
            self._connection.give_up(self, ErrorCodes.NO_ERROR)
