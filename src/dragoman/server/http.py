"""The little of HTTP we need on top of ASGI: a request's head, and an answer that may be a stream."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote, unquote

from dragoman.dialects.base import HeaderList, Reply
from dragoman.errors import InvalidRequest
from dragoman.http1.heads import may_remember
from dragoman.server.sigv4 import Head
from dragoman.server.trail import Trail
from dragoman.server.wire.heads import TextFields
from dragoman.server.wire.turn import TURN, Turn

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON_HEADERS: HeaderList = (("content-type", "application/json"),)
_STREAM_HEADERS: HeaderList = (("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no"))

_KEY_PREFIX = "/key/"
_MOST_FIELDS = 100  # of a query
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
    query = scope.get("query_string")
    if query and len(query) >= _MOST_FIELDS and _is_endless(query):
        raise InvalidRequest(f"the query has more than {_MOST_FIELDS} fields")
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
    """Names are in lower case, as ASGI says; of a repeated header the last one counts."""
    return {_NAMES.get(name) or _learn(name): value.decode("latin-1") for name, value in scope["headers"]}


_NAMES: dict[bytes, str] = {}


def _learn(name: bytes) -> str:
    text = name.decode("latin-1")
    if may_remember(name, _NAMES):
        _NAMES[name] = text
    return text


def turn_of(scope: Scope) -> Turn | None:
    """What only our own server has."""
    found: Turn | None = scope.get("extensions", {}).get(TURN)
    return found


def query_of(scope: Scope) -> dict[str, str]:
    raw = scope.get("query_string")
    if not raw:
        return {}
    usual = _USUAL_QUERIES.get(raw)
    return usual.copy() if usual is not None else _read_query(raw)


def _is_endless(raw: bytes) -> bool:
    return raw.count(b"&") >= _MOST_FIELDS


def _read_query(raw: bytes) -> dict[str, str]:
    """Nothing, where there is so much that the request will be refused for it."""
    if _is_endless(raw):
        return {}
    return dict(parse_qsl(raw.decode("latin-1"), keep_blank_values=True))


#: What Anthropic's and Google's clients say with every request; nothing that opens a door is remembered.
_USUAL_QUERIES = {raw: _read_query(raw) for raw in (b"beta=true", b"alt=sse")}


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


class Line(Protocol):
    """Where an answer leaves: its head, then its body piece by piece. Our own server's turns are such lines."""

    def start(self, status: int, fields: TextFields) -> None: ...

    async def give(self, body: bytes, *, more: bool) -> None: ...


class AsgiLine:
    """The same for any server of ASGI; the head leaves with the first piece of the body."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: MutableMapping[str, Any] | None = None

    def start(self, status: int, fields: TextFields) -> None:
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]
        self._start = {"type": "http.response.start", "status": status, "headers": raw}

    async def give(self, body: bytes, *, more: bool) -> None:
        start, self._start = self._start, None
        if start is not None:
            await self._send(start)
        await self._send({"type": "http.response.body", "body": body, "more_body": more})


class Outlet:
    """One answer. A stream opens by itself after a short grace, and is kept alive by pings.

    The grace lets a quick refusal of Google's still be an honest HTTP status; after it the opening
    leaves whatever happens.
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

    def __init__(self, line: Line, trail: Trail) -> None:
        self.request_id = trail.id
        self.trail = trail
        self._line = line
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
            self._writing = True
            self.trail.gave(data)
            await self._line.give(data, more=True)
            self._writing = False
            self._last_write = self._loop.time()

    async def finish(self, data: bytes) -> None:
        self._stop_timer()
        if self._ticking is not None:
            await self._ticking
        if not self.started:
            data = self._open() + data
        await self._send(data, more=False)

    def close(self) -> None:
        self._stop_timer()
        if self._ticking is not None:
            self._ticking.cancel()

    def _open(self) -> bytes:
        self._start(200, [("content-type", self._content_type), *_STREAM_HEADERS])
        return self._opening

    def _start(self, status: int, fields: TextFields) -> None:
        self.started = True
        self._last_write = self._loop.time()
        trail = self.trail
        fields += self._headers.items()
        if self.id_header:
            fields.append((self.id_header, self.request_id))
        fields.append(("x-dragoman-overhead-ms", f"{trail.overhead_ms:.2f}"))
        trail.status = status
        self._line.start(status, fields)

    async def _send(self, data: bytes, *, more: bool) -> None:
        self.trail.gave(data)
        self.ended = self.ended or not more
        await self._line.give(data, more=more)

    def _tick(self) -> None:
        """Open the stream, or ping it; a reader who is still taking the last bytes needs neither."""
        idle = self._loop.time() - self._last_write
        if self.started and idle < self._ping_s:
            self._tick_in(self._ping_s - idle)
            return
        self._tick_in(self._ping_s)
        if not self._writing and not self.holds and self._ticking is None:
            opening = not self.started
            self.started = True  # from this moment a refusal must be told inside the stream
            ping = b"" if opening else self._ping()  # now, before anything else is made that comes behind it
            self._ticking = self._loop.create_task(self._write_tick(opening, ping))

    async def _write_tick(self, opening: bool, ping: bytes) -> None:
        data = self._open() if opening else ping
        self._last_write = self._loop.time()
        await self._send(data, more=True)
        self._ticking = None

    def _tick_in(self, delay_s: float) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(delay_s, self._tick)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
