"""One connection to the emulator: requests in their order, answers act by act, the end as the answer says."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import cast
from urllib.parse import unquote

import msgspec

from dragoman.emulator.http.http1 import Continue, Event, Malformed, Request, RequestParser
from dragoman.emulator.http.shell import header_fields, make_question
from dragoman.emulator.question import Question
from dragoman.emulator.refusal import Refusal, refuse
from dragoman.emulator.wire import Act, Answer, Cut, Refuse, Wait

_MOST_WAITING = 16  # pipelined requests, before we read no further
_LINGER_S = 2.0  # for a client that still sends what we have refused
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close at once, with a TCP reset


class House(msgspec.Struct, kw_only=True):
    """What a server and its connections share."""

    answer: Callable[[Question], Answer]
    refuse: Callable[[float], Awaitable[None]]
    on_access: Callable[[str], None] | None
    connections: set[Connection] = set()


class _Broken(Exception):
    """The answer ends here, and the connection with it."""

    def __init__(self, *, reset: bool) -> None:
        super().__init__()
        self.reset = reset


class Connection(asyncio.Protocol):
    """A client that has gone ends a wait at once; one that only stopped sending still gets its answer."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._parser = RequestParser()
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._left = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._deaf = False
        self._unframed = False  # the answer ends where the connection ends
        self.idle = True
        self._closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's transports are no subclasses
        self._transport.set_write_buffer_limits(high=0)  # written means handed to the system
        self._house.connections.add(self)
        self._work = asyncio.get_running_loop().create_task(self._serve())

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        for event in self._parser.feed(data):
            self._events.put_nowait(event)
        if self._events.qsize() > _MOST_WAITING:
            self._transport.pause_reading()

    def eof_received(self) -> bool:
        self._left.set()
        self._events.put_nowait(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._left.set()
        self._writable.set()
        self._events.put_nowait(None)
        self._closed.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def close(self) -> None:
        """At once, whatever is going on."""
        self._work.cancel()
        self._transport.abort()
        await asyncio.wait({self._work})
        await self._closed.wait()
        self._house.connections.discard(self)

    async def _serve(self) -> None:
        try:
            while (event := await self._next()) is not None and await self._handle(event):
                pass
        except _Broken as broken:
            if broken.reset:
                held = self._transport.get_extra_info("socket")
                held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                self._transport.abort()
        finally:
            self._transport.close()
        await self._closed.wait()
        self._house.connections.discard(self)

    async def _next(self) -> Event | None:
        self.idle = self._events.empty()
        if self.idle:
            self._transport.resume_reading()
        event = await self._events.get()
        self.idle = False
        return event

    async def _handle(self, event: Event) -> bool:
        """False: this was the last one."""
        if isinstance(event, Continue):
            await self._send(b"HTTP/1.1 100 Continue\r\n\r\n")
            return True
        if isinstance(event, Malformed):
            await self._refuse(event)
            return False
        path, query = _split_target(event.target)
        answer = _ask(self._house.answer, make_question(event.verb, path, query, event.fields, event.body))
        if self._house.on_access is not None:
            self._house.on_access(f"{event.verb} {path} {answer.status}")
        await self._answer(answer, event)
        return event.keep_alive and not self._unframed

    async def _answer(self, answer: Answer, request: Request) -> None:
        for act in answer.before:
            await self._act(act)
        self._unframed = answer.streamed and not request.modern
        chunked = answer.streamed and request.modern
        await self._send(_head(answer, chunked, keep_alive=request.keep_alive and not self._unframed))
        if request.verb == "HEAD":
            return
        for act in answer.acts:
            if isinstance(act, bytes):
                await self._send(_chunk(act) if chunked else act)
            else:
                await self._act(act)
        if chunked:
            await self._send(b"0\r\n\r\n")

    async def _act(self, act: Act) -> None:
        if isinstance(act, bytes):
            await self._send(act)
        elif isinstance(act, Wait):
            await self._wait(act.seconds)
        elif isinstance(act, Cut):
            # Without a frame around the body only a reset tells a broken answer from a finished one.
            raise _Broken(reset=act.reset or self._unframed)
        else:
            assert isinstance(act, Refuse)  # noqa: S101 (closes the choice)
            await self._house.refuse(act.seconds)
            raise _Broken(reset=True)

    async def _wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._left.wait(), seconds)
        except TimeoutError:
            return
        raise _Broken(reset=False)

    async def _send(self, data: bytes) -> None:
        if data and not self._transport.is_closing():
            self._transport.write(data)
            await self._writable.wait()
        if self._transport.is_closing():
            raise _Broken(reset=False)

    async def _refuse(self, malformed: Malformed) -> None:
        """The client may still be sending: it reads our answer only if we let it finish."""
        body = f"{malformed.why}\n".encode()
        answer = Answer(status=malformed.status, content_type="text/plain; charset=utf-8", acts=(body,))
        self._deaf = True
        self._transport.resume_reading()
        await self._send(_head(answer, chunked=False, keep_alive=False) + body)
        self._transport.write_eof()
        await self._linger()

    async def _linger(self) -> None:
        try:
            await asyncio.wait_for(self._left.wait(), _LINGER_S)
        except TimeoutError:
            return


def _ask(answer: Callable[[Question], Answer], question: Question) -> Answer:
    """A director is the user's code: its mistakes are told where the user looks, in the answer."""
    try:
        return answer(question)
    except Exception as error:
        return refuse(Refusal(f"emulator: {type(error).__name__}: {error}", code=500), "whole")


def _split_target(target: str) -> tuple[str, str]:
    """Path and query; clients of a proxy send the whole address."""
    address, _, query = target.partition("?")
    if address.startswith(("http://", "https://")):
        address = "/" + address.partition("://")[2].partition("/")[2]
    return unquote(address), query


def _head(answer: Answer, chunked: bool, *, keep_alive: bool) -> bytes:
    try:
        phrase = HTTPStatus(answer.status).phrase
    except ValueError:
        phrase = ""
    fields = header_fields(answer)
    if chunked:
        fields.append(("transfer-encoding", "chunked"))
    fields.append(("connection", "keep-alive" if keep_alive else "close"))
    lines = [f"HTTP/1.1 {answer.status} {phrase}", *(f"{name}: {value}" for name, value in fields)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _chunk(data: bytes) -> bytes:
    """An empty chunk would end the message."""
    return b"%x\r\n%b\r\n" % (len(data), data) if data else b""
