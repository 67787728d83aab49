"""A connection that speaks HTTP/1.1: a request at a time, and the next one waits until this one is answered."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Any, cast

from dragoman.http1.heads import BadMessage
from dragoman.http1.requests import Kept, RequestHead, RequestReader
from dragoman.server.wire.answers import Framing, open_answer
from dragoman.server.wire.heads import Address, make_scope, split_target
from dragoman.server.wire.house import FIRST_HEAD_S, House
from dragoman.server.wire.outflow import Outflow
from dragoman.server.wire.turn import UNTAKEN_BYTES, Turn

_LINGER_S = 5.0  # for a client that still sends what nobody wants: only then it reads our answer
_AHEAD_BYTES = 16 * 1024  # of requests that wait until the one before is answered
_JOINED_BYTES = 64 * 1024  # shorter pieces are copied together, longer ones written one by one
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a TCP reset
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Http1Connection(Outflow):
    """idle -- head --> a turn -- answered, body read --> idle | closed; what cannot be read is refused, then closed."""

    __slots__ = (
        "_client",
        "_deaf",
        "_ended",
        "_held",
        "_in_head",
        "_reader",
        "_served",
        "_server",
        "_since",
        "_turn",
    )

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._reader = RequestReader(house.max_head_bytes)
        self._turn: Http1Turn | None = None
        self._served = False  # a request has come
        self._in_head = False
        self._held = False  # we do not read
        self._deaf = False  # what comes is thrown away
        self._ended = False  # nothing more comes
        self._since = house.now  # here, or idle, or busy with another head, or deaf
        self._client: Address = ("", 0)
        self._server: Address = ("", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's are no subclasses
        self._client = (transport.get_extra_info("peername") or ("", 0))[:2]
        self._server = (transport.get_extra_info("sockname") or ("", 0))[:2]
        self.house.guests[self] = None

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        reader = self._reader
        try:
            body = reader.feed(data)
        except BadMessage as bad:
            self._refuse(bad)
            return
        turn = self._turn
        if turn is None:
            self._begin(body)
        elif turn.body_over:
            if len(reader.rest) > _AHEAD_BYTES:
                self.hold()
        else:
            turn.feed(body, over=reader.over)
            if reader.over and turn.answered:
                self.go_on(turn)
            elif turn.untaken > UNTAKEN_BYTES and not reader.over:
                self.hold()

    def eof_received(self) -> bool:
        self._ended = True
        turn = self._turn
        if turn is None:
            return False
        if turn.body_over:  # who says no more hears no more either
            turn.leave()
            return False
        self._cut(turn)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        super().end_writing()
        self.house.leave(self)
        turn, self._turn = self._turn, None  # they know each other: a circle would outlive both
        if turn is not None:
            turn.leave()

    def look(self, now: float) -> None:
        turn = self._turn
        if turn is not None or self.transport.is_closing():
            if turn is not None and self._held and turn.body_over and self.has_left():
                self.abort()
            else:
                self.look_at_reader(now)
            return
        if self._deaf:
            limit = _LINGER_S
        else:
            limit = self.house.settings.keep_alive_s
            if not self._served:
                limit = min(limit, FIRST_HEAD_S)
        if now - self._since > limit:
            self.abort()

    def may_go(self, *, asked: bool) -> bool:
        return self._turn is None and (not self._served or (asked and self._since < self.house.now))

    def drain(self) -> None:
        if self._turn is None and not self._reader.begun_bytes:
            self.transport.close()

    def hold(self) -> None:
        if not self._held:
            self._held = True
            self.transport.pause_reading()

    def release(self) -> None:
        if self._held:
            self._held = False
            self.transport.resume_reading()

    def go_on(self, turn: Http1Turn) -> None:
        """It is answered and its body read: the next one, if there is to be one."""
        if self._turn is not turn:
            return
        self._turn = None
        self._since = self.house.now
        if not turn.keeps_alive or self.house.draining:
            self.finish()
            return
        self.release()
        reader = self._reader
        has_come = bool(reader.rest)
        try:
            body = reader.next()
        except BadMessage as bad:
            self._refuse(bad)
            return
        if has_come:
            self._begin(body)

    def finish(self) -> None:
        """Close, but let the client read what we have said (a kernel answers what comes too late with a reset)."""
        self._turn = None
        if self._ended or (self._reader.over and not self._reader.rest):
            self.transport.close()
            return
        self._deaf = True
        self._since = self.house.now
        self.release()
        if not self.transport.is_closing():
            self.transport.write_eof()

    def reset(self) -> None:
        """So that nobody takes a body that only the end of the connection ends for whole."""
        held = self.transport.get_extra_info("socket")
        if held is not None:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.abort()

    def _begin(self, body: bytes) -> None:
        reader = self._reader
        head = reader.head
        if head is None:
            if reader.speaks_http2 and not self._served:
                self._speak_http2(reader.rest)
            elif reader.speaks_http2:
                self._refuse(BadMessage("HTTP/2 begins with its first byte", 505))
            elif reader.begun_bytes and not self._in_head and self._served:
                self._in_head, self._since = True, self.house.now
            return
        try:
            scope = self._scope(head, reader.kept)
        except BadMessage as bad:
            self._refuse(bad)
            return
        self._served, self._in_head = True, False
        self._turn = turn = Http1Turn(self, head, reader.kept)
        if body or reader.over:
            turn.feed(body, over=reader.over)
        turn.begin(scope)

    def _scope(self, head: RequestHead, kept: Kept) -> dict[str, Any]:
        """One of its own for every request; made of the last one's if the head has come before."""
        if kept.scope is not None:
            return kept.scope | {"headers": head.fields}
        target, fields = split_target(head.method, head.target, head.fields)
        scope = make_scope(
            "1.1" if head.modern else "1.0", head.method, target, fields, self._client, self._server
        )
        if fields is head.fields:  # the host, that is, stands where it came
            kept.scope = scope.copy()
        return scope

    def _speak_http2(self, data: bytes) -> None:
        from dragoman.server.wire.http2 import Http2Connection  # few need it

        other = Http2Connection(self.house)
        del self.house.guests[self]
        self.transport.set_protocol(other)
        other.connection_made(self.transport)
        other.data_received(data)

    def _cut(self, turn: Http1Turn) -> None:
        self._deaf = True
        turn.keeps_alive = False
        turn.cut()

    def _refuse(self, bad: BadMessage) -> None:
        turn = self._turn
        if turn is not None:  # in the middle of its body: the application says so, in its own words
            self._cut(turn)
            return
        why = f"{bad.why}\n".encode()
        plain = [("content-type", "text/plain; charset=utf-8")]
        opening = open_answer(bad.status, plain, method="", modern=True, keeps_alive=False, length=len(why))
        self.transport.write(opening.head + why)
        self.finish()


class Http1Turn(Turn):
    """start body* : the head leaves with the first piece of the body."""

    _framing = ""
    _left = 0

    def __init__(self, connection: Http1Connection, head: RequestHead, kept: Kept) -> None:
        super().__init__(connection.house)
        self.kept = kept
        self.length = head.length
        self.keeps_alive = head.keeps_alive
        self._connection = connection
        self._head = head
        self._wants_word = head.expects_continue

    async def give(self, body: bytes, *, more: bool) -> None:
        if self.gone or self.answered:
            return
        connection = self._connection
        if more and self._framing == Framing.CHUNKS and 0 < len(body) <= _JOINED_BYTES:  # nearly always
            connection.transport.write(b"%x\r\n%b\r\n" % (len(body), body))
        else:
            self._write(body, more=more)
        if connection.is_full:
            await connection.until_taken()
        if not more and not self.gone:
            self._finish()

    def _write(self, body: bytes, *, more: bool) -> None:
        head = b"" if self._framing else self._open(None if more else len(body))
        framing = self._framing
        if framing == Framing.CHUNKS:
            self._write_chunk(head, body, more=more)
            return
        if framing == Framing.NONE:
            body = b""
        elif framing == Framing.LENGTH:
            self._left -= len(body)
            if self._left < 0:
                raise ValueError("an answer is longer than it says")
        if head and len(body) > _JOINED_BYTES:
            self._connection.transport.writelines((head, body))
        elif head or body:
            self._connection.transport.write(head + body)

    def _write_chunk(self, head: bytes, body: bytes, *, more: bool) -> None:
        transport = self._connection.transport
        if len(body) > _JOINED_BYTES:
            end = b"\r\n" if more else b"\r\n0\r\n\r\n"
            transport.writelines((b"%b%x\r\n" % (head, len(body)), body, end))
        elif body:
            frame = b"%b%x\r\n%b\r\n" if more else b"%b%x\r\n%b\r\n0\r\n\r\n"
            transport.write(frame % (head, len(body), body))
        elif head or not more:
            transport.write(head if more else head + b"0\r\n\r\n")

    def _open(self, length: int | None) -> bytes:
        """`length` is known if this is all of the body."""
        if self._start is None:
            raise RuntimeError("an answer begins with its status")
        status, fields = self._start
        opening = open_answer(
            status,
            fields,
            method=self._head.method,
            modern=self._head.modern,
            keeps_alive=self.keeps_alive and not self.house.draining and not self._cut,
            length=length,
        )
        self._start = None
        self._framing, self._left, self.keeps_alive = opening.framing, opening.length, opening.keeps_alive
        return opening.head

    def _finish(self) -> None:
        if self._framing == Framing.LENGTH and self._left:
            raise ValueError("an answer is shorter than it says")
        self.answered = True
        self._wake()
        if self.body_over or self._cut:
            self._connection.go_on(self)

    def _want(self) -> None:
        self._connection.release()
        if self._wants_word and not self._framing:
            self._wants_word = False
            self._connection.transport.write(_CONTINUE)

    def _took(self) -> None:
        self._connection.release()

    def _fail(self) -> None:
        connection = self._connection
        if not self._framing:
            self.keeps_alive = False
            self.start(500, [("content-length", "0")])
            self._write(b"", more=False)
            connection.finish()
        elif self._framing == Framing.CLOSE:
            connection.reset()
        else:
            connection.transport.close()

    def _end(self) -> None:
        if not self.body_over:  # nobody reads the rest of it
            self._connection.finish()
