"""Connections to an upstream: used again, given up, held back, told apart; over real sockets on this machine."""

from __future__ import annotations

import asyncio
import gzip
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from dragoman.errors import UpstreamCut, UpstreamError
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


def always(raw: bytes) -> Answer:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(raw)

    return answer


async def _ask(client: UpstreamClient, url: str, headers: dict[str, str] | None = None) -> bytes:
    async with client.post(url, headers or {}, b'{"a":1}', stream=True) as answer:
        return await answer.read()


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
    assert served.heads[0].startswith(b"POST /v1/x?alt=sse HTTP/1.1\r\nhost: 127.0.0.1:")
    assert b"\r\nx-goog-api-key: k\r\n" in served.heads[0]
    assert b"\r\ncontent-type: application/json\r\n" in served.heads[0]


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


async def test_an_answer_that_came_before_all_of_the_question_was_sent_closes_its_connection(
    client: UpstreamClient,
) -> None:
    """The rest of that question would be read as the beginning of the next one."""

    async def early(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await client_done.wait()
        writer.close()

    client_done = asyncio.Event()
    server = await asyncio.start_server(early, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    async with client.post(address, {}, bytes(30_000_000), stream=True) as answer:
        assert await answer.read() == b"hi"
    assert not [one for waiting in client.connections._idle.values() for one in waiting]
    client_done.set()
    server.close()


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
        await _until(lambda: not any(one.is_open for one in next(iter(client.connections._idle.values()))))
        assert await _ask(client, served.url) == b"hi"
        assert served.opened == 2


async def test_bytes_that_nobody_asked_for_end_a_connection(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        await _ask(client, served.url)
        (connection,) = next(iter(client.connections._idle.values()))
        served._writers[0].write(OK)
        await _until(lambda: not connection.is_open)
        assert await _ask(client, served.url) == b"hi"
        assert served.opened == 2


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


@pytest.mark.parametrize("ends", ["length", "connection"])
@pytest.mark.parametrize("cut", [1, 20])
async def test_a_compressed_answer_that_is_cut_is_not_taken_for_whole(
    client: UpstreamClient, cut: int, ends: str
) -> None:
    packed = gzip.compress(b"hello world")[:-cut]
    length = b"content-length: %d\r\n" % len(packed) if ends == "length" else b""

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n%bcontent-encoding: gzip\r\n\r\n%b" % (length, packed))
        await asyncio.sleep(0)
        if not length:
            writer.close()

    async with upstream(answer) as served:
        with pytest.raises(UpstreamCut):
            async with client.post(served.url, {}, b"{}", stream=True) as got:
                await got.read()


@pytest.mark.parametrize(
    "raw", [b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nhi", STREAM + b"zz\r\n"]
)
async def test_what_is_no_answer_is_a_broken_connection(client: UpstreamClient, raw: bytes) -> None:
    async with upstream(always(raw)) as served:
        with pytest.raises(UpstreamCut, match="broke"):
            await _ask(client, served.url)
        await _until(lambda: served.closed == 1)


@pytest.mark.parametrize("value", ["a\r\nb: c", "a\nb", "a\r", "a\0"])
async def test_no_header_is_smuggled_in_with_a_key(client: UpstreamClient, value: str) -> None:
    async with upstream(always(OK)) as served:
        with pytest.raises(UpstreamError, match="cannot be sent"):
            await _ask(client, served.url, {"x-goog-api-key": value})
        assert served.opened == 0


async def test_idle_connections_are_closed(client: UpstreamClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.upstream.connection._KEEP_ALIVE_S", 0.05)
    async with upstream(always(OK)) as served:
        await _ask(client, served.url)
        await _until(lambda: served.closed == 1)
        assert not client.connections._idle


async def test_names_are_resolved_and_the_address_that_answers_is_taken(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        assert await _ask(client, served.url.replace("127.0.0.1", "localhost")) == b"hi"
    with pytest.raises(UpstreamError, match="cannot be reached"):
        await _ask(client, "http://nobody.invalid/")


async def test_an_address_with_a_password_goes_the_long_way(client: UpstreamClient) -> None:
    async with upstream(always(OK)) as served:
        assert await _ask(client, served.url.replace("127", "me:word@127", 1)) == b"hi"
        assert b"Authorization: Basic" in served.heads[0]
