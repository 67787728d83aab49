"""Files fetched for callers: over real connections, from a public server and past an internal one, both on this machine.

127.0.0.2 stands for all public addresses here, 127.0.0.1 for everything that must never be reached.
"""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.upstream.remote_files import FetchError, FileFetcher
from tests.requirements import require_program

PUBLIC, INTERNAL = "127.0.0.2", "127.0.0.1"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 40
PDF = b"%PDF-1.7\n" + b"x" * 40
Act = Callable[[asyncio.StreamWriter, str], Awaitable[None]]


class Server:
    """Does what a test says, and notes every head that arrives."""

    def __init__(self, address: str, tls: ssl.SSLContext | None = None) -> None:
        self._address = address
        self._tls = tls
        self.heads: list[str] = []
        self.port = 0
        self.act: Act = serves(PNG)

    @asynccontextmanager
    async def running(self, port: int = 0) -> AsyncIterator[Server]:
        server = await asyncio.start_server(self._serve, self._address, port, ssl=self._tls)
        self.port = server.sockets[0].getsockname()[1]
        yield self
        server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.heads.append(head)
            await self.act(writer, head.split()[1])
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def serves(
    body: bytes, *headers: str, kind: str = "image/png", status: int = 200, length: int | None = None
) -> Act:
    async def act(writer: asyncio.StreamWriter, _path: str) -> None:
        told = len(body) if length is None else length
        lines = [f"HTTP/1.1 {status} X", f"content-type: {kind}", f"content-length: {told}", *headers, "", ""]
        writer.write("\r\n".join(lines).encode() + body)
        await writer.drain()

    return act


def moves(*targets: str) -> Act:
    """Redirects to one after the other, then serves the picture."""
    left = list(targets)

    async def act(writer: asyncio.StreamWriter, path: str) -> None:
        await (serves(b"", f"location: {left.pop(0)}", status=302) if left else serves(PNG))(writer, path)

    return act


class Names:
    """A resolver with a table: what a name leads to, the last word again and again."""

    def __init__(self, **table: Any) -> None:
        self._table = {name.replace("_", "."): value for name, value in table.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        known = self._table.get(host)
        if known is None:
            raise OSError("Name or service not known")
        if isinstance(known[0], list):
            return list(known.pop(0) if len(known) > 1 else known[0])
        return list(known)


@pytest.fixture
async def public() -> AsyncIterator[Server]:
    async with Server(PUBLIC).running() as server:
        yield server


@pytest.fixture
async def internal(public: Server) -> AsyncIterator[Server]:
    """On the same port, so that only the address tells them apart."""
    server = Server(INTERNAL)
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(server.running(public.port))
        except OSError:  # another test has it: then only the numbers of the port differ too
            await stack.enter_async_context(server.running())
        yield server
    assert server.heads == []


def fetcher(names: Names | None = None, **more: Any) -> FileFetcher:
    table = names or Names(pictures_example=[PUBLIC])
    settings = {"max_bytes": 1_000, "timeout_s": 5.0, **more}
    return FileFetcher(resolve=table, allowed=lambda address: address == PUBLIC, **settings)


async def refusal(url: str, **more: Any) -> str:
    with pytest.raises(FetchError) as error:
        await fetcher(**more).fetch(url)
    return error.value.message


@pytest.mark.parametrize(
    ("body", "kind", "mime"),
    [
        (PNG, "image/png", "image/png"),
        (PNG, "image/jpeg; charset=x", "image/png"),
        (PNG, "application/octet-stream", "image/png"),
        (b"\xff\xd8\xff\xe0" + b"x" * 20, "image/jpeg", "image/jpeg"),
        (b"GIF89a" + b"x" * 20, "image/gif", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp", "image/webp"),
        (b"\0\0\0\x18ftypheic" + b"x" * 20, "image/heic", "image/heic"),
        (PDF, "application/pdf", "application/pdf"),
    ],
)
async def test_j4_a_file_is_what_its_first_bytes_say(
    public: Server, body: bytes, kind: str, mime: str
) -> None:
    public.act = serves(body, kind=kind)
    file = await fetcher().fetch(f"http://pictures.example:{public.port}/a.png?b=c")
    assert (file.mime, file.data) == (mime, body)


async def test_q9_nothing_of_ours_goes_along(
    public: Server, internal: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://{INTERNAL}:{internal.port}")
    monkeypatch.setenv("NETRC", "/nonexistent")
    public.act = moves(f"http://other.example:{public.port}/b")
    names = Names(pictures_example=[PUBLIC], other_example=[PUBLIC])
    await fetcher(names).fetch(f"http://pictures.example:{public.port}/a")
    for head, host in zip(public.heads, ("pictures", "other"), strict=True):
        lines = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if line)
        assert lines["host"] == f"{host}.example:{public.port}"
        assert lines.keys() <= {"host", "accept", "accept-encoding", "user-agent", "connection"}


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "2130706433", "0177.0.0.1",
        "0x7f.0.0.1", "0x7f000001", "127.1", "127.0.1", "017700000001", "127.0.0.1.", "１２７.0.0.1", "①②⑦.0.0.1",
        "169.254.169.254", "metadata.google.internal", "10.0.0.1", "192.168.1.1", "[fe80::1%25lo]", "[::]", "0",
        "inside.example", "inside.example.", "INSIDE.example", "pictures.example@inside.example",
        "pictures.example%2eevil@127.0.0.1", "127.0.0.1%23@pictures.example", "inside。example",
    ],
)  # fmt: skip
async def test_q9_no_spelling_of_an_inner_address_is_connected_to(internal: Server, host: str) -> None:
    async def resolve(name: str, port: int) -> list[str]:
        if name.rstrip(".").lower() == "inside.example":
            return [INTERNAL]
        found = await asyncio.get_running_loop().getaddrinfo(name, port)  # numbers and names of this machine
        return [str(entry[4][0]) for entry in found]

    asking = FileFetcher(resolve=resolve, allowed=lambda address: address == PUBLIC, max_bytes=9, timeout_s=5)
    with pytest.raises(FetchError) as refused:
        await asking.fetch(f"http://{host}:{internal.port}/latest/meta-data/")
    assert str(internal.port) not in refused.value.message


async def test_q9_a_name_with_one_inner_address_has_none(public: Server, internal: Server) -> None:
    for addresses in ([PUBLIC, INTERNAL], [INTERNAL, PUBLIC], []):
        names = Names(pictures_example=[addresses])
        assert "not a public one" in await refusal(f"http://pictures.example:{public.port}/", names=names)
    assert public.heads == []


async def test_q9_what_was_checked_is_what_is_connected_to(public: Server, internal: Server) -> None:
    """DNS rebinding: a name that leads elsewhere when it is asked again is not asked again."""
    names = Names(pictures_example=[[PUBLIC], [INTERNAL]])
    assert (await fetcher(names).fetch(f"http://pictures.example:{public.port}/")).data == PNG
    assert names.asked == ["pictures.example"]
    assert "not a public one" in await refusal(f"http://pictures.example:{public.port}/", names=names)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("http://127.0.0.1:{port}/", "not a public one"),
        ("//127.0.0.1:{port}/", "not a public one"),
        ("http://inside.example:{port}/", "not a public one"),
        ("http://[::ffff:127.0.0.1]:{port}/", "not a public one"),
        ("file:///etc/passwd", "only http and https"),
        ("ftp://pictures.example/", "only http and https"),
        ("gopher://pictures.example:{port}/_x", "only http and https"),
        ("http://user:password@pictures.example:{port}/", "password"),
        ("", "cannot be used"),
        ("http://pictures.example:{port}/" + "x" * 5000, "cannot be used"),
    ],
)
async def test_q9_a_redirect_is_checked_like_the_first_address(
    public: Server, internal: Server, target: str, words: str
) -> None:
    names = Names(pictures_example=[PUBLIC], inside_example=[INTERNAL])
    public.act = moves(target.format(port=public.port))
    assert words in await refusal(f"http://pictures.example:{public.port}/", names=names)
    assert len(public.heads) == 1


async def test_q9_a_name_may_turn_inwards_between_redirects(public: Server, internal: Server) -> None:
    names = Names(pictures_example=[[PUBLIC], [INTERNAL]])
    public.act = moves("/again")
    assert "not a public one" in await refusal(f"http://pictures.example:{public.port}/", names=names)


async def test_three_redirects_are_followed_and_no_more(public: Server) -> None:
    public.act = moves("/1", "/2", "/3")
    assert (await fetcher().fetch(f"http://pictures.example:{public.port}/0")).data == PNG
    public.act = moves("/1", "/2", "/3", "/4")
    assert "too often" in await refusal(f"http://pictures.example:{public.port}/0")


@pytest.mark.parametrize(
    ("act", "words"),
    [
        pytest.param(
            serves(b"<html>admin</html>", kind="text/html"), "neither an image nor a PDF", id="a page"
        ),
        pytest.param(
            serves(b"<html>admin</html>"), "neither an image nor a PDF", id="a page that says image"
        ),
        pytest.param(
            serves(b'{"AccessKeyId": "x"}', kind="application/json"), "neither an image", id="credentials"
        ),
        pytest.param(serves(b"<svg>", kind="image/svg+xml"), "neither an image nor a PDF", id="svg"),
        pytest.param(serves(b""), "neither an image nor a PDF", id="nothing"),
        pytest.param(serves(PNG, "content-encoding: gzip"), "compressed", id="a bomb"),
        pytest.param(serves(PNG, status=404), "HTTP 404", id="not there"),
        pytest.param(serves(PNG * 100), "larger than 1000 bytes", id="too large"),
        pytest.param(serves(PNG, length=10**12), "could not be fetched", id="cut"),
        pytest.param(serves(PNG, "x: " + "y" * 100_000), "could not be fetched", id="a header without end"),
    ],
)
async def test_q9_only_whole_files_of_known_kinds_are_taken(public: Server, act: Act, words: str) -> None:
    public.act = act
    assert words in await refusal(f"http://pictures.example:{public.port}/")


async def test_q9_a_file_without_end_is_left_at_the_limit(public: Server) -> None:
    sent = 0

    async def pour(writer: asyncio.StreamWriter, _path: str) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 X\r\ncontent-type: image/png\r\n\r\n" + PNG)
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()
            sent += 65536

    public.act = pour
    assert "larger than" in await refusal(f"http://pictures.example:{public.port}/")
    assert sent < 50_000_000


async def test_q9_silence_ends_at_the_time_out_and_sounds_like_any_other_failure(public: Server) -> None:
    """Whoever asks learns nothing of what is open, closed or slow."""

    async def wait(writer: asyncio.StreamWriter, _path: str) -> None:
        await asyncio.sleep(3600)

    public.act = wait
    slow = await refusal(f"http://pictures.example:{public.port}/", timeout_s=0.2)
    closed = await refusal("http://pictures.example:1/")
    unknown = await refusal("http://nowhere.example/")
    assert slow == closed == unknown == "it could not be fetched"


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    name = ["-subj", "/CN=x", "-addext", "subjectAltName=DNS:pictures.example"]
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


async def test_q9_a_pinned_address_keeps_its_name_for_the_certificate(certificate: Path) -> None:
    seen: list[str] = []
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    server_side.sni_callback = lambda _socket, name, _context: seen.append(name)
    trusting = ssl.create_default_context(cafile=str(certificate / "cert.pem"))
    async with Server(PUBLIC, server_side).running() as server:
        names = Names(pictures_example=[PUBLIC], other_example=[PUBLIC])
        asking = fetcher(names, tls=trusting)
        assert (await asking.fetch(f"https://pictures.example:{server.port}/")).data == PNG
        assert seen == ["pictures.example"]
        for wrong in (f"https://other.example:{server.port}/", f"https://{PUBLIC}:{server.port}/"):
            with pytest.raises(FetchError, match="could not be fetched"):
                await asking.fetch(wrong)
        server.act = moves(f"http://pictures.example:{server.port}/")
        with pytest.raises(FetchError, match="only http and https"):  # down from https
            await asking.fetch(f"https://pictures.example:{server.port}/")
