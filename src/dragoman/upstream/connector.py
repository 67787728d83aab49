"""aiohttp's connection pool, with a stricter rule for reusing connections, and its variant for SOCKS proxies."""

from __future__ import annotations

import functools
import ssl
from typing import TYPE_CHECKING, Any

import aiohttp
import truststore
from yarl import URL

from dragoman.errors import ErrorKind, UpstreamError

if TYPE_CHECKING:
    from aiohttp.client_proto import ResponseHandler
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

_KEEP_ALIVE_S = 60.0
_HAPPY_EYEBALLS_DELAY_S = 0.25  # RFC 8305 section 5, "Connection Attempt Delay"


class SafeReuseConnector(aiohttp.TCPConnector):
    """Reuse a connection only if nothing is left of the exchange before.

    aiohttp 3.14 keeps bytes that a server sends on an idle connection and takes them for the answer to the next
    request, which may be another caller's. It also pools a connection while the end of a request is still unsent, and
    waits without limit for a server that does not read it.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._in_use: set[ResponseHandler] = set()

    async def connect(
        self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            if protocol is not None and not protocol.should_close:
                self._in_use.add(protocol)
                connection.add_callback(functools.partial(self._before_release, protocol))
                return connection
            connection.close()

    async def close(self, *, abort_ssl: bool = False) -> None:
        for protocol in self._in_use:
            _abort(protocol)
        await super().close(abort_ssl=abort_ssl)

    def _before_release(self, protocol: ResponseHandler) -> None:
        self._in_use.discard(protocol)
        if protocol.transport is not None and protocol.transport.get_write_buffer_size():
            _abort(protocol)


def _abort(protocol: ResponseHandler) -> None:
    if protocol.transport is not None:
        protocol.transport.abort()


def open_connector(socks_proxy: URL | None = None) -> aiohttp.TCPConnector:
    """Open a pool without a limit: the gateway limits its requests itself."""
    options: dict[str, Any] = {
        "limit": 0,
        "keepalive_timeout": _KEEP_ALIVE_S,
        "happy_eyeballs_delay": _HAPPY_EYEBALLS_DELAY_S,
        "ssl": tls_context(),
    }
    return (
        SafeReuseConnector(**options) if socks_proxy is None else _open_socks_connector(socks_proxy, options)
    )


def tls_context() -> ssl.SSLContext:
    """Trust the CAs of the operating system, a company's own included (known problem N5)."""
    context: ssl.SSLContext = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["http/1.1"])
    return context


def _open_socks_connector(proxy: URL, options: dict[str, Any]) -> aiohttp.TCPConnector:
    try:
        from aiohttp_socks import (
            ProxyConnectionError,
            ProxyConnector,
            ProxyError,
            ProxyTimeoutError,
            ProxyType,
        )
    except ImportError:
        why = "the proxy is a SOCKS proxy, which needs an extra: pip install 'dragoman[socks]'"
        raise UpstreamError(why, kind="permission") from None

    class SocksConnector(SafeReuseConnector, ProxyConnector):
        """SOCKS with our rule for reuse and our errors, which do not name the proxy: it may hold a password."""

        async def connect(
            self, req: ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
        ) -> Connection:
            try:
                return await super().connect(req, traces, timeout)
            except ProxyTimeoutError as error:
                raise TimeoutError from error
            except ProxyConnectionError as error:
                why = "the SOCKS proxy cannot be reached; check HTTPS_PROXY and ALL_PROXY"
                raise UpstreamError(why, kind="overloaded") from error
            except ProxyError as error:
                why = "the SOCKS proxy refuses the connection; check HTTPS_PROXY, ALL_PROXY and the password"
                kind: ErrorKind = "permission" if error.error_code is None else "overloaded"
                raise UpstreamError(why, kind=kind) from error

    return SocksConnector(
        host=proxy.host or "",
        port=proxy.port or 1080,
        proxy_type=ProxyType.SOCKS4 if proxy.scheme.startswith("socks4") else ProxyType.SOCKS5,
        username=proxy.user,
        password=proxy.password,
        rdns=proxy.scheme != "socks4",  # the proxy resolves names; SOCKS4 without the "a" cannot
        **options,
    )
