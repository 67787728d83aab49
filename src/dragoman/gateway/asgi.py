"""HTTP on top of ASGI: read and check the head of a request, and write a response that may be a stream."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from dragoman.dialects.base import HeaderList, Reply
from dragoman.errors import InvalidRequest
from dragoman.gateway.auth.sigv4 import RawHead
from dragoman.gateway.telemetry.request_recorder import RequestRecorder

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON_HEADERS: HeaderList = (("content-type", "application/json"),)
_STREAM_HEADERS: HeaderList = (("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no"))

_KEY_PREFIX = "/key/"
_MAX_QUERY_FIELDS = 100
#: Headers that may appear only once, because they decide the caller, the target or the framing of the body.
#: The HTTP server never passes on a content-length beside a transfer-encoding (RFC 9112, section 6.3).
_SINGLE_VALUED = (
    *(b"host", b"origin", b"sec-fetch-site", b"content-type", b"content-length", b"transfer-encoding"),
    *(b"authorization", b"x-api-key", b"x-goog-api-key", b"x-amz-security-token", b"x-amz-target"),
)


class ClientDisconnect(Exception):
    """The client closed the connection before the response was complete."""


class IncompleteBody(ClientDisconnect):
    """The client disconnected before its request body was complete, or sent a malformed body."""


def check_head(scope: Scope, headers: Mapping[str, str]) -> None:
    """Raise InvalidRequest for a request head that a proxy in front of us may interpret differently.

    `headers` is the result of `request_headers(scope)`. Repeated critical headers, compressed bodies and queries
    with too many fields are rejected.
    """
    if _has_too_many_fields(scope.get("query_string", b"")):
        raise InvalidRequest(f"the query has more than {_MAX_QUERY_FIELDS} fields")
    raw = scope["headers"]
    if len(headers) != len(raw):  # some header is repeated
        names = [name for name, _ in raw]
        twice = next((name for name in _SINGLE_VALUED if names.count(name) > 1), b"")
        if twice:
            raise InvalidRequest(f"the header {twice.decode()} may come only once")
    if "content-encoding" in headers:
        codings = [value.lower() for name, value in raw if name == b"content-encoding"]
        if any(coding not in (b"", b"identity") for coding in codings):
            raise InvalidRequest("compressed bodies are not taken here: leave out content-encoding")


def request_headers(scope: Scope) -> dict[str, str]:
    """Return the request headers. ASGI gives lower-case names; the last value of a repeated header wins."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def query_fields(scope: Scope) -> dict[str, str]:
    """Return the query fields, or none if there are so many that `check_head` rejects the request."""
    raw: bytes = scope.get("query_string", b"")
    if not raw or _has_too_many_fields(raw):
        return {}
    return dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))


def _has_too_many_fields(raw: bytes) -> bool:
    return raw.count(b"&") >= _MAX_QUERY_FIELDS


def path_and_query(scope: Scope) -> tuple[str, dict[str, str]]:
    """Return path and query. `/key/KEY/rest` is read as `/rest?key=KEY`.

    That form serves clients whose base URL is configurable but whose credentials are not. A key that contains
    a slash must be percent-encoded twice, because the HTTP server decodes the path once.
    """
    path, query = scope["path"], query_fields(scope)
    if not path.startswith(_KEY_PREFIX):
        return path, query
    key, _, rest = path.removeprefix(_KEY_PREFIX).partition("/")
    return "/" + rest.lstrip("/"), query | {"key": unquote(key)}


def raw_head(scope: Scope) -> RawHead:
    """Return the request head in the raw form that a SigV4 signature covers."""
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    return RawHead(scope["method"], path, scope.get("query_string", b""), scope["headers"])


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

    def __init__(self, send: Send, trail: RequestRecorder, reader_idle_s: float = math.inf) -> None:
        self.request_id = trail.id
        self.recorder = trail
        self._asgi_send = send
        self._reader_idle_s = reader_idle_s
        self._head: MutableMapping[str, Any] | None = None  # sent together with the first bytes of the body
        self._loop = asyncio.get_running_loop()
        self._headers: dict[str, str] = {"x-dragoman-request-id": trail.id, "x-dragoman-notes": "0"}
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
        trail = self.recorder
        fields += self._headers.items()
        if self.id_header:
            fields.append((self.id_header, self.request_id))
        fields.append(("x-dragoman-overhead-ms", f"{trail.overhead_ms:.2f}"))
        trail.status = status
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
