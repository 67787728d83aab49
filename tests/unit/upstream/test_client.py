"""The way to Google, over real sockets and real TLS on this machine."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from dragoman.errors import UpstreamError
from dragoman.upstream.client import IdleTimeout, UpstreamClient
from dragoman.upstream.credentials import DefaultCredentials
from tests.requirements import require_program


@pytest.fixture
async def client() -> AsyncIterator[UpstreamClient]:
    client = UpstreamClient(connect_timeout_s=5, idle_timeout_s=0.5, total_timeout_s=30)
    yield client
    await client.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    command = [
        require_program("openssl"),
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        *name,
        *files,
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder


@asynccontextmanager
async def _server(answer: bytes, folder: Path | None = None) -> AsyncIterator[int]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if not answer:
            await reader.read()  # until the client gives up
        writer.write(answer)
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    context = None
    if folder is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"


async def _get(client: UpstreamClient, url: str) -> bytes:
    async with client.post(url, {}, b"{}", stream=True) as answer:
        return await answer.read()


async def test_n5_a_company_ca_in_ssl_cert_file_is_trusted(
    certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
    client = UpstreamClient(connect_timeout_s=5, idle_timeout_s=5, total_timeout_s=30)
    async with _server(OK, certificate) as port:
        assert await _get(client, f"https://localhost:{port}/") == b"hi"
    await client.close()


async def test_n5_an_untrusted_certificate_is_called_that(client: UpstreamClient, certificate: Path) -> None:
    async with _server(OK, certificate) as port:
        with pytest.raises(
            UpstreamError, match=r"certificate of https://localhost.* is not trusted"
        ) as caught:
            await _get(client, f"https://localhost:{port}/?secret=1")
    assert "secret" not in str(caught.value)


async def test_nobody_there(client: UpstreamClient) -> None:
    async with _server(OK) as port:
        pass
    with pytest.raises(UpstreamError, match="cannot be reached") as caught:
        await _get(client, f"http://127.0.0.1:{port}/")
    assert caught.value.retryable


async def test_nobody_answers(client: UpstreamClient) -> None:
    async with _server(b"") as port:
        with pytest.raises(UpstreamError, match="did not answer in time") as caught:
            await _get(client, f"http://127.0.0.1:{port}/")
    assert caught.value.kind == "timeout"


async def test_an_answer_that_breaks_off(client: UpstreamClient) -> None:
    async with _server(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nhalf") as port:
        with pytest.raises(UpstreamError, match="broke") as caught:
            await _get(client, f"http://127.0.0.1:{port}/")
    assert caught.value.retryable


async def test_n5_the_proxy_of_the_environment_is_used(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with _server(OK) as port:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        assert await _get(client, "http://gemini.invalid/") == b"hi"


async def test_n5_a_proxy_is_never_asked_for_this_machine(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://proxy.invalid:1")
    monkeypatch.delenv("no_proxy", raising=False)
    async with _server(OK) as port:
        assert await _get(client, f"http://127.0.0.1:{port}/") == b"hi"


async def test_default_credentials_are_refreshed_once_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import google.auth

    class Fake:
        token, valid, refreshed = "t0", False, 0

        def refresh(self, _request: object) -> None:
            self.valid, self.refreshed = True, self.refreshed + 1
            self.token = f"t{self.refreshed}"

    fake = Fake()
    monkeypatch.setattr(google.auth, "default", lambda scopes: (fake, "p"))
    credentials = DefaultCredentials("proj")
    for _ in range(3):
        assert await credentials.headers() == {"authorization": "Bearer t1", "x-goog-user-project": "proj"}


class Content:
    """The body of a response from which nothing arrives any more."""

    total_raw_bytes = 7

    def __init__(self, *, complete: bool) -> None:
        self._complete = complete
        self.failed = asyncio.Event()

    def is_eof(self) -> bool:
        return self._complete

    def set_exception(self, error: BaseException) -> None:
        assert isinstance(error, TimeoutError)
        self.failed.set()


class Response:
    """The part of a response that an idle time-out looks at."""

    def __init__(self, *, complete: bool = False, reading: bool = True) -> None:
        self.reading = reading
        self.content = Content(complete=complete)


def idle_timeout(response: Response, *, idle_s: float = 0.02, left_s: float = 30) -> IdleTimeout:
    deadline = asyncio.get_running_loop().time() + left_s
    return IdleTimeout(response, idle_s, deadline)  # type: ignore[arg-type]


@pytest.mark.parametrize(("idle_s", "left_s"), [(0.02, 30), (30, 0.02)])
async def test_a_body_that_stops_arriving_fails(idle_s: float, left_s: float) -> None:
    response = Response()
    idle_timeout(response, idle_s=idle_s, left_s=left_s)
    async with asyncio.timeout(5):
        await response.content.failed.wait()


async def test_silence_counts_only_while_a_read_waits() -> None:
    response = Response(reading=False)
    timeout = idle_timeout(response)
    await asyncio.sleep(0.2)
    assert not response.content.failed.is_set()
    response.reading = True
    async with asyncio.timeout(5):
        await response.content.failed.wait()
    timeout.stop()


async def test_a_hurried_response_has_less_time() -> None:
    timeout = idle_timeout(Response(), idle_s=4000)
    timeout.shorten()
    assert timeout._timer is not None
    assert timeout._timer.when() - asyncio.get_running_loop().time() < 2
    timeout.stop()


async def test_a_complete_body_needs_no_timer() -> None:
    response = Response(complete=True)
    timeout = idle_timeout(response)
    timeout.shorten()
    timeout.stop()
    assert timeout._timer is None
    assert not response.content.failed.is_set()
