"""Fetch files from URLs in requests, if the settings allow it, from public addresses only (known problems J4, Q9).

A host name is resolved once and the connection uses exactly the addresses that were checked. Each redirect is
checked like the first URL. The request carries no credentials and no cookies, and uses no proxy.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.helpers import is_ip_address
from yarl import URL

from dragoman.errors import DragomanError
from dragoman.upstream.connector import tls_context


class FetchError(DragomanError):
    """The file cannot be fetched; the message reveals nothing about networks that only the gateway can reach."""

    kind = "invalid_request"


class FetchedFile(msgspec.Struct, frozen=True):
    """A fetched file, with the MIME type that its first bytes show."""

    mime: str
    data: bytes


#: `ipaddress` counts these as global (the IANA registries do), but no public server uses them.
_EXCLUDED_V4 = tuple(
    map(
        IPv4Network,
        (
            "168.63.129.16/32",  # Azure's WireServer, reachable from every virtual machine there
            "192.0.0.0/24",  # IETF protocol assignments; Oracle Cloud's metadata service is at 192.0.0.192
            "192.88.99.0/24",  # 6to4 relay anycast (RFC 3068)
        ),
    )
)
#: The block that IANA allocates for global unicast, and the ranges in it that are not ordinary hosts: IETF
#: protocol assignments (with Teredo), documentation (two ranges) and 6to4 tunnels.
_GLOBAL_UNICAST_V6 = IPv6Network("2000::/3")
_EXCLUDED_V6 = tuple(map(IPv6Network, ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))


def is_public(text: str) -> bool:
    """Return whether a resolved IP address is public; text that is not an IP address is not.

    Loopback, private networks and the metadata services of cloud providers are excluded, so that a URL in a
    request cannot reach them (server-side request forgery).
    """
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if isinstance(address, IPv4Address):
        named = any(address in network for network in _EXCLUDED_V4)
        return address.is_global and not address.is_multicast and not named
    return address in _GLOBAL_UNICAST_V6 and not any(address in network for network in _EXCLUDED_V6)


Resolve = Callable[[str, int], Awaitable[list[str]]]

_MAX_REDIRECTS = 3
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_MAX_URL_CHARACTERS = 4096
_HEADERS = {"accept": "image/*, application/pdf", "accept-encoding": "identity", "user-agent": "dragoman"}
#: Content types that are accepted; the actual type is taken from the first bytes.
_ACCEPTED_CONTENT_TYPES = ("image/", "application/pdf", "application/octet-stream", "binary/octet-stream")
#: Offset, magic bytes and MIME type of the accepted files.
_MAGIC: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF87a", "image/gif"),
    (0, b"GIF89a", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (4, b"ftypheic", "image/heic"),
    (4, b"ftypheix", "image/heic"),
    (4, b"ftypmif1", "image/heif"),
    (0, b"%PDF-", "application/pdf"),
)


class FileFetcher:
    """Download images and PDFs.

    `resolve` and `allowed` replace the DNS lookup and the address check in tests. `fetch` raises
    `FetchError` when the file is refused, is too large or cannot be read in time.
    """

    def __init__(
        self,
        *,
        max_bytes: int,
        timeout_s: float,
        resolve: Resolve | None = None,
        allowed: Callable[[str], bool] = is_public,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._max_bytes = max_bytes
        self._timeout_s = timeout_s
        self._resolver = _CheckedResolver(resolve or _getaddrinfo, allowed)
        self._tls = tls

    async def fetch(self, url: str) -> FetchedFile:
        try:
            async with asyncio.timeout(self._timeout_s), self._session() as session:
                return await self._follow(session, url)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            refusal = _find_fetch_error(error)
            raise refusal or FetchError("it could not be fetched") from error

    async def _follow(self, session: aiohttp.ClientSession, url: str) -> FetchedFile:
        address = self._check(url, None)
        for _ in range(_MAX_REDIRECTS + 1):
            async with session.get(address, allow_redirects=False) as response:
                if response.status not in _REDIRECTS:
                    return await self._read(response)
                target = response.headers.get("location", "")
            address = self._check(target, address)
        raise FetchError("it is moved on too often")

    def _check(self, url: str, before: URL | None) -> URL:
        if not url or len(url) > _MAX_URL_CHARACTERS:
            raise FetchError("its address cannot be used")
        address = before.join(URL(url)) if before is not None else URL(url)
        downgraded = before is not None and before.scheme == "https" and address.scheme != "https"
        if address.scheme not in ("http", "https") or downgraded or not address.host:
            raise FetchError("only http and https addresses are fetched")
        if address.user is not None or address.password is not None:
            raise FetchError("an address with a password in it is not fetched")
        if is_ip_address(address.host):  # aiohttp connects to an IP address without asking the resolver
            self._resolver.check([address.host])
        return address

    async def _read(self, response: aiohttp.ClientResponse) -> FetchedFile:
        if response.status != 200:
            raise FetchError(f"its server answered HTTP {response.status}")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise FetchError("its server sent it compressed")
        if not response.content_type.lower().startswith(_ACCEPTED_CONTENT_TYPES):
            raise FetchError("it is neither an image nor a PDF")
        data = bytearray()
        async for piece in response.content.iter_any():
            data += piece
            if len(data) > self._max_bytes:
                raise FetchError(f"it is larger than {self._max_bytes} bytes")
        mime = next((kind for at, mark, kind in _MAGIC if data.startswith(mark, at)), "")
        if not mime:
            raise FetchError("it is neither an image nor a PDF")
        return FetchedFile(mime, bytes(data))

    def _session(self) -> aiohttp.ClientSession:
        """Return a new session for every file, so that no state is shared between callers."""
        connector = aiohttp.TCPConnector(
            resolver=self._resolver,
            use_dns_cache=False,
            ssl=self._tls or tls_context(),
            force_close=True,
        )
        return aiohttp.ClientSession(
            connector=connector,
            headers=_HEADERS,
            auto_decompress=False,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )


class _CheckedResolver(AbstractResolver):
    """Resolve host names; raise `FetchError` unless every address of the host is public."""

    def __init__(self, resolve: Resolve, allowed: Callable[[str], bool]) -> None:
        self._resolve = resolve
        self._allowed = allowed

    def check(self, addresses: list[str]) -> None:
        if not addresses or not all(map(self._allowed, addresses)):
            raise FetchError("its address is not a public one")

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        del family  # every address is checked, whichever family is used
        addresses = await self._resolve(host, port)
        self.check(addresses)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        return


async def _getaddrinfo(host: str, port: int) -> list[str]:
    found: list[Any] = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _find_fetch_error(error: BaseException | None) -> FetchError | None:
    """Return the `FetchError` that aiohttp wrapped in one of its own errors, if there is one."""
    while error is not None:
        if isinstance(error, FetchError):
            return error
        error = error.__cause__ or error.__context__
    return None
