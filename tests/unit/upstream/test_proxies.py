"""The way out of a company: its proxy, its CA, its credentials; and what the proxy learns of ours (pain N5)."""

from __future__ import annotations

import asyncio
import base64
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from dragoman.errors import UpstreamError
from dragoman.upstream.client import UpstreamClient
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
    name = ("-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-addext", "basicConstraints=CA:FALSE")
    openssl("req", "-x509", *new_key, "-keyout", "key.pem", "-out", "cert.pem", *name, *signed)
    return folder


class Google:
    """Takes one request a connection, over TLS; remembers what it was sent."""

    def __init__(self, folder: Path | None) -> None:
        self.received: list[bytes] = []
        self._context: ssl.SSLContext | None = None
        if folder is not None:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(folder / "cert.pem", folder / "key.pem")

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
    """A real one: CONNECT opens a tunnel to `target`, whatever the name; `refusal` is said instead if there is one."""

    def __init__(self, target: int = 0, refusal: bytes = b"") -> None:
        self.asked: list[bytes] = []
        self.passed = bytearray()
        self._target = target
        self._refusal = refusal
        self._running: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
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
