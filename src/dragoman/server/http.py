"""The little of HTTP we need on top of ASGI: a request's head and body, and an answer that may be a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from dragoman.dialects.base import Reply
from dragoman.errors import DragomanError

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
HeaderList = tuple[tuple[str, str], ...]

JSON_HEADERS: HeaderList = (("content-type", "application/json"),)
_STREAM_HEADERS: HeaderList = (("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no"))


_PATIENCE = 4  # times the limit


class ClientLeft(Exception):
    """The client closed the connection before it got its answer."""


def headers_of(scope: Scope) -> dict[str, str]:
    """Names in lower case; of a repeated header the last one counts."""
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}


def query_of(scope: Scope) -> dict[str, str]:
    return dict(parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True))


async def read_body(receive: Receive, headers: dict[str, str], max_bytes: int) -> bytes:
    """The whole body. One that is too large is read and thrown away, up to a point: most clients look for an
    answer only after they have sent everything."""
    declared = headers.get("content-length", "")
    too_large = declared.isdigit() and int(declared) > max_bytes
    if too_large and "expect" in headers:
        raise _too_large(max_bytes)
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        piece = message.get("body", b"")
        size += len(piece)
        too_large = too_large or size > max_bytes
        if too_large:
            pieces.clear()
        else:
            pieces.append(piece)
        if not message.get("more_body", False) or size > _PATIENCE * max_bytes:
            break
    if too_large:
        raise _too_large(max_bytes)
    return b"".join(pieces)


def _too_large(max_bytes: int) -> DragomanError:
    return DragomanError(f"the request body is larger than {max_bytes} bytes", kind="too_large")


class Outlet:
    """One answer. A stream opens by itself after a short grace, and is kept alive by pings.

    The grace lets a quick refusal of Google's still be an honest HTTP status; after it the opening
    leaves whatever happens.
    """

    def __init__(self, send: Send, request_id: str) -> None:
        self.request_id = request_id
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._headers: HeaderList = (("x-dragoman-request-id", request_id), ("request-id", request_id))
        self._opening = b""
        self._content_type = ""
        self._ping: Callable[[], bytes] = bytes
        self._ping_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._ticking: asyncio.Task[None] | None = None
        self._last_write = 0.0
        self._writing = False
        self.started = False

    def prepare_stream(
        self, content_type: str, opening: bytes, ping: Callable[[], bytes], *, grace_s: float, ping_s: float
    ) -> None:
        self._content_type, self._opening, self._ping, self._ping_s = content_type, opening, ping, ping_s
        self._timer = self._loop.call_later(grace_s, self._tick)

    def add_headers(self, headers: HeaderList) -> None:
        self._headers += headers

    async def reply(self, reply: Reply) -> None:
        self._stop_timer()
        length = ("content-length", str(len(reply.body)))
        await self._start(reply.status, (*reply.headers, length))
        await self._send({"type": "http.response.body", "body": reply.body, "more_body": False})

    async def write(self, data: bytes) -> None:
        if self._ticking is not None:
            await self._ticking
        if not self.started:
            data = await self._open() + data
        if data:
            self._writing = True
            await self._send({"type": "http.response.body", "body": data, "more_body": True})
            self._writing = False
            self._last_write = self._loop.time()

    async def finish(self, data: bytes) -> None:
        self._stop_timer()
        if self._ticking is not None:
            await self._ticking
        if not self.started:
            data = await self._open() + data
        await self._send({"type": "http.response.body", "body": data, "more_body": False})

    def close(self) -> None:
        self._stop_timer()
        if self._ticking is not None:
            self._ticking.cancel()

    async def _open(self) -> bytes:
        await self._start(200, (("content-type", self._content_type), *_STREAM_HEADERS))
        return self._opening

    async def _start(self, status: int, headers: HeaderList) -> None:
        self.started = True
        self._last_write = self._loop.time()
        raw = [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in (*headers, *self._headers)
        ]
        await self._send({"type": "http.response.start", "status": status, "headers": raw})

    def _tick(self) -> None:
        """Open the stream, or ping it; a reader who is still taking the last bytes needs neither."""
        idle = self._loop.time() - self._last_write
        if self.started and idle < self._ping_s:
            self._timer = self._loop.call_later(self._ping_s - idle, self._tick)
            return
        self._timer = self._loop.call_later(self._ping_s, self._tick)
        if not self._writing and self._ticking is None:
            opening = not self.started
            self.started = True  # from this moment a refusal must be told inside the stream
            self._ticking = self._loop.create_task(self._write_tick(opening))

    async def _write_tick(self, opening: bool) -> None:
        data = await self._open() if opening else self._ping()
        self._last_write = self._loop.time()
        await self._send({"type": "http.response.body", "body": data, "more_body": True})
        self._ticking = None

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
