"""Reading of request bodies, with limits on each body, on all bodies together, and on time."""

from __future__ import annotations

import asyncio
import contextlib
import io
from collections.abc import Mapping

from dragoman.config import ServerConfig
from dragoman.errors import DragomanError, NotAllowed
from dragoman.gateway.asgi import ClientDisconnect, IncompleteBody, Receive
from dragoman.gateway.limits.concurrency import ByteBudget, ByteLease, RequestLease

_UNAUTHENTICATED_SHARE = 4  # unauthenticated bodies may take a quarter of max_inflight_bytes
_UNAUTHENTICATED_TIMEOUT_S = 60.0
_LINGER_S = 30.0
_LINGER_BODIES = 4  # `discard` reads at most this many times the largest allowed body
_LINGERING_SHARE = 4  # at most a quarter of the connections may be rejected clients that are still sending
_MAX_DEADLINE_EXTENSIONS = 4  # of the idle deadline, per `body_idle_s` and while bytes keep arriving
_MAX_LENGTH_DIGITS = 20


class BodyReader:
    """Read one request body from ASGI, chunk by chunk; `is_complete` is true once the last chunk has arrived.

    `content_length` is the Content-Length, or None.
    """

    is_complete = False

    def __init__(self, receive: Receive, headers: Mapping[str, str]) -> None:
        self._receive = receive
        self.content_length = _content_length(headers)
        self.expects_continue = "expect" in headers  # the client sends nothing before 100 Continue

    async def read_chunk(self) -> bytes:
        """Return the next chunk; raise IncompleteBody if the client disconnects."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            self.is_complete = True
            raise IncompleteBody
        self.is_complete = not message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        return chunk


class BodyLimits:
    """Read bodies; the bytes of a body count against `max_inflight_bytes` until its request has ended.

    Bodies of signed requests are unauthenticated while they are read: they share a smaller budget of bytes,
    and must arrive within a fixed time.
    """

    def __init__(self, server: ServerConfig) -> None:
        self._max_body_bytes = min(server.max_body_bytes, server.max_inflight_bytes)
        self._idle_s = server.body_idle_s
        self.byte_budget = ByteBudget(server.max_inflight_bytes)
        self._unauthenticated_budget = ByteBudget(
            max(server.max_inflight_bytes // _UNAUTHENTICATED_SHARE, self._max_body_bytes)
        )
        self._lingering = 0
        self._max_lingering = max(server.max_connections // _LINGERING_SHARE, 1)

    async def read(self, reader: BodyReader, lease: RequestLease, *, authenticated: bool) -> bytes:
        """Return the whole body, and account its bytes in `lease`, a lease of this object's `byte_budget`.

        A declared length is checked before anything is read. Raises DragomanError: `too_large`, `overloaded`
        or `timeout`; ClientDisconnect if the client disconnects.
        """
        declared = self._check_size(reader.content_length or 0)
        if authenticated:
            lease.take(declared)
            return await self._read_chunks(reader, lease if reader.content_length is None else None)
        try:  # an unauthenticated client reserves no bytes by merely declaring a length
            async with asyncio.timeout(_UNAUTHENTICATED_TIMEOUT_S):
                with self._unauthenticated_budget.lease() as unverified:
                    body = await self._read_chunks(reader, unverified)
        except TimeoutError:
            raise NotAllowed(
                f"the body of a signed request must arrive within {_UNAUTHENTICATED_TIMEOUT_S:.0f} s"
            ) from None
        lease.take(len(body))
        return body

    async def _read_chunks(self, reader: BodyReader, lease: ByteLease | None) -> bytes:
        """Read all chunks, and add the size of each to `lease` if there is one."""
        body = io.BytesIO()  # not a list of chunks: a chunk of one byte would take forty bytes in it
        size = 0
        loop = asyncio.get_running_loop()
        extended = loop.time()
        try:
            async with asyncio.timeout(self._idle_s) as deadline:
                while True:
                    chunk = await reader.read_chunk()
                    size = self._check_size(size + len(chunk))
                    if lease is not None:
                        lease.take(len(chunk))
                    body.write(chunk)
                    if reader.is_complete:
                        break
                    now = loop.time()
                    # Not for every chunk: rescheduling a timer costs more than reading a chunk.
                    if now - extended > self._idle_s / _MAX_DEADLINE_EXTENSIONS:
                        extended = now
                        deadline.reschedule(now + self._idle_s)
        except TimeoutError:
            why = f"nothing of the request body has come for {self._idle_s:g} s"
            raise DragomanError(why, kind="timeout") from None
        return body.getvalue()

    async def discard(self, reader: BodyReader) -> None:
        """Read and drop the rest of a rejected request's body: most clients read the response only after it.

        If the connection were closed at once, the kernel would answer further bytes with a reset and the
        client would lose the error response. Time, bytes and the number of such clients are limited, so that
        slow ones cannot occupy all connections.
        """
        if reader.expects_continue or self._lingering >= self._max_lingering:
            return
        left = _LINGER_BODIES * self._max_body_bytes
        self._lingering += 1
        try:
            with contextlib.suppress(TimeoutError, ClientDisconnect):
                async with asyncio.timeout(_LINGER_S):
                    while not reader.is_complete and left > 0:
                        left -= len(await reader.read_chunk())
        finally:
            self._lingering -= 1

    def _check_size(self, size: int) -> int:
        if size > self._max_body_bytes:
            why = f"the request body is larger than {self._max_body_bytes} bytes"
            raise DragomanError(why, kind="too_large")
        return size


def _content_length(headers: Mapping[str, str]) -> int | None:
    length = headers.get("content-length", "")
    return int(length) if length.isdecimal() and len(length) < _MAX_LENGTH_DIGITS else None
