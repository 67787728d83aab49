"""The HTTP client for Google: aiohttp, with the machine's proxies and trust store, time-outs and precise errors."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping

import aiohttp
import msgspec
from aiohttp.payload import Payload
from multidict import CIMultiDict
from yarl import URL

from dragoman.errors import UpstreamError, UpstreamIncomplete
from dragoman.upstream.connector import open_connector
from dragoman.upstream.proxy import SOCKS_SCHEMES, find_proxy

_CHECKS_PER_PERIOD = 4  # of the idle time-out
_TRAILING_TIMEOUT_S = 5.0  # for the end of a response whose last event has arrived
_MAX_ROUTES = 256
_READ_BUFFER_BYTES = 64 * 1024  # aiohttp pauses the upstream when twice as much is unread
_CONTENT_TYPE = "application/json"
_HEADERS = CIMultiDict(
    {"content-type": _CONTENT_TYPE, "user-agent": "dragoman", "accept": "*/*", "accept-encoding": "identity"}
)
_UNSAFE_IN_HEADER = frozenset("\r\n\0")
_ERRORS = (aiohttp.ClientError, OSError, TimeoutError, ValueError)


class ProxyRoute(msgspec.Struct, frozen=True):
    """A parsed URL and the proxy that leads to it."""

    url: URL
    http_proxy: URL | None = None
    socks_proxy: URL | None = None


class UpstreamClient:
    """One per process; it opens its sessions lazily, inside the event loop that uses them."""

    def __init__(self, *, connect_timeout_s: float, idle_timeout_s: float, total_timeout_s: float) -> None:
        self._connect_timeout_s = connect_timeout_s
        self.idle_timeout_s = idle_timeout_s
        self.total_timeout_s = total_timeout_s
        self._sessions: dict[URL | None, aiohttp.ClientSession] = {}  # by SOCKS proxy
        self._routes: dict[str, ProxyRoute] = {}

    def post(
        self,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        *,
        stream: bool,
        within_s: float | None = None,
    ) -> UpstreamResponse:
        """Return a context manager that sends the request and gives the response.

        Leaving the block closes the connection at once unless the response arrived completely.
        `within_s` replaces the total time-out. A stream must begin within the idle time-out.
        """
        total_s = self.total_timeout_s if within_s is None else within_s
        head_s = min(self.idle_timeout_s, total_s) if stream else total_s
        return UpstreamResponse(self, url, headers, body, head_s, total_s)

    async def send(self, url: str, headers: Mapping[str, str], body: bytes) -> aiohttp.ClientResponse:
        """Send a POST and return as soon as the header section has arrived; redirects are not followed."""
        if any(not _UNSAFE_IN_HEADER.isdisjoint(value) for value in headers.values()):
            raise UpstreamError("these credentials cannot be sent in a header", kind="permission")
        route = self._routes.get(url) or self._find_route(url)
        session = self._sessions.get(route.socks_proxy) or self._open_session(route.socks_proxy)
        merged = _HEADERS.copy()
        merged.update(headers)  # whatever the case of their names
        return await session.post(
            route.url,
            data=_Body(body),
            headers=merged,
            proxy=route.http_proxy,
            allow_redirects=False,  # they would carry the key to another host
        )

    async def close(self) -> None:
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _find_route(self, url: str) -> ProxyRoute:
        """Parse and cache: the environment is not read again with every request."""
        parsed = URL(url, encoded=url.isascii())
        proxy = find_proxy(parsed)
        if proxy is not None and proxy.scheme in SOCKS_SCHEMES:
            route = ProxyRoute(parsed, socks_proxy=proxy)
        else:
            route = ProxyRoute(parsed, http_proxy=proxy)
        if len(self._routes) < _MAX_ROUTES:
            self._routes[url] = route
        return route

    def _open_session(self, socks_proxy: URL | None) -> aiohttp.ClientSession:
        session = self._sessions[socks_proxy] = aiohttp.ClientSession(
            connector=open_connector(socks_proxy),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._connect_timeout_s),
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BUFFER_BYTES,
        )
        return session


class UpstreamResponse:
    """A request and its response, as an async context manager.

    Inside the block `status` and `headers` are set and the body still arrives. Call `shorten_timeout` when nothing
    that matters can follow.
    """

    status = 0
    headers: Mapping[str, str]
    content: aiohttp.StreamReader
    reading = False
    _response: aiohttp.ClientResponse | None = None
    _timeout: IdleTimeout | None = None

    def __init__(
        self,
        client: UpstreamClient,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        head_s: float,
        total_s: float,
    ) -> None:
        self._client = client
        self._url = url
        self._request_headers = headers
        self._body = body
        self._head_s = head_s
        self._total_s = total_s

    async def read_some(self) -> bytes:
        """Return the next bytes of the body, and nothing at its end."""
        self.reading = True
        try:
            return await self.content.readany()
        finally:
            self.reading = False

    async def read(self) -> bytes:
        """Return the whole body."""
        pieces: list[bytes] = []
        while piece := await self.read_some():
            pieces.append(piece)
        return b"".join(pieces)

    def shorten_timeout(self) -> None:
        """Wait only a few seconds for the rest of the body."""
        if self._timeout is not None:
            self._timeout.shorten()

    async def __aenter__(self) -> UpstreamResponse:
        deadline = asyncio.get_running_loop().time() + self._total_s
        body, self._body = self._body, b""  # an open stream does not keep the request
        try:
            async with asyncio.timeout(self._head_s):
                response = await self._client.send(self._url, self._request_headers, body)
        except _ERRORS as error:
            raise _to_upstream_error(error, self._url) from error
        self._response = response
        self.status, self.headers, self.content = response.status, response.headers, response.content
        if not response.content.is_eof():
            self._timeout = IdleTimeout(self, self._client.idle_timeout_s, deadline)
        return self

    async def __aexit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        timeout, self._timeout = self._timeout, None
        if timeout is not None:
            timeout.stop()
        response, self._response = self._response, None
        # aiohttp has taken the connection back by itself if request and response are complete.
        if response is not None and response.connection is not None:
            if response.connection.transport is not None:
                response.connection.transport.abort()
            response.close()
        if isinstance(error, _ERRORS):
            raise _to_upstream_error(error, self._url) from error


class IdleTimeout:
    """Fail a body that stops arriving for `idle_s`, or that is not complete at `deadline`.

    The byte count is checked a few times per period, which is cheaper than a timer per chunk. Silence counts only while
    a read is waiting: a slow client of ours does not make Google silent.
    """

    _timer: asyncio.TimerHandle | None = None
    _seen_bytes = -1
    _silent_checks = 0

    def __init__(self, response: UpstreamResponse, idle_s: float, deadline: float) -> None:
        self._response = response
        self._period_s = idle_s / _CHECKS_PER_PERIOD
        self._deadline = deadline
        self._loop = asyncio.get_running_loop()
        self._check()

    def shorten(self) -> None:
        self._period_s = min(self._period_s, _TRAILING_TIMEOUT_S / _CHECKS_PER_PERIOD)
        self.stop()
        self._check()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        content = self._response.content
        if content.is_eof():
            return
        silent = self._response.reading and content.total_raw_bytes == self._seen_bytes
        self._silent_checks = self._silent_checks + 1 if silent else 0
        self._seen_bytes = content.total_raw_bytes
        left_s = self._deadline - self._loop.time()
        if self._silent_checks >= _CHECKS_PER_PERIOD or left_s <= 0:
            content.set_exception(TimeoutError())
        else:
            self._timer = self._loop.call_later(min(self._period_s, left_s), self._check)


class _Body(Payload):
    """Bytes that are written at once; aiohttp's own BytesPayload warns about more than 1 MiB."""

    _value: bytes
    _autoclose = True

    def __init__(self, value: bytes) -> None:
        super().__init__(value, content_type=_CONTENT_TYPE)
        self._size = len(value)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        return self._value.decode(encoding, errors)

    async def write(self, writer: aiohttp.abc.AbstractStreamWriter) -> None:
        await writer.write(self._value)


def _to_upstream_error(error: Exception, url: str) -> UpstreamError:
    """Say what went wrong, naming the URL without its query and its credentials."""
    # aiohttp keeps the error in its stream. With the traceback it would keep every frame of the request alive, too,
    # until the garbage collector runs.
    error.__traceback__ = None
    where = _without_secrets(url)
    if isinstance(error, aiohttp.ClientHttpProxyError):
        answered = f"it answered HTTP {error.status}"
        why = f"the proxy does not let requests through: {answered}; check HTTPS_PROXY and its password"
        return UpstreamError(why, kind="permission" if error.status < 500 else "overloaded")
    if isinstance(error, ssl.SSLError | aiohttp.ClientSSLError) or isinstance(error.__cause__, ssl.SSLError):
        why = f"the certificate of {where} is not trusted; add the company's CA to the system or set SSL_CERT_FILE"
        return UpstreamError(why, kind="permission")
    if isinstance(error, TimeoutError):
        return UpstreamError(f"{where} did not answer in time", kind="timeout")
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.NonHttpUrlClientError | ValueError):
        reason = error.strerror if isinstance(error, OSError) else "this is not a valid URL"
        why = f"{where} cannot be reached ({reason}); check the network, proxy and base URL"
        return UpstreamError(why, kind="overloaded")
    return UpstreamIncomplete(f"the connection to {where} broke: {type(error).__name__}", kind="overloaded")


def _without_secrets(url: str) -> str:
    address, _, _ = url.partition("?")
    scheme, found, rest = address.partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{found}{host.rpartition('@')[2]}{slash}{path}"
