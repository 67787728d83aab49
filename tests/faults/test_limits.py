"""Too much at once, too slow, too long: refused in time and in the caller's own words, and nothing is left behind."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.faults.harness import (
    HELLO,
    KEY,
    FakeGoogle,
    Running,
    chunk,
    events_of,
    gateway,
    silence,
    streams,
    text_of,
)

TEXT = "x" * 50_000
CHUNKS = 1_000  # 50 MB, far more than all buffers between Google and a client
BUFFERS = 16 * 1024 * 1024  # most of it the kernel's, for a peer that sends as fast as the loopback can


ASK = {"model": "x", "max_tokens": 9, "stream": True, "messages": [{"role": "user", "content": "hi"}]}


@asynccontextmanager
async def busy(google: FakeGoogle, running: Running, number: int) -> AsyncIterator[None]:
    """So many requests are being answered meanwhile."""
    asking = [asyncio.ensure_future(running.messages(stream=False)) for _ in range(number)]
    while len(google.arrived) < number:
        await asyncio.sleep(0.01)
    yield
    for task in asking:
        task.cancel()
    await asyncio.wait(asking)


async def head_only(
    running: Running, path: str, length: int
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A request whose body does not come."""
    place = running.url.removeprefix("http://")
    reader, writer = await asyncio.open_connection(*place.split(":"))
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: {KEY}\r\ncontent-type: application/json\r\n"
    )
    writer.write(f"{head}content-length: {length}\r\n\r\n".encode())
    return reader, writer


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], Any]:
    status, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return int(status.split()[1]), headers, json.loads(body) if body else None


#: path -> status, the word for it, and when to come again: in a header, or where Google says it.
OVERLOADED = {
    "/v1/messages": (529, '"type":"overloaded_error"', "retry-after: 1"),
    "/v1/chat/completions": (503, '"code":"overloaded"', "retry-after: 1"),
    "/v1/responses": (503, '"type":"server_error"', "retry-after: 1"),
    "/v1beta/models/gemini-x:generateContent": (503, '"status":"UNAVAILABLE"', '"retryDelay":"1s"'),
}


@pytest.mark.parametrize("path", OVERLOADED)
@pytest.mark.parametrize("full", ["places", "bytes"])
async def test_overload_is_told_in_the_dialect_before_the_body_is_read(full: str, path: str) -> None:
    google = FakeGoogle(silence)
    limits = {"max_requests": 2} if full == "places" else {"max_inflight_bytes": 1_000_000}
    async with gateway(google, server=limits) as running, busy(google, running, 2):
        reader, writer = await head_only(running, path, 999_999)
        status, headers, body = await answer_of(reader)
        writer.close()
        said = json.dumps(body, separators=(",", ":")) + f"retry-after: {headers.get('retry-after')}"
        expected, *words = OVERLOADED[path]
        assert status == expected
        assert all(word in said for word in words), said
        async with running.session.get(running.url + "/healthz") as response:
            assert response.status == 200, "whoever looks after us must still see that we live"
    assert len(google.arrived) == 2


async def test_who_was_refused_may_send_the_rest_and_ask_again_on_the_same_connection() -> None:
    google = FakeGoogle(silence)
    async with gateway(google, server={"max_requests": 1}) as running:
        async with busy(google, running, 1):
            reader, writer = await head_only(running, "/v1/messages", 5_000_000)
            assert (await answer_of(reader))[0] == 529
            writer.write(b"x" * 5_000_000)
            await writer.drain()
            writer.write(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            assert (await answer_of(reader))[0] == 200
        writer.close()


async def test_places_and_bytes_come_back_whatever_happens_to_a_request() -> None:
    google = FakeGoogle(silence, streams(HELLO), streams(HELLO, cut=True))
    limits = {"max_requests": 1, "body_idle_s": 0.2, "max_body_bytes": 10_000}
    async with gateway(google, server=limits, upstream={"max_attempts": 1}) as running:
        app = running.app
        async with busy(google, running, 1):
            assert (len(app._concurrency), app._bodies.byte_budget.left_bytes < 2**28) == (1, True)
        assert text_of(await events_of(await _until_admitted(running))) == "Hello"
        await (await running.messages()).read()
        reader, writer = await head_only(running, "/v1/messages", 5_000)
        writer.write(b"x")
        assert (await answer_of(reader))[0] == 504
        writer.close()
        _, writer = await head_only(running, "/v1/messages", 5_000)
        await asyncio.sleep(0.05)
        writer.close()
        for body in ({"model": 1}, {"messages": "no"}, {"messages": ["x" * 20_000]}):
            assert (await _until_admitted(running, **body)).status in (400, 413)
        await _until(lambda: len(app._concurrency) == 0)
        assert app._bodies.byte_budget.left_bytes == app.gateway.config.server.max_inflight_bytes


async def _until_admitted(running: Running, **body: Any) -> aiohttp.ClientResponse:
    while True:
        response = await (running.post(**body) if body else running.messages())
        if response.status != 529:
            return response
        await asyncio.sleep(0.02)


async def _until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.02)


async def test_one_caller_does_not_shut_the_others_out() -> None:
    google, other = FakeGoogle(silence), "dgm-another-key-of-sufficient-length"
    async with (
        gateway(google, server={"max_requests": 8}, keys=(KEY, other)) as running,
        busy(google, running, 7),
    ):
        assert (await running.messages()).status == 529
        theirs = running.session.post(running.url + "/v1/messages", json=ASK, headers={"x-api-key": other})
        asking = asyncio.ensure_future(theirs)
        await _until(lambda: len(google.arrived) == 8)
        asking.cancel()
        await asyncio.wait({asking})


async def test_slowloris_a_body_that_stops_coming_is_given_up() -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google, server={"body_idle_s": 0.3}) as running:
        reader, writer = await head_only(running, "/v1/messages", 1_000)
        for _ in range(3):  # each piece is a sign of life
            writer.write(b"{")
            await asyncio.sleep(0.15)
        status, _, body = await answer_of(reader)
        assert (status, body["error"]["type"]) == (504, "timeout_error")
        writer.close()
    assert google.arrived == []


async def test_slowloris_headers_that_stop_coming_and_idle_connections_are_hung_up_on() -> None:
    async with gateway(FakeGoogle(streams(HELLO)), server={"keep_alive_s": 0.3}) as running:
        place = running.url.removeprefix("http://").split(":")
        for said in (b"GET /healthz HTTP/1.1\r\nhost:", b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection(*place)
            writer.write(said)
            async with asyncio.timeout(10):
                await reader.read()
            writer.close()


@pytest.mark.parametrize("headers", [{f"x-{n}": "v" for n in range(150)}, {"x-long": "v" * 70_000}])
async def test_too_many_and_too_long_headers_are_refused(headers: dict[str, str]) -> None:
    async with gateway(FakeGoogle(streams(HELLO))) as running:
        async with running.session.get(running.url + "/healthz", headers=headers) as response:
            assert response.status == 431
        async with running.session.get(running.url + "/healthz") as response:
            assert response.status == 200


class Torrent(FakeGoogle):
    """Google says 50 MB as fast as it is let; `sent` is how far it came."""

    def __init__(self) -> None:
        super().__init__(self._pour)
        self.sent = 0

    async def _pour(self, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        piece, last = chunk({"text": TEXT}), chunk({"text": "end"}, finish="STOP")
        for data in (*[piece] * CHUNKS, last):
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await writer.drain()
            self.sent += len(data)
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    async def stalled(self) -> int:
        """How far it came when it came no further."""
        before = -1
        while before != self.sent:
            before = self.sent
            await asyncio.sleep(0.3)
        return before


async def ask_and_read_nothing(running: Running) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    body = json.dumps(ASK).encode()
    reader, writer = await head_only(running, "/v1/messages", len(body))
    writer.transport.pause_reading()  # type: ignore[attr-defined]
    writer.write(body)
    return reader, writer


async def test_a_slow_reader_slows_google_down_instead_of_filling_our_memory() -> None:
    google = Torrent()
    async with gateway(google) as running:
        reader, writer = await ask_and_read_nothing(running)
        await _until(lambda: google.sent > 0)
        assert await google.stalled() < BUFFERS < CHUNKS * len(TEXT)
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        answer = await _read_stream(reader)
        writer.close()
    assert answer.count(TEXT.encode()) == CHUNKS
    assert answer.rstrip().endswith(b'{"type":"message_stop"}')


async def _read_stream(reader: asyncio.StreamReader) -> bytes:
    """The body of a chunked answer."""
    await reader.readuntil(b"\r\n\r\n")
    pieces = []
    while size := int(await reader.readline(), 16):
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    return b"".join(pieces)


async def test_a_reader_who_takes_nothing_any_more_is_gone_and_google_is_not_kept_talking() -> None:
    google = Torrent()
    async with gateway(google, server={"reader_idle_s": 1.0}) as running:
        _, writer = await ask_and_read_nothing(running)
        async with asyncio.timeout(30):
            await google.hung_up.wait()
        await _until(lambda: not running.app.running)
        assert google.sent < BUFFERS
        writer.close()


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3) + bytes((kind, flags)) + stream.to_bytes(4) + payload


def _http2_request(path: str, body: bytes, window: int) -> bytes:
    """HTTP/2 by hand: so many bytes may be sent to us, and no more."""
    pairs = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "127.0.0.1"}
    pairs |= {"x-api-key": KEY, "content-type": "application/json"}
    head = b"".join(
        b"\0" + bytes((len(name),)) + name.encode() + bytes((len(value),)) + value.encode()
        for name, value in pairs.items()
    )
    settings = (4).to_bytes(2) + window.to_bytes(4)
    return (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        + _frame(4, 0, 0, settings)
        + _frame(1, 4, 1, head)
        + _frame(0, 1, 1, body)
    )


async def test_one_http2_stream_that_nobody_reads_is_given_up() -> None:
    google = Torrent()
    async with gateway(google, server={"reader_idle_s": 1.0}) as running:
        _, writer = await asyncio.open_connection(*running.url.removeprefix("http://").split(":"))
        writer.write(_http2_request("/v1/messages", json.dumps(ASK).encode(), window=100))
        async with asyncio.timeout(30):
            await google.hung_up.wait()
        await _until(lambda: not running.app.running)
        assert google.sent < BUFFERS
        writer.close()


async def test_after_a_crowd_of_streams_no_task_socket_or_descriptor_is_left() -> None:
    google = FakeGoogle(_first_words)
    async with gateway(google) as running:
        await _open_and_leave(running, 5)  # what is opened once stays open: the loop's own, the pool's
        await _until(lambda: not running.app.running)
        tasks, descriptors = len(asyncio.all_tasks()), _descriptors()
        await _open_and_leave(running, 100)
        await _until(lambda: len(asyncio.all_tasks()) <= tasks and _descriptors() <= descriptors)
        assert not running.app.running
        assert len(running.app._concurrency) == 0


async def _first_words(writer: asyncio.StreamWriter) -> None:
    await streams(chunk({"text": "Hello"}), chunk({"text": ""}), pause_s=3600)(writer)


async def _open_and_leave(running: Running, number: int) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        headers = {"x-api-key": KEY}
        open_streams = [
            session.post(running.url + "/v1/messages", json=ASK, headers=headers) for _ in range(number)
        ]
        for response in await asyncio.gather(*open_streams):
            assert b"message_start" in await response.content.readuntil(b"\n\n")
            response.close()


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))
