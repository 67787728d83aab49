"""HTTP to Google: pooled connections, the machine's proxies and trust store, time-outs, precise errors."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import truststore

from dragoman.errors import UpstreamError

_KEEP_ALIVE_S = 60


class UpstreamAnswer:
    """A running answer: status and headers are known, the body still comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    async def read(self) -> bytes:
        """All of the body."""
        return await self._response.read()

    async def read_some(self) -> bytes:
        """What has come by now, at least one byte; nothing at the end."""
        return await self._response.content.readany()


class UpstreamClient:
    """One per process; opened lazily inside the event loop that uses it."""

    def __init__(self, *, connect_timeout_s: float, idle_timeout_s: float, total_timeout_s: float) -> None:
        self._connect_timeout_s = connect_timeout_s
        self._idle_timeout_s = idle_timeout_s
        self._total_timeout_s = total_timeout_s
        self._session: aiohttp.ClientSession | None = None

    @asynccontextmanager
    async def post(
        self, url: str, headers: dict[str, str], body: bytes, *, stream: bool
    ) -> AsyncIterator[UpstreamAnswer]:
        """Leaving the block closes the connection at once unless the answer was read to its end."""
        timeout = aiohttp.ClientTimeout(
            total=self._total_timeout_s,
            sock_connect=self._connect_timeout_s,
            sock_read=self._idle_timeout_s if stream else None,
        )
        session = self._session or self._open()
        try:
            async with session.post(url, data=body, headers=headers, timeout=timeout) as response:
                try:
                    yield UpstreamAnswer(response)
                finally:
                    if not response.content.at_eof():
                        response.close()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _explain(error, url) from error

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _open(self) -> aiohttp.ClientSession:
        context = truststore.SSLContext(
            ssl.PROTOCOL_TLS_CLIENT
        )  # the OS's CAs, a company's included (pain N5)
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ssl=context)
        self._session = aiohttp.ClientSession(
            connector=connector,
            trust_env=True,
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
        return UpstreamError(why, kind="internal")
    if isinstance(error, aiohttp.ServerTimeoutError | TimeoutError):
        return UpstreamError(f"{place} did not answer in time", kind="timeout")
    if isinstance(error, aiohttp.ClientConnectorError):
        return UpstreamError(f"{place} cannot be reached: {error.strerror or error}", kind="overloaded")
    return UpstreamError(f"the connection to {place} broke: {type(error).__name__}", kind="overloaded")
