"""The little of HTTP we need on top of ASGI: a request's head, and an answer that may be a stream."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import parse_qsl, quote, unquote

from dragoman.dialects.base import HeaderList, Reply
from dragoman.errors import InvalidRequest
from dragoman.server.sigv4 import Head
from dragoman.server.trail import Trail

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]

JSON_HEADERS: HeaderList = (("content-type", "application/json"),)
_STREAM_HEADERS: HeaderList = (("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no"))

_KEY_PREFIX = "/key/"
_MAX_QUERY_FIELDS = 100
#: What decides who asks, for whom, and what a body is. A content-length beside a transfer-encoding never gets here.
_SINGLE = (
    *(b"host", b"origin", b"sec-fetch-site", b"content-type", b"content-length", b"transfer-encoding"),
    *(b"authorization", b"x-api-key", b"x-goog-api-key", b"x-amz-security-token", b"x-amz-target"),
)


class ClientLeft(Exception):
    """The client closed the connection before it got its answer."""


class BodyCut(ClientLeft):
    """It closed it before we had all of its body, or sent one that cannot be read on."""


def check_head(scope: Scope, headers: Mapping[str, str]) -> None:
    """What two readers could understand differently is refused: the other one may be a proxy in front of us.

    `headers` are those of the scope.
    """
    if _has_too_many_fields(scope.get("query_string", b"")):
        raise InvalidRequest(f"the query has more than {_MAX_QUERY_FIELDS} fields")
    raw = scope["headers"]
    if len(headers) != len(raw):  # one of them comes again
        names = [name for name, _ in raw]
        twice = next((name for name in _SINGLE if names.count(name) > 1), b"")
        if twice:
            raise InvalidRequest(f"the header {twice.decode()} may come only once")
    if "content-encoding" in headers:
        codings = [value.lower() for name, value in raw if name == b"content-encoding"]
        if any(coding not in (b"", b"identity") for coding in codings):
            raise InvalidRequest("compressed bodies are not taken here: leave out content-encoding")


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the request headers. ASGI gives lower-case names; the last value of a repeated header wins."""
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}


def query_of(scope: Scope) -> dict[str, str]:
    """Return the query fields, none if there are so many that `check_head` refuses the request."""
    raw: bytes = scope.get("query_string", b"")
    if not raw or _has_too_many_fields(raw):
        return {}
    return dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))


def _has_too_many_fields(raw: bytes) -> bool:
    return raw.count(b"&") >= _MAX_QUERY_FIELDS


def address_of(scope: Scope) -> tuple[str, dict[str, str]]:
    """Path and query. `/key/KEY/rest` is `/rest?key=KEY`: for clients that bring a login of their own to any address.

    A key with a slash in it is escaped twice; the server has undone one escaping before we see the path.
    """
    path, query = scope["path"], query_of(scope)
    if not path.startswith(_KEY_PREFIX):
        return path, query
    key, _, rest = path.removeprefix(_KEY_PREFIX).partition("/")
    return "/" + rest.lstrip("/"), query | {"key": unquote(key)}


def head_of(scope: Scope) -> Head:
    path = scope.get("raw_path") or quote(scope["path"]).encode()
    return Head(scope["method"], path, scope.get("query_string", b""), scope["headers"])


class Outlet:
    """One answer. A stream opens by itself after a short grace, and is kept alive by pings.

    The grace lets a quick refusal of Google's still be an honest HTTP status; after it the opening
    leaves whatever happens. `on_stall` is called when the client has taken nothing of a write for
    `reader_idle_s`: TCP keeps acknowledging the bytes of an HTTP/2 stream whose window is closed.
    """

    id_header = ""  # tells the request's id also under the name that the caller's libraries look for
    _opening = b""
    _content_type = ""
    _ping_s = 0.0
    _timer: asyncio.TimerHandle | None = None
    _ticking: asyncio.Task[None] | None = None
    _last_write = 0.0
    _writing = False
    holds = False  # bytes are made and wait for something: a ping must not overtake them
    started = False
    ended = False  # the last byte is on its way: whoever goes now has got everything

    on_stall: Callable[[], None] | None = None

    def __init__(self, send: Send, trail: Trail, reader_idle_s: float = math.inf) -> None:
        self.request_id = trail.id
        self.trail = trail
        self._asgi_send = send
        self._reader_idle_s = reader_idle_s
        self._head: MutableMapping[str, Any] | None = None  # sent together with the first bytes of the body
        self._loop = asyncio.get_running_loop()
        self._headers: dict[str, str] = {"x-dragoman-request-id": trail.id, "x-dragoman-notes": "0"}
        self._ping: Callable[[], bytes] = bytes

    def prepare_stream(
        self, content_type: str, opening: bytes, ping: Callable[[], bytes], *, grace_s: float, ping_s: float
    ) -> None:
        self._content_type, self._opening, self._ping, self._ping_s = content_type, opening, ping, ping_s
        self._tick_in(grace_s)

    def add_headers(self, headers: HeaderList) -> None:
        """The later value of the same header counts."""
        self._headers |= dict(headers)

    async def reply(self, reply: Reply) -> None:
        self._stop_timer()
        body = reply.body
        self._start(reply.status, [*reply.headers, ("content-length", str(len(body)))])
        await self._send(body, more=False)

    async def write(self, data: bytes) -> None:
        if self._ticking is not None:
            await self._ticking
        if not self.started:
            data = self._open() + data
            self._tick_in(self._ping_s)  # the grace is over, however long it could have been
        if data:
            await self._send(data, more=True)

    async def finish(self, data: bytes) -> None:
        if self._ticking is not None:
            await self._ticking
        if not self.started:
            data = self._open() + data
        await self._send(data, more=False)
        self._stop_timer()

    def close(self) -> None:
        self._stop_timer()
        if self._ticking is not None:
            self._ticking.cancel()

    def _open(self) -> bytes:
        self._start(200, [("content-type", self._content_type), *_STREAM_HEADERS])
        return self._opening

    def _start(self, status: int, fields: list[tuple[str, str]]) -> None:
        self.started = True
        self._last_write = self._loop.time()
        trail = self.trail
        fields += self._headers.items()
        if self.id_header:
            fields.append((self.id_header, self.request_id))
        fields.append(("x-dragoman-overhead-ms", f"{trail.overhead_ms:.2f}"))
        trail.status = status
        fields.append(("server", "dragoman"))  # or the HTTP server would name itself
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        self._head = {"type": "http.response.start", "status": status, "headers": raw}

    async def _send(self, data: bytes, *, more: bool) -> None:
        self.trail.gave(data)
        self.ended = self.ended or not more
        self._writing = True
        self._last_write = self._loop.time()
        head, self._head = self._head, None
        if head is not None:
            await self._asgi_send(head)
        await self._asgi_send({"type": "http.response.body", "body": data, "more_body": more})
        self._writing = False

    def _tick(self) -> None:
        """Open the stream, ping it, or give up a client that does not read."""
        idle_s = self._loop.time() - self._last_write
        if self._writing:
            if idle_s >= self._reader_idle_s and self.on_stall is not None:
                self.on_stall()
            else:
                self._tick_in(self._ping_s)
            return
        if self.started and idle_s < self._ping_s:
            self._tick_in(self._ping_s - idle_s)
            return
        self._tick_in(self._ping_s)
        if not self.holds and self._ticking is None:
            opening = not self.started
            self.started = True  # from this moment a refusal must be told inside the stream
            ping = b"" if opening else self._ping()  # now, before anything else is made that comes behind it
            self._ticking = self._loop.create_task(self._write_tick(opening, ping))

    async def _write_tick(self, opening: bool, ping: bytes) -> None:
        await self._send(self._open() if opening else ping, more=True)
        self._ticking = None

    def _tick_in(self, delay_s: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(min(delay_s, self._reader_idle_s), self._tick)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
