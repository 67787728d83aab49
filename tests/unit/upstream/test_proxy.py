"""The way out of a company: its proxy, its CA, its credentials; and what the proxy learns of ours (known problem N5)."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop
from yarl import URL

from dragoman.errors import UpstreamError
from dragoman.upstream.client import UpstreamClient
from dragoman.upstream.proxy import find_proxy
from tests.requirements import require_program

NAME = "gemini.test"  # known to the proxy alone
KEY = "AIzaKeyThatNoProxyMayRead"
HEADERS = {"x-goog-api-key": KEY}
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A company's own CA, and a certificate it has signed for the name."""
    folder = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run([require_program("openssl"), *words], cwd=folder, check=True, capture_output=True)

    new_key = ("-newkey", "rsa:2048", "-nodes", "-days", "2")
    openssl("req", "-x509", *new_key, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Company CA")
    name = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME},IP:127.0.0.1")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE")
    openssl("req", "-x509", *new_key, "-keyout", "key.pem", "-out", "cert.pem", *name, *signed)
    return folder


def server_context(folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context


class Google:
    """Takes one request a connection, over TLS; remembers what it was sent."""

    def __init__(self, folder: Path | None) -> None:
        self.received: list[bytes] = []
        self._context = server_context(folder) if folder is not None else None

    @asynccontextmanager
    async def listening(self, host: str = "127.0.0.1") -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, host, 0, ssl=self._context)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            self.received.append(await reader.readuntil(b"\r\n\r\n"))
            writer.write(OK)
            await writer.drain()
            await reader.read()
        writer.close()


class Proxy:
    """A real one: CONNECT opens a tunnel to `target`, whatever the name; `refusal` is said instead if there is one.

    With `tls` the proxy itself is reached over TLS.
    """

    def __init__(self, target: int = 0, refusal: bytes = b"", tls: Path | None = None) -> None:
        self._context = server_context(tls) if tls is not None else None
        self.asked: list[bytes] = []
        self.passed = bytearray()
        self._target = target
        self._refusal = refusal
        self._running: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            self.asked.append(await reader.readuntil(b"\r\n\r\n"))
            if self._refusal:
                writer.write(self._refusal)
                await writer.drain()
            else:
                await self._tunnel(reader, writer)
        writer.close()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                self.passed += data
                writer.write(data)
                await writer.drain()
        writer.close()


@pytest.fixture
async def client() -> AsyncIterator[UpstreamClient]:
    client = UpstreamClient(connect_timeout_s=5, idle_timeout_s=5, total_timeout_s=30)
    yield client
    await client.close()


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def ask(client: UpstreamClient, url: str) -> bytes:
    async with client.post(url, HEADERS, b"{}", stream=True) as answer:
        return await answer.read()


async def test_n5_a_tunnel_through_the_proxy_to_a_certificate_of_the_companys(
    client: UpstreamClient, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    google = Google(certificates)
    async with google.listening() as port:
        proxy = Proxy(port)
        async with proxy.listening() as door:
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{door}")
            assert await ask(client, f"https://{NAME}/v1beta/models/m:generateContent") == b"hi"
            await client.close()
    (asked,) = proxy.asked
    assert asked.startswith(f"CONNECT {NAME}:443 HTTP/1.1\r\n".encode())
    (received,) = google.received
    assert KEY.encode() in received
    assert KEY.encode() not in asked + proxy.passed


async def test_n5_the_proxys_password_is_for_the_proxy_alone(
    client: UpstreamClient, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    google = Google(certificates)
    async with google.listening() as port:
        proxy = Proxy(port)
        async with proxy.listening() as door:
            monkeypatch.setenv("HTTPS_PROXY", f"http://me:p%40ss@127.0.0.1:{door}")
            assert await ask(client, f"https://{NAME}/") == b"hi"
            await client.close()
    shown = base64.b64encode(b"me:p@ss")
    assert b"basic " + shown.lower() in proxy.asked[0].lower()
    assert shown not in google.received[0]
    assert b"proxy-authorization" not in google.received[0].lower()


async def test_n5_behind_a_proxy_the_certificate_is_checked_all_the_same(
    client: UpstreamClient, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Google(certificates).listening() as port, Proxy(port).listening() as door:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{door}")
        with pytest.raises(UpstreamError, match=f"certificate of https://{NAME}/ is not trusted"):
            await ask(client, f"https://{NAME}/")


@pytest.mark.parametrize(
    ("status", "words"), [(407, "Proxy Authentication Required"), (403, "Forbidden"), (502, "Bad Gateway")]
)
async def test_n5_a_proxy_that_refuses_is_named_with_its_status_and_without_its_password(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch, status: int, words: str
) -> None:
    refusal = f"HTTP/1.1 {status} {words}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
    async with Proxy(refusal=refusal).listening() as door:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret-word@127.0.0.1:{door}")
        with pytest.raises(UpstreamError, match=rf"proxy.*{status}") as told:
            await ask(client, f"https://{NAME}/")
    assert "secret-word" not in str(told.value)
    assert told.value.kind == ("permission" if status in (403, 407) else "overloaded")


async def test_n5_a_proxy_that_is_not_there_is_said_without_its_password(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Proxy().listening() as door:
        pass
    monkeypatch.setenv("HTTPS_PROXY", f"http://me:secret-word@127.0.0.1:{door}")
    with pytest.raises(UpstreamError, match=r"cannot be reached.*proxy") as told:
        await ask(client, f"https://{NAME}/")
    assert "secret-word" not in str(told.value)


async def test_n5_no_proxy_is_a_list_of_places_to_go_to_directly(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Proxy(refusal=b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n")
    async with Google(None).listening("127.0.0.2") as port, proxy.listening() as door:
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{door}")
        monkeypatch.setenv("NO_PROXY", "example.com,127.0.0.2")
        assert await ask(client, f"http://127.0.0.2:{port}/") == b"hi"
        await client.close()
    assert proxy.asked == []


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_n5_a_proxy_over_tls_makes_tls_inside_tls(
    certificates: Path, monkeypatch: pytest.MonkeyPatch, new_loop: Any
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    google, proxy = Google(certificates), Proxy(tls=certificates)

    async def scenario() -> bytes:
        client = UpstreamClient(connect_timeout_s=5, idle_timeout_s=5, total_timeout_s=30)
        async with google.listening() as port, proxy.listening() as door:
            proxy._target = port
            monkeypatch.setenv("HTTPS_PROXY", f"https://me:word@127.0.0.1:{door}")
            answer = await ask(client, f"https://{NAME}/")
            await client.close()
            return answer

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(scenario()) == b"hi"
    assert b"proxy-authorization: basic" in proxy.asked[0].lower()
    assert KEY.encode() not in proxy.asked[0] + proxy.passed


async def test_n5_a_plain_request_through_a_proxy_names_its_whole_url(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy = Proxy(refusal=OK)
    async with proxy.listening() as door:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{door}")
        assert await ask(client, f"http://{NAME}/a?b=c") == b"hi"
    assert proxy.asked[0].startswith(f"POST http://{NAME}/a?b=c HTTP/1.1\r\n".encode())


@pytest.mark.parametrize("setting", ["ftp://proxy:1", "http:///x", "http://proxy:x", "gopher://a"])
async def test_n5_a_setting_that_is_no_proxy_is_said_without_its_value(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", setting)
    with pytest.raises(UpstreamError, match="check HTTPS_PROXY") as told:
        await ask(client, f"https://{NAME}/")
    assert setting not in str(told.value)


def test_n5_a_setting_without_a_scheme_is_an_http_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "proxy.example:3128")
    assert find_proxy(URL(f"https://{NAME}/")) == URL("http://proxy.example:3128")


class SocksProxy:
    """SOCKS5 with a password (RFC 1928, RFC 1929): leads every name to `target`, and notes the names."""

    def __init__(self, target: int) -> None:
        self._target = target
        self.names: list[bytes] = []
        self.credentials: list[bytes] = []

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readexactly((await reader.readexactly(2))[1])
            writer.write(b"\x05\x02")
            user = await reader.readexactly((await reader.readexactly(2))[1])
            password = await reader.readexactly((await reader.readexactly(1))[0])
            self.credentials += [user, password]
            if password != b"p@ss":
                writer.write(b"\x01\x01")
                await writer.drain()
                raise ConnectionResetError
            writer.write(b"\x01\x00")
            await reader.readexactly(4)
            self.names.append(await reader.readexactly((await reader.readexactly(1))[0]))
            await reader.readexactly(2)
            there, back = await asyncio.open_connection("127.0.0.1", self._target)
            writer.write(b"\x05\x00\x00\x01" + bytes(6))
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "ALL_PROXY"])
async def test_n5_a_socks_proxy_resolves_the_name_and_gets_its_password(
    client: UpstreamClient, certificates: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates / "ca.pem"))
    google = Google(certificates)
    async with google.listening() as port:
        proxy = SocksProxy(port)
        async with proxy.listening() as door:
            monkeypatch.setenv(variable, f"socks5h://me:p%40ss@127.0.0.1:{door}")
            assert await ask(client, f"https://{NAME}/") == b"hi"
            await client.close()
    assert proxy.names == [NAME.encode()]
    assert proxy.credentials == [b"me", b"p@ss"]
    assert KEY.encode() in google.received[0]


async def test_n5_behind_a_socks_proxy_the_certificate_is_checked_all_the_same(
    client: UpstreamClient, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Google(certificates).listening() as port, SocksProxy(port).listening() as door:
        monkeypatch.setenv("HTTPS_PROXY", f"socks5://me:p%40ss@127.0.0.1:{door}")
        with pytest.raises(UpstreamError, match=f"certificate of https://{NAME}/ is not trusted"):
            await ask(client, f"https://{NAME}/")


async def test_n5_a_socks_proxy_that_refuses_or_is_not_there_is_said_without_its_password(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with SocksProxy(0).listening() as door:
        monkeypatch.setenv("HTTPS_PROXY", f"socks5://me:secret-word@127.0.0.1:{door}")
        with pytest.raises(UpstreamError, match="SOCKS proxy refuses") as refused:
            await ask(client, f"https://{NAME}/")
    with pytest.raises(UpstreamError, match="SOCKS proxy cannot be reached") as absent:
        await ask(client, f"https://{NAME}/")
    assert "secret-word" not in f"{refused.value} {absent.value}"


async def test_n5_socks_without_its_extra_names_the_extra(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiohttp_socks", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(UpstreamError, match=r"dragoman\[socks\]"):
        await ask(client, f"https://{NAME}/")
