"""One connection to an upstream, and those that wait for their next request.

Written for one purpose, because it is on everybody's way: aiohttp's client takes three times as long for a request
(docs/performance.md). Proxies and whatever else is unusual go with aiohttp.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import cast

import aiohappyeyeballs
import msgspec

from dragoman.upstream.http1 import AnswerReader, BrokenAnswer, Head

_KEEP_ALIVE_S = 60.0
_UNREAD_BYTES = 128 * 1024  # of one answer; beyond that the upstream is made to wait
_NEXT_ADDRESS_S = (
    0.25  # a network where one family of addresses leads nowhere costs this and no more (RFC 8305)
)


class Place(msgspec.Struct, frozen=True):
    """Where to connect to."""

    host: str
    port: int
    tls: bool


class Connection(asyncio.Protocol):
    """A request at a time: `ask`, then the head, then the body by pieces; `is_reusable` when it may be asked again."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = AnswerReader()
        self._pieces: list[bytes] = []
        self._unread = 0
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self._error: Exception | None = None
        self.total_bytes = 0
        self.idle_since = 0.0

    @property
    def waits(self) -> bool:
        """Whether somebody waits for bytes."""
        return self._waiter is not None and not self._waiter.done()

    @property
    def is_whole(self) -> bool:
        return self._reader.over

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_reusable(self) -> bool:
        """The question was sent and the answer read to its end, and the other side has not said that it hangs up."""
        reader, transport = self._reader, self._transport
        if not reader.over or self._pieces or self._error is not None or transport is None:
            return False
        keeps_alive = reader.head is not None and reader.head.keeps_alive
        return keeps_alive and not transport.is_closing() and transport.get_write_buffer_size() == 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's are no subclasses

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._end(exc)

    def eof_received(self) -> bool:
        return False  # close: nobody who asks has more to say

    def data_received(self, data: bytes) -> None:
        self.total_bytes += len(data)
        try:
            body = self._reader.feed(data)
        except BrokenAnswer as error:  # as is an answer without a question
            self.fail(error)
            return
        if body:
            self._pieces.append(body)
            self._unread += len(body)
            if self._unread > _UNREAD_BYTES and self._transport is not None:
                self._paused = True
                self._transport.pause_reading()
        waiter = self._waiter  # as in `_wake`, which is a call more for every piece
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)

    def ask(self, request: tuple[bytes, bytes]) -> None:
        if self._transport is None:
            raise ConnectionResetError("the connection was closed")
        self._reader = AnswerReader()
        self._transport.writelines(request)

    @property
    def head(self) -> Head | None:
        return self._reader.head

    def ready(self) -> bytes | None:
        """What has come by now; nothing at the end, None while there is `news` to wait for."""
        pieces = self._pieces
        if not pieces:
            return b"" if self._reader.over else None
        self._pieces, self._unread = [], 0
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def news(self) -> asyncio.Future[None]:
        """To be awaited: done when anything has happened."""
        if self._error is not None:
            raise self._take_error(self._error)
        if self._transport is None:
            raise ConnectionResetError("the connection was closed")
        waiter = self._waiter = self._loop.create_future()
        return waiter

    def rest(self) -> None:
        """Until the next request."""
        self.idle_since = self._loop.time()

    def fail(self, error: Exception) -> None:
        """Whoever waits, or asks next, is told."""
        self._error = self._error or error.with_traceback(None)
        self.abort()
        self._wake()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def _take_error(self, error: Exception) -> Exception:
        """Handed over, not kept: what was raised holds its frames, and they hold the connection."""
        self._error = ConnectionResetError("the connection was closed")
        return error

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    def _end(self, error: Exception | None) -> None:
        if self._error is None:
            try:
                self._reader.close()
            except BrokenAnswer as broken:
                self._error = error or broken.with_traceback(None)
        self._wake()


class Connections:
    """Open ones by their place; the one that was used last is used next, so that the others can end."""

    def __init__(self, connect_timeout_s: float, tls: Callable[[], ssl.SSLContext]) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._make_tls = tls
        self._tls: ssl.SSLContext | None = None
        self._idle: dict[Place, list[Connection]] = {}
        self._sweeper: asyncio.TimerHandle | None = None

    def find(self, place: Place) -> Connection | None:
        """One that waits for its next request."""
        waiting = self._idle.get(place)
        while waiting:
            connection = waiting.pop()
            if connection.is_open:
                return connection
        return None

    def give_back(self, place: Place, connection: Connection) -> None:
        """Closed at once unless its answer was read to the end."""
        if not connection.is_reusable:
            connection.abort()
            return
        connection.rest()
        self._idle.setdefault(place, []).append(connection)
        if self._sweeper is None:
            self._sweeper = asyncio.get_running_loop().call_later(_KEEP_ALIVE_S, self._sweep)

    def close(self) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
            self._sweeper = None
        for waiting in self._idle.values():
            for connection in waiting:
                connection.abort()
        self._idle = {}

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - _KEEP_ALIVE_S
        for place, waiting in list(self._idle.items()):
            kept = [one for one in waiting if one.is_open and one.idle_since > oldest]
            for connection in waiting:
                if connection.idle_since <= oldest:
                    connection.abort()
            self._idle[place] = kept
            if not kept:
                del self._idle[place]
        self._sweeper = loop.call_later(_KEEP_ALIVE_S / 4, self._sweep) if self._idle else None

    async def connect(self, place: Place) -> Connection:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(self._connect_timeout_s):
            addresses = await loop.getaddrinfo(place.host, place.port, type=socket.SOCK_STREAM)
            opened = await aiohappyeyeballs.start_connection(
                addresses, happy_eyeballs_delay=_NEXT_ADDRESS_S, interleave=1, loop=loop
            )
            if place.tls and self._tls is None:
                self._tls = self._make_tls()
            name = place.host if place.tls else None
            try:
                _, connection = await loop.create_connection(
                    Connection, sock=opened, ssl=self._tls if place.tls else None, server_hostname=name
                )
            except BaseException:
                opened.close()
                raise
        return connection
