"""HTTP to Google: pooled connections, the machine's proxies and trust store, time-outs, precise errors."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.request import getproxies, proxy_bypass

import aiohttp
import truststore
from yarl import URL

from dragoman.config import LOOPBACK_NAMES
from dragoman.errors import UpstreamCut, UpstreamError

_KEEP_ALIVE_S = 60
_LOOKS = 4  # per idle time-out
_KNOWN_WAYS = 256


class UpstreamAnswer:
    """A running answer: status and headers are known, the body still comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        self.read = response.read  # all of the body
        self.read_some = response.content.readany  # what has come by now; nothing at the end


class IdleWatch:
    """Breaks an answer that has stopped coming; looks now and then instead of arming a timer per chunk.

    Only while somebody waits for bytes: a slow reader of ours is not Google's silence.
    """

    def __init__(self, content: aiohttp.StreamReader, idle_s: float) -> None:
        self._content = content
        self._pause_s = idle_s / _LOOKS
        self._seen = -1
        self._quiet_looks = 0
        self._look()

    def _look(self) -> None:
        quiet = self._content._waiter is not None and self._content.total_bytes == self._seen
        self._quiet_looks = self._quiet_looks + 1 if quiet else 0
        self._seen = self._content.total_bytes
        if self._quiet_looks >= _LOOKS:
            self._content.set_exception(TimeoutError())
        else:
            self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._look)

    def stop(self) -> None:
        self._timer.cancel()


class UpstreamClient:
    """One per process; opened lazily inside the event loop that uses it."""

    def __init__(self, *, connect_timeout_s: float, idle_timeout_s: float, total_timeout_s: float) -> None:
        self._timeout = aiohttp.ClientTimeout(total=total_timeout_s, sock_connect=connect_timeout_s)
        self._idle_timeout_s = idle_timeout_s
        self._total_timeout_s = total_timeout_s
        self._session: aiohttp.ClientSession | None = None
        self._ways: dict[str, tuple[URL, str | None]] = {}

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, *, stream: bool
    ) -> AsyncIterator[UpstreamAnswer]:
        """Leaving the block closes the connection at once unless the answer was read to its end."""
        session = self._session or self._open()
        address, proxy = self._ways.get(url) or self._find_way(url)
        silence_s = self._idle_timeout_s if stream else self._total_timeout_s
        try:
            async with asyncio.timeout(silence_s):
                response = await session.post(
                    address,
                    data=body,
                    headers=headers,
                    timeout=self._timeout,
                    proxy=proxy,
                    allow_redirects=False,  # the key must not follow
                )
            watch = IdleWatch(response.content, silence_s)
            try:
                yield UpstreamAnswer(response)
            finally:
                watch.stop()
                if response.content.at_eof():
                    response.release()
                else:
                    response.close()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _explain(error, url) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _find_way(self, url: str) -> tuple[URL, str | None]:
        """The address parsed and its proxy, once: the session would read environment and netrc per request."""
        address = URL(url, encoded=True)
        host = address.host or ""
        direct = host in LOOPBACK_NAMES or proxy_bypass(host)
        way = address, None if direct else getproxies().get(address.scheme)
        if len(self._ways) < _KNOWN_WAYS:
            self._ways[url] = way
        return way

    def _open(self) -> aiohttp.ClientSession:
        # The operating system's CAs, a company's included (pain N5).
        context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ssl=context)
        self._session = aiohttp.ClientSession(
            connector=connector,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("user-agent",),
            headers={"content-type": "application/json", "user-agent": "dragoman"},
            read_bufsize=256 * 1024,
        )
        return self._session


def _explain(error: Exception, url: str) -> UpstreamError:
    """What went wrong on the way, in words that name the place but never a secret."""
    place = url.partition("?")[0]
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientSSLError):
        why = f"the certificate of {place} is not trusted; add the company's CA to the system or set SSL_CERT_FILE"
        return UpstreamError(why, kind="permission")
    if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
        return UpstreamError(f"{place} did not answer in time", kind="timeout")
    if isinstance(error, aiohttp.ClientConnectorError):
        why = f"{place} cannot be reached ({error.strerror or error}); check the network, proxy and base URL"
        return UpstreamError(why, kind="overloaded")
    return UpstreamCut(f"the connection to {place} broke: {type(error).__name__}", kind="overloaded")
