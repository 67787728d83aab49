"""Write one response on ASGI: a whole one, or a stream with pings. Its bytes are reported to the request's recorder."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, MutableMapping
from typing import Any

from dragoman.dialects.base import HeaderList, Reply
from dragoman.gateway.asgi import Send
from dragoman.gateway.telemetry.request_recorder import RequestRecorder

JSON_HEADERS: HeaderList = (("content-type", "application/json"),)
_STREAM_HEADERS: HeaderList = (("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no"))


class ResponseWriter:
    """Write one response: `reply()` for a whole one, or `prepare_stream()`, `write()` and `finish()`.

    A stream opens by itself after a grace period and is then kept alive by pings. Within the grace period an
    early error from Google can still become an HTTP error status; after it, status 200 and the opening bytes
    have been sent. `on_stall` is called when the client has read nothing for `reader_idle_s` during a write.
    TCP alone does not notice this: it keeps acknowledging bytes of an HTTP/2 stream whose window is closed.
    """

    id_header = ""  # another response header for the request id, which the client's SDK looks for
    _opening = b""
    _content_type = ""
    _ping_s = 0.0
    _timer: asyncio.TimerHandle | None = None
    _tick_task: asyncio.Task[None] | None = None
    _last_write = 0.0
    _writing = False
    pings_paused = False  # encoded bytes are waiting to be written; a ping must not overtake them
    started = False
    ended = False  # the last byte was passed to the server; a later disconnect loses nothing

    on_stall: Callable[[], None] | None = None

    def __init__(self, send: Send, recorder: RequestRecorder, reader_idle_s: float = math.inf) -> None:
        self.request_id = recorder.id
        self.recorder = recorder
        self._asgi_send = send
        self._reader_idle_s = reader_idle_s
        self._head: MutableMapping[str, Any] | None = None  # sent together with the first bytes of the body
        self._loop = asyncio.get_running_loop()
        self._headers: dict[str, str] = {"x-dragoman-request-id": recorder.id, "x-dragoman-notes": "0"}
        self._ping: Callable[[], bytes] = bytes

    def prepare_stream(
        self, content_type: str, opening: bytes, ping: Callable[[], bytes], *, grace_s: float, ping_s: float
    ) -> None:
        """Open the stream with the first `write()` or after `grace_s`; ping it when idle for `ping_s`."""
        self._content_type, self._opening, self._ping, self._ping_s = content_type, opening, ping, ping_s
        self._schedule_tick(grace_s)

    def add_headers(self, headers: HeaderList) -> None:
        """Add response headers. A later value replaces an earlier one of the same name."""
        self._headers |= dict(headers)

    async def reply(self, reply: Reply) -> None:
        """Send a whole response."""
        self._stop_timer()
        body = reply.body
        self._start(reply.status, [*reply.headers, ("content-length", str(len(body)))])
        await self._send(body, more=False)

    async def write(self, data: bytes) -> None:
        """Send bytes of a stream, and open it first if necessary."""
        if self._tick_task is not None:
            await self._tick_task
        if not self.started:
            data = self._open() + data
            self._schedule_tick(self._ping_s)  # the grace period ends with the first write
        if data:
            await self._send(data, more=True)

    async def finish(self, data: bytes) -> None:
        """Send the last bytes of a stream, and open it first if necessary."""
        if self._tick_task is not None:
            await self._tick_task
        if not self.started:
            data = self._open() + data
        await self._send(data, more=False)
        self._stop_timer()

    def close(self) -> None:
        """Stop the timers. The response is not completed."""
        self._stop_timer()
        if self._tick_task is not None:
            self._tick_task.cancel()

    def _open(self) -> bytes:
        self._start(200, [("content-type", self._content_type), *_STREAM_HEADERS])
        return self._opening

    def _start(self, status: int, fields: list[tuple[str, str]]) -> None:
        self.started = True
        self._last_write = self._loop.time()
        fields += self._headers.items()
        if self.id_header:
            fields.append((self.id_header, self.request_id))
        fields.append(("x-dragoman-overhead-ms", f"{self.recorder.overhead_ms:.2f}"))
        self.recorder.status = status
        fields.append(("server", "dragoman"))  # otherwise the HTTP server adds its own name
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        self._head = {"type": "http.response.start", "status": status, "headers": raw}

    async def _send(self, data: bytes, *, more: bool) -> None:
        self.recorder.on_response_bytes(data)
        self.ended = self.ended or not more
        self._writing = True
        self._last_write = self._loop.time()
        head, self._head = self._head, None
        if head is not None:
            await self._asgi_send(head)
        await self._asgi_send({"type": "http.response.body", "body": data, "more_body": more})
        self._writing = False

    def _tick(self) -> None:
        """Open the stream, ping it, or report a client that does not read."""
        idle_s = self._loop.time() - self._last_write
        if self._writing:
            if idle_s >= self._reader_idle_s and self.on_stall is not None:
                self.on_stall()
            else:
                self._schedule_tick(self._ping_s)
            return
        if self.started and idle_s < self._ping_s:
            self._schedule_tick(self._ping_s - idle_s)
            return
        self._schedule_tick(self._ping_s)
        if not self.pings_paused and self._tick_task is None:
            opening = not self.started
            self.started = True  # from here on an error must be reported inside the stream
            ping = b"" if opening else self._ping()  # encode it now: bytes encoded later must follow it
            self._tick_task = self._loop.create_task(self._write_tick(opening, ping))

    async def _write_tick(self, opening: bool, ping: bytes) -> None:
        await self._send(self._open() if opening else ping, more=True)
        self._tick_task = None

    def _schedule_tick(self, delay_s: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(min(delay_s, self._reader_idle_s), self._tick)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
