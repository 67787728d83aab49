"""The way through a proxy, or to an address that is unusual in another way: aiohttp knows them all."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping

import aiohttp
import msgspec
from yarl import URL

from dragoman.errors import UpstreamError
from dragoman.upstream.http1 import BrokenAnswer

_KEEP_ALIVE_S = 60
_UNREAD_BYTES = 64 * 1024  # of one answer: twice that, and Google is made to wait


class Unreachable(OSError):
    """There is no way to the host."""


class ProxiedHead(msgspec.Struct, frozen=True):
    """As `http1.Head`."""

    status: int
    headers: Mapping[str, str]


class ProxiedAnswer:
    """A running answer, as `Connection` gives it."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._content = response.content
        self._piece: bytes | None = None

    @property
    def waits(self) -> bool:
        return self._content._waiter is not None

    @property
    def total_bytes(self) -> int:
        return self._content.total_bytes

    @property
    def is_whole(self) -> bool:
        return False  # aiohttp knows only when it has been read

    @property
    def head(self) -> ProxiedHead:
        headers = {name.lower(): value for name, value in self._response.headers.items()}
        return ProxiedHead(self._response.status, headers)

    def ready(self) -> bytes | None:
        piece, self._piece = self._piece, None
        return piece

    async def news(self) -> None:
        try:
            self._piece = await self._content.readany()
        except aiohttp.ClientError as error:
            raise BrokenAnswer(type(error).__name__) from error

    def fail(self, error: Exception) -> None:
        self._content.set_exception(error)

    def leave(self) -> None:
        if self._content.at_eof():
            self._response.release()
        else:
            self._response.close()


class Proxied:
    """One per process; opened lazily inside the event loop that uses it."""

    def __init__(self, *, connect_timeout_s: float, tls: ssl.SSLContext) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ssl=tls),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout_s),
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            skip_auto_headers=("user-agent",),
            read_bufsize=_UNREAD_BYTES,
        )

    async def ask(
        self, url: str, headers: dict[str, str], body: bytes, *, proxy: str | None, within_s: float
    ) -> ProxiedAnswer:
        try:
            async with asyncio.timeout(within_s):
                response = await self._session.post(
                    URL(url, encoded=True),
                    data=body,
                    headers=headers,
                    proxy=proxy,
                    allow_redirects=False,  # the key must not follow
                )
        except aiohttp.ClientHttpProxyError as error:
            raise _refused(error.status) from error
        except (aiohttp.ClientConnectorCertificateError, aiohttp.ClientSSLError) as error:
            raise ssl.SSLError(str(error)) from error
        except aiohttp.ServerTimeoutError as error:
            raise TimeoutError from error
        except aiohttp.ClientConnectorError as error:
            raise Unreachable(error.strerror or str(error)) from error
        except aiohttp.ClientError as error:
            raise BrokenAnswer(type(error).__name__) from error
        return ProxiedAnswer(response)

    async def close(self) -> None:
        await self._session.close()


def _refused(status: int) -> UpstreamError:
    """The proxy's own answer is not Google's; its address may hold a password, and is not told."""
    why = f"the proxy does not let requests through: it answered HTTP {status}; check HTTPS_PROXY and its password"
    return UpstreamError(why, kind="permission" if status < 500 else "overloaded")
