"""HTTP to Google: pooled connections, the machine's proxies and trust store, time-outs, precise errors."""

from __future__ import annotations

import asyncio
import os
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol
from urllib.parse import urlsplit

import msgspec

from dragoman.config import LOOPBACK_NAMES
from dragoman.errors import UpstreamCut, UpstreamError
from dragoman.upstream.connection import Connection, Connections, Place
from dragoman.upstream.http1 import BrokenAnswer, Head

if TYPE_CHECKING:
    from dragoman.upstream.proxied import Proxied, ProxiedAnswer, ProxiedHead

_LOOKS = 4  # per idle time-out
_TAIL_S = 5.0  # for the end of an answer that was said to its end
_KNOWN_WAYS = 256
_PORTS = {"http": 80, "https": 443}
_HEAD = b"POST %b HTTP/1.1\r\nhost: %b\r\ncontent-type: application/json\r\naccept: */*\r\nuser-agent: dragoman\r\n"
_OWN_HEADERS = {"content-type": "application/json", "user-agent": "dragoman"}


class _Coming(Protocol):
    """Bytes of an answer on their way."""

    @property
    def waits(self) -> bool: ...

    @property
    def total_bytes(self) -> int: ...

    @property
    def is_whole(self) -> bool:
        """Whether the last byte is known to be here: nothing can go wrong with them any more."""
        ...

    def fail(self, error: Exception) -> None: ...


class IdleWatch:
    """Breaks an answer that has stopped coming; looks now and then instead of arming a timer per chunk.

    Only while somebody waits for bytes: a slow reader of ours is not Google's silence.
    """

    _timer: asyncio.TimerHandle | None = None
    _seen = -1
    _quiet_looks = 0

    def __init__(self, coming: _Coming, idle_s: float, until: float, loop: asyncio.AbstractEventLoop) -> None:
        self._coming = coming
        self._pause_s = idle_s / _LOOKS
        self._until = until
        self._loop = loop
        self._look()

    def _look(self) -> None:
        if self._coming.is_whole:  # as are short answers, from the beginning
            return
        quiet = self._coming.waits and self._coming.total_bytes == self._seen
        self._quiet_looks = self._quiet_looks + 1 if quiet else 0
        self._seen = self._coming.total_bytes
        left_s = self._until - self._loop.time()
        if self._quiet_looks >= _LOOKS or left_s <= 0:
            self._coming.fail(TimeoutError())
        else:
            self._timer = self._loop.call_later(min(self._pause_s, left_s), self._look)

    def hurry(self) -> None:
        self._pause_s = min(self._pause_s, _TAIL_S / _LOOKS)
        self.stop()
        self._look()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


class _Way(msgspec.Struct, frozen=True):
    """How an address is reached: directly with a head that is written once, or, without a place, as aiohttp does it."""

    place: Place | None
    head: bytes = b""
    proxy: str | None = None


class UpstreamClient:
    """One per process; opened lazily inside the event loop that uses it."""

    def __init__(self, *, connect_timeout_s: float, idle_timeout_s: float, total_timeout_s: float) -> None:
        self._connect_timeout_s = connect_timeout_s
        self.idle_timeout_s = idle_timeout_s
        self.total_timeout_s = total_timeout_s
        self.connections = Connections(connect_timeout_s, _trust)
        self._proxied: Proxied | None = None
        self._ways: dict[str, _Way] = {}

    def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        stream: bool,
        within_s: float | None = None,
    ) -> UpstreamAnswer:
        """Leaving the block closes the connection at once unless the answer was read to its end.

        `within_s` is for the whole of it, where less is left than an answer may take.
        """
        total_s = self.total_timeout_s if within_s is None else within_s
        silence_s = min(self.idle_timeout_s, total_s) if stream else total_s
        return UpstreamAnswer(self, url, headers, body, silence_s, total_s)

    async def close(self) -> None:
        self.connections.close()
        if self._proxied is not None:
            await self._proxied.close()
            self._proxied = None

    def way(self, url: str) -> _Way:
        """Found once: it would otherwise be read from the environment with every request."""
        way = self._ways.get(url)
        if way is None:
            way = _find_way(url)
            if len(self._ways) < _KNOWN_WAYS:
                self._ways[url] = way
        return way

    async def ask_proxied(
        self, url: str, headers: Mapping[str, str], body: bytes, proxy: str | None, within_s: float
    ) -> ProxiedAnswer:
        if self._proxied is None:
            from dragoman.upstream.proxied import Proxied  # aiohttp is 15 MB, and few need it

            self._proxied = Proxied(connect_timeout_s=self._connect_timeout_s, tls=_trust())
        whole = {**_OWN_HEADERS, **headers}
        return await self._proxied.ask(url, whole, body, proxy=proxy, within_s=within_s)


class UpstreamAnswer:
    """A request and its answer, from entering the block to leaving it.

    In between `status` and `headers` are known, and the body still comes: `ready` gives what has come by now, nothing
    at the end, and None where there is `news` to wait for. `hurry` it when nothing that matters can follow.
    """

    status = 0
    _place: Place | None = None
    _coming: Connection | ProxiedAnswer | None = None
    _watch: IdleWatch | None = None
    _head: Head | ProxiedHead
    ready: Callable[[], bytes | None]
    news: Callable[[], Awaitable[None]]

    def __init__(
        self,
        client: UpstreamClient,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        silence_s: float,
        total_s: float,
    ) -> None:
        self._client = client
        self._url = url
        self._sent = headers
        self._body = body
        self._silence_s = silence_s
        self._total_s = total_s

    @property
    def headers(self) -> Mapping[str, str]:
        return self._head.headers

    async def read_some(self) -> bytes:
        """What comes next of the body; nothing at the end."""
        while (piece := self.ready()) is None:
            await self.news()
        return piece

    async def read(self) -> bytes:
        """All of the body."""
        pieces: list[bytes] = []
        while piece := await self.read_some():
            pieces.append(piece)
        return b"".join(pieces)

    def hurry(self) -> None:
        if self._watch is not None:
            self._watch.hurry()

    async def __aenter__(self) -> UpstreamAnswer:
        client, loop = self._client, asyncio.get_running_loop()
        until = loop.time() + self._total_s
        # Let go of as soon as it is written: an open stream keeps nothing of it.
        body, self._body = self._body, b""
        silence: asyncio.TimerHandle | None = None
        try:
            way = client.way(self._url)
            if way.place is None:
                asked = client.ask_proxied(self._url, self._sent, body, way.proxy, self._silence_s)
                coming: Connection | ProxiedAnswer = await asked
                self._coming = coming
            else:
                request = _request_head(way.head, self._sent, len(body)), body
                self._place = way.place
                coming = client.connections.find(way.place) or await client.connections.connect(way.place)
                self._coming = coming
                coming.ask(request)
                del request
                silence = loop.call_later(self._silence_s, coming.fail, TimeoutError())
            del body
            while (head := coming.head) is None:
                await coming.news()
        except (BrokenAnswer, OSError, TimeoutError) as error:
            self._leave()
            raise _explain(error, self._url) from error
        except BaseException:
            self._leave()
            raise
        finally:
            if silence is not None:
                silence.cancel()
        if not coming.is_whole:  # as are short answers, from the beginning
            self._watch = IdleWatch(coming, client.idle_timeout_s, until, loop)
        self.status, self._head = head.status, head
        self.ready, self.news = coming.ready, coming.news
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if self._watch is not None:
            self._watch.stop()
        self._leave()
        if isinstance(error, BrokenAnswer | OSError | TimeoutError):
            raise _explain(error, self._url) from error

    def _leave(self) -> None:
        coming, self._coming = self._coming, None
        if isinstance(coming, Connection):
            assert self._place is not None  # noqa: S101
            self._client.connections.give_back(self._place, coming)
        elif coming is not None:
            coming.leave()


def _find_way(url: str) -> _Way:
    address = urlsplit(url)
    host = address.hostname or ""
    proxy = None if host in LOOPBACK_NAMES else _find_proxy(host, address.scheme)
    if proxy or not url.isascii() or address.username is not None or address.scheme not in _PORTS:
        return _Way(None, proxy=proxy)
    place = Place(host, address.port or _PORTS[address.scheme], address.scheme == "https")
    target = f"{address.path or '/'}?{address.query}" if address.query else address.path or "/"
    return _Way(place, _HEAD % (target.encode(), address.netloc.encode()))


def _find_proxy(host: str, scheme: str) -> str | None:
    """The machine's own settings; where only the environment can say, and does not, nothing is loaded for it."""
    if sys.platform == "linux" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # with half of the standard library behind it

    return None if proxy_bypass(host) else getproxies().get(scheme)


def _request_head(head: bytes, headers: Mapping[str, str], length: int) -> bytes:
    lines = ""
    for name, value in headers.items():  # there are one or two
        lines += f"{name}: {value}\r\n"
    if lines.count("\r") != len(headers) or lines.count("\n") != len(headers) or "\0" in lines:
        raise UpstreamError("these credentials cannot be sent in a header", kind="permission")
    return b"%b%bcontent-length: %d\r\n\r\n" % (head, lines.encode(), length)


def _trust() -> ssl.SSLContext:
    """The operating system's CAs, a company's included (pain N5)."""
    import truststore

    context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _explain(error: Exception, url: str) -> UpstreamError:
    """What went wrong on the way, in words that name the place but never a secret."""
    place = url.partition("?")[0]
    if isinstance(error, ssl.SSLError):
        why = f"the certificate of {place} is not trusted; add the company's CA to the system or set SSL_CERT_FILE"
        return UpstreamError(why, kind="permission")
    if isinstance(error, TimeoutError):
        return UpstreamError(f"{place} did not answer in time", kind="timeout")
    if isinstance(error, OSError) and not isinstance(error, ConnectionResetError | BrokenPipeError):
        why = f"{place} cannot be reached ({error.strerror or error}); check the network, proxy and base URL"
        return UpstreamError(why, kind="overloaded")
    return UpstreamCut(f"the connection to {place} broke: {type(error).__name__}", kind="overloaded")
