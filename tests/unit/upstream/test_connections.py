"""Connections to an upstream: used again, given up, held back, told apart; over real sockets on this machine."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from typing import Any

import pytest

from dragoman.errors import UpstreamError, UpstreamIncomplete
from dragoman.upstream.client import UpstreamClient

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi"
STREAM = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


class Upstream:
    """Answers every request on every connection with `answer`; remembers what it was asked and over what."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._writers: list[asyncio.StreamWriter] = []
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []
        self.closed = 0
        self.url = ""

    @property
    def opened(self) -> int:
        return len(self._writers)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                self.bodies.append(await reader.readexactly(length))
                await self._answer(reader, writer)
        self.closed += 1
        writer.close()

    def hang_up(self) -> None:
        for writer in self._writers:
            writer.close()


@asynccontextmanager
async def upstream(answer: Answer) -> AsyncIterator[Upstream]:
    served = Upstream(answer)
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    served.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1/x?alt=sse"
    try:
        yield served
    finally:
        server.close()
        served.hang_up()


@pytest.fixture
async def client() -> AsyncIterator[UpstreamClient]:
    client = UpstreamClient(connect_timeout_s=5, idle_timeout_s=0.4, total_timeout_s=30)
    yield client
    await client.close()
    await asyncio.sleep(0)  # transports close in the next round of the loop


@pytest.fixture
async def patient() -> AsyncIterator[UpstreamClient]:
    """For tests where a busy machine must not cause a time-out."""
    client = UpstreamClient(connect_timeout_s=30, idle_timeout_s=30, total_timeout_s=30)
    yield client
    await client.close()
    await asyncio.sleep(0)


def always(raw: bytes) -> Answer:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return answer


async def _post(client: UpstreamClient, url: str, body: bytes) -> bytes:
    async with client.post(url, {}, body, stream=True) as answer:
        return await answer.read()


async def _ask(client: UpstreamClient, url: str, headers: dict[str, str] | None = None) -> bytes:
    async with client.post(url, headers or {}, b'{"a":1}', stream=True) as answer:
        return await answer.read()


def pooled(client: UpstreamClient) -> list[Any]:
    """aiohttp's protocols of the connections that wait for their next request."""
    connectors = [session.connector for session in client._sessions.values()]
    return [
        protocol
        for one in connectors
        if one is not None
        for conns in one._conns.values()
        for protocol, _ in conns
    ]


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_connection_is_used_again(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        for _ in range(3):
            assert await _ask(client, served.url, {"x-goog-api-key": "k"}) == b"hi"
    assert served.opened == 1
    assert served.bodies == [b'{"a":1}'] * 3
    head = served.heads[0].lower()
    assert head.startswith(b"post /v1/x?alt=sse http/1.1\r\nhost: 127.0.0.1:")
    for line in (b"x-goog-api-key: k", b"content-type: application/json", b"accept-encoding: identity"):
        assert head.count(b"\r\n" + line + b"\r\n") == 1


async def test_a_header_of_the_caller_replaces_ours(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        await _ask(client, served.url, {"Content-Type": "text/plain", "User-Agent": "agent"})
    head = served.heads[0].lower()
    assert b"\r\ncontent-type: text/plain\r\n" in head
    assert head.count(b"content-type") == head.count(b"user-agent") == 1


async def test_requests_at_the_same_time_have_their_own(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        assert await asyncio.gather(*(_ask(client, served.url) for _ in range(3))) == [b"hi"] * 3
    assert served.opened == 3


async def test_an_answer_that_was_not_read_to_its_end_closes_its_connection(client: UpstreamClient) -> None:
    async with upstream(always(STREAM + b"2\r\nhi\r\n")) as served:
        async with client.post(served.url, {}, b"{}", stream=True) as answer:
            assert await answer.read_some() == b"hi"
        await _until(lambda: served.closed == 1)
        assert served.opened == 1


async def test_a_response_before_the_end_of_the_request_closes_the_connection(
    patient: UpstreamClient,
) -> None:
    """The server would read the rest of the request as the beginning of the next one."""
    served = Stuck(OK)
    async with served.listening() as url:
        async with patient.post(url, {}, bytes(30_000_000), stream=True) as answer:
            assert await answer.read() == b"hi"
        await _until(served.closed.is_set)
        assert not pooled(patient)
    assert served.received < 30_000_000


async def test_cancelling_an_upload_drops_what_is_not_sent(patient: UpstreamClient) -> None:
    served = Stuck(b"")
    async with served.listening() as url:
        asking = asyncio.create_task(_post(patient, url, bytes(30_000_000)))
        await served.started.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        served.go_on.set()
        await _until(served.closed.is_set)
    assert served.received < 30_000_000


async def test_closing_does_not_wait_for_a_server_that_does_not_read(patient: UpstreamClient) -> None:
    served = Stuck(b"")
    async with served.listening() as url:
        asking = asyncio.create_task(_post(patient, url, bytes(30_000_000)))
        await served.started.wait()
        async with asyncio.timeout(20):
            await patient.close()
        served.go_on.set()
        with pytest.raises(UpstreamError):
            await asking


class Stuck:
    """Answers after the header section of a request, and reads the body only when it is told to."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self.received = 0
        self.started, self.go_on, self.closed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        finally:
            self.go_on.set()
            server.close()
            if self.started.is_set():
                await self.closed.wait()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        self.started.set()
        if self._answer:
            writer.write(self._answer)
        else:
            await self.go_on.wait()
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                self.received += len(data)
                if self._answer:
                    await asyncio.sleep(0.01)
        writer.close()
        self.closed.set()


async def test_who_leaves_closes_the_connection_at_once(client: UpstreamClient) -> None:
    async with upstream(always(STREAM)) as served:
        asking = asyncio.create_task(_ask(client, served.url))
        await _until(lambda: len(served.bodies) == 1)
        asking.cancel()
        await _until(lambda: served.closed == 1)
        with pytest.raises(asyncio.CancelledError):
            await asking


async def test_a_connection_that_ended_meanwhile_is_not_used(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        await _ask(client, served.url)
        served.hang_up()
        await _until(lambda: not any(protocol.is_connected() for protocol in pooled(client)))
        assert await _ask(client, served.url) == b"hi"
        assert served.opened == 2


@pytest.mark.parametrize("stale", [OK.replace(b"hi", b"no"), OK[:20], b"nonsense\r\n\r\n"])
async def test_a_response_that_nobody_asked_for_answers_no_request(
    client: UpstreamClient, stale: bytes
) -> None:
    """The next request on the connection may be another caller's."""
    async with upstream(always(OK)) as served:
        await _ask(client, served.url)
        served._writers[0].write(stale)
        await asyncio.sleep(0.1)
        assert await _ask(client, served.url) == b"hi"


async def test_a_connection_with_a_response_that_nobody_asked_for_is_closed(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        await _ask(client, served.url)
        (protocol,) = pooled(client)
        served._writers[0].write(OK)
        await _until(lambda: protocol.should_close)
        await _ask(client, served.url)
        assert served.opened == 2
        assert not protocol.is_connected()


@pytest.mark.parametrize("line", [b"connection: close\r\n", b"Connection: Close\r\n"])
async def test_the_other_side_may_hang_up_after_an_answer(client: UpstreamClient, line: bytes) -> None:
    async with upstream(always(OK.replace(b"content-length", line + b"content-length"))) as served:
        assert await _ask(client, served.url) == b"hi"
        assert await _ask(client, served.url) == b"hi"
    assert served.opened == 2


async def test_silence_in_the_middle_is_a_time_out(client: UpstreamClient) -> None:
    async with upstream(always(STREAM + b"2\r\nhi\r\n")) as served:
        with pytest.raises(UpstreamError, match="did not answer in time"):
            await _ask(client, served.url)


async def test_a_reader_of_ours_who_is_slow_is_not_silence(client: UpstreamClient) -> None:
    said = always(STREAM + b"2\r\nhi\r\n0\r\n\r\n")
    async with upstream(said) as served, client.post(served.url, {}, b"{}", stream=True) as answer:
        await asyncio.sleep(1)
        assert await answer.read() == b"hi"


async def test_an_upstream_that_is_faster_than_its_reader_is_made_to_wait(client: UpstreamClient) -> None:
    sent = 0
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"

    async def pour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        small = writer.get_extra_info("socket")
        small.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        writer.write(STREAM)
        for _ in range(1000):
            writer.write(piece)
            await writer.drain()
            sent += 1
        writer.write(b"0\r\n\r\n")

    async with upstream(pour) as served, client.post(served.url, {}, b"{}", stream=True) as answer:
        before = -1
        while sent != before:  # until it comes to a stop by itself
            before = sent
            await asyncio.sleep(0.2)
        assert sent < 500
        assert len(await answer.read()) == 1000 * 0x10000


PACKED = gzip.compress(b"hello world " * 100)
GZIP = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: %d\r\n\r\n%b"
CONFLICT = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nhi"


async def test_a_body_that_is_compressed_unasked_is_decompressed(client: UpstreamClient) -> None:
    async with upstream(always(GZIP % (len(PACKED), PACKED))) as served:
        assert await _ask(client, served.url) == b"hello world " * 100


async def test_a_gzip_bomb_is_decompressed_no_faster_than_it_is_read(patient: UpstreamClient) -> None:
    bomb = gzip.compress(bytes(200_000_000), compresslevel=1)
    async with upstream(always(GZIP % (len(bomb), bomb))) as served:
        async with patient.post(served.url, {}, b"{}", stream=True) as answer:
            await asyncio.sleep(0.3)
            for _ in range(20):
                assert 0 < len(await answer.read_some()) < 1_000_000
        await _until(lambda: served.closed == 1)


GARBAGE = {
    "nonsense": b"nonsense\r\n\r\n",
    "another protocol": b"SSH-2.0-OpenSSH\r\n\r\n",
    "more than its length": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nhi",
    "two lengths": CONFLICT,
    "a negative length": CONFLICT.replace(b"content-length: 1\r\n", b"").replace(b"2", b"-2"),
    "a chunk without a length": STREAM + b"zz\r\n",
    "a chunk that is longer": STREAM + b"2\r\nhello\r\n",
    "a header without a name": b"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
    "a large header": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 100_000 + b"\r\ncontent-length: 0\r\n\r\n",
    "many headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 10_000 + b"content-length: 0\r\n\r\n",
    "no compression": GZIP % (5, b"hello"),
    "an unknown compression": GZIP.replace(b"gzip", b"br") % (5, b"hello"),
}


@pytest.mark.parametrize("raw", GARBAGE.values(), ids=GARBAGE)
async def test_an_invalid_response_is_a_broken_connection(client: UpstreamClient, raw: bytes) -> None:
    async with upstream(always(raw)) as served:
        with pytest.raises(
            UpstreamIncomplete, match=r"the connection to http://127\.0\.0\.1.* broke"
        ) as caught:
            await _ask(client, served.url, {"x-goog-api-key": "secret"})
        assert "secret" not in str(caught.value)
        assert "alt=sse" not in str(caught.value)
        await _until(lambda: served.closed == 1)


async def test_a_redirect_is_not_followed(client: UpstreamClient) -> None:
    moved = b"HTTP/1.1 307 Moved\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n"
    async with upstream(always(moved)) as served:
        async with client.post(served.url, {"x-goog-api-key": "k"}, b"{}", stream=True) as answer:
            assert answer.status == 307
        assert len(served.heads) == 1


async def test_cookies_are_not_kept(client: UpstreamClient) -> None:
    async with upstream(
        always(OK.replace(b"content-length", b"set-cookie: a=b\r\ncontent-length"))
    ) as served:
        for _ in range(2):
            await _ask(client, served.url)
    assert b"cookie" not in served.heads[1].lower()


async def test_interim_responses_are_passed_over(client: UpstreamClient) -> None:
    async with upstream(always(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + OK)) as served:
        assert await _ask(client, served.url) == b"hi"


async def test_a_body_without_a_length_ends_with_the_connection(client: UpstreamClient) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.0 200 OK\r\n\r\nhello")
        writer.close()

    async with upstream(answer) as served:
        assert await _ask(client, served.url) == b"hello"


async def test_a_body_of_many_megabytes_is_sent_without_a_warning(patient: UpstreamClient) -> None:
    body = b"x" * 3_000_000
    async with upstream(always(OK)) as served:
        assert await _post(patient, served.url, body) == b"hi"
    assert served.bodies == [body]


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\r", "a\0"])
async def test_no_header_is_smuggled_in_with_a_key(client: UpstreamClient, value: str) -> None:
    async with upstream(always(OK)) as served:
        with pytest.raises(UpstreamError, match="cannot be sent"):
            await _ask(client, served.url, {"x-goog-api-key": value})
        assert served.opened == 0


async def test_idle_connections_are_closed(client: UpstreamClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.upstream.connector._KEEP_ALIVE_S", 0.05)
    async with upstream(always(OK)) as served:
        await _ask(client, served.url)
        await _until(lambda: served.closed == 1)
        assert not pooled(client)


async def test_more_requests_at_once_than_aiohttps_default_limit_do_not_wait(patient: UpstreamClient) -> None:
    all_here = asyncio.Event()

    async def wait_for_all(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if served.opened == 120:
            all_here.set()
        await all_here.wait()
        writer.write(OK)

    async with upstream(wait_for_all) as served:
        assert await asyncio.gather(*(_ask(patient, served.url) for _ in range(120))) == [b"hi"] * 120


async def test_names_are_resolved(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        assert await _ask(client, served.url.replace("127.0.0.1", "localhost")) == b"hi"
    with pytest.raises(UpstreamError, match="cannot be reached"):
        await _ask(client, "http://nobody.invalid/")


async def test_an_address_that_does_not_answer_delays_the_next_one_a_little(
    client: UpstreamClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """RFC 8305: a network where one family of addresses leads nowhere does not use up the connect time-out."""
    async with upstream(always(OK)) as served:
        port = int(served.url.split(":")[2].split("/")[0])
        with silent_address("127.0.0.3", port):
            addresses = [
                (socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))
                for host in ("127.0.0.3", "127.0.0.1")
            ]

            async def resolve(*_args: object, **_more: object) -> Any:
                return addresses

            monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
            assert await _ask(client, f"http://gemini.test:{port}/") == b"hi"


@contextmanager
def silent_address(host: str, port: int) -> Iterator[None]:
    """A socket whose queue is full: the kernel answers no further attempt to connect."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server((host, port), backlog=0))
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        yield


async def test_the_credentials_of_a_url_are_sent_and_never_shown(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        url = served.url.replace("127", "me:secret-word@127", 1)
        assert await _ask(client, url) == b"hi"
        assert b"authorization: basic" in served.heads[0].lower()
        await client.close()
    with pytest.raises(UpstreamError, match="cannot be reached") as caught:
        await _ask(client, url)
    assert "secret-word" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1/", "http:///x", "127.0.0.1:80", "http://127.0.0.1:99999/"])
async def test_a_url_that_cannot_be_used_is_an_error_of_the_upstream(
    client: UpstreamClient, url: str
) -> None:
    with pytest.raises(UpstreamError, match="base URL"):
        await _ask(client, url)
