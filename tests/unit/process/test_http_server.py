"""HttpServer: what the application and the clients may count on, over HTTP/1.1 and HTTP/2."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import h2.config
import h2.connection
import h2.events
import pytest

from dragoman.config import ServerConfig
from dragoman.process.http_server import HttpServer
from dragoman.process.serve import bind
from tests.attacks.http2_frames import END_HEADERS, HEADERS, frame, header_block, opening

_PATIENCE_S = 30.0
_GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[Any, Any, Any], Awaitable[None]]


@asynccontextmanager
async def started(app: App, **settings: Any) -> AsyncIterator[tuple[HttpServer, int]]:
    config = ServerConfig(**settings)
    listener = bind("127.0.0.1", 0, config)
    port = int(listener.getsockname()[1])
    server = HttpServer(app, listener, config)
    server.start()
    try:
        yield server, port
    finally:
        await server.close(5.0)


async def connect(port: int, sent: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    return reader, writer


async def read_to_the_end(port: int, sent: bytes) -> bytes:
    reader, writer = await connect(port, sent)
    async with asyncio.timeout(_PATIENCE_S):
        answer = await reader.read()
    writer.close()
    return answer


async def _begin(send: Send, body: bytes) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _answer(scope: Any, receive: Any, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
    await send({"type": "http.response.body", "body": b"done"})


async def test_clients_can_connect_as_soon_as_it_has_started() -> None:
    async with started(_answer) as (_, port):
        reader, writer = await connect(port, _GET)
        async with asyncio.timeout(_PATIENCE_S):
            assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()


async def test_stop_lets_a_running_stream_finish_and_closes_everything_else() -> None:
    begun, go = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Send) -> None:
        if scope["path"] == "/":
            await _answer(scope, receive, send)
            return
        await _begin(send, b"first ")
        begun.set()
        await go.wait()
        await send({"type": "http.response.body", "body": b"last"})

    async with started(app) as (server, port):
        idle, idle_writer = await connect(port, _GET)
        await idle.readuntil(b"done")
        running, running_writer = await connect(port, _GET.replace(b"/", b"/stream", 1))
        await begun.wait()
        server.stop()
        async with asyncio.timeout(_PATIENCE_S):
            assert await idle.read() == b""  # it is closed
            while await _is_listening(port):
                await asyncio.sleep(0.01)
            go.set()
            answer = await running.read()
            await server.wait_closed()
        assert b"first " in answer
        assert answer.endswith(b"4\r\nlast\r\n0\r\n\r\n")
        for writer in (idle_writer, running_writer):
            writer.close()


async def _is_listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.setblocking(False)
        try:
            await asyncio.get_running_loop().sock_connect(probe, ("127.0.0.1", port))
        except ConnectionRefusedError:
            return False
    return True


async def test_close_does_not_wait_longer_than_it_is_told_to() -> None:
    async def app(scope: Any, receive: Any, send: Send) -> None:
        await _begin(send, b"x")
        await asyncio.sleep(3600)

    async with started(app) as (server, port):
        reader, writer = await connect(port, _GET)
        await reader.readuntil(b"x")
        async with asyncio.timeout(_PATIENCE_S):
            await server.close(0.1)
        writer.close()


async def _raises(scope: Any, receive: Any, send: Send) -> None:
    await _begin(send, b"half")
    raise RuntimeError("the application fails")


async def _returns(scope: Any, receive: Any, send: Send) -> None:
    await _begin(send, b"half")


@pytest.mark.parametrize("app", [_raises, _returns])
async def test_an_answer_that_breaks_off_is_incomplete_in_http1(app: App) -> None:
    """The connection is closed without the last chunk."""
    async with started(app) as (_, port):
        answer = await read_to_the_end(port, _GET)
    assert b"half" in answer
    assert not answer.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("app", [_raises, _returns])
async def test_an_answer_that_breaks_off_is_reset_in_http2(app: App) -> None:
    async with started(app) as (_, port):
        events = await _http2_get(port)
    kinds = [type(event) for event in events]
    assert h2.events.StreamReset in kinds
    assert h2.events.StreamEnded not in kinds
    assert b"".join(event.data for event in events if isinstance(event, h2.events.DataReceived)) == b"half"


async def test_an_answer_that_is_complete_ends_its_stream_in_http2() -> None:
    async with started(_answer) as (_, port):
        kinds = [type(event) for event in await _http2_get(port)]
    assert h2.events.StreamEnded in kinds
    assert h2.events.StreamReset not in kinds


async def _http2_get(port: int) -> list[h2.events.Event]:
    """All events up to the end of the stream, however it ends."""
    client = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True))
    client.initiate_connection()
    fields = {":method": "GET", ":scheme": "http", ":path": "/", ":authority": "localhost"}
    client.send_headers(1, list(fields.items()), end_stream=True)
    reader, writer = await connect(port, client.data_to_send())
    events: list[h2.events.Event] = []
    ends = (h2.events.StreamEnded, h2.events.StreamReset, h2.events.ConnectionTerminated)
    async with asyncio.timeout(_PATIENCE_S):
        while not any(isinstance(event, ends) for event in events):
            data = await reader.read(65_536)
            assert data, "the connection was closed"
            events += client.receive_data(data)
            writer.write(client.data_to_send())
    writer.close()
    return events


async def test_head_is_answered_without_a_body() -> None:
    async with started(_answer) as (_, port):
        answer = await read_to_the_end(
            port, b"HEAD / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
        )
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"content-length: 4" in head
    assert body == b""


async def test_100_continue_is_sent_when_the_application_reads_the_body() -> None:
    go = asyncio.Event()
    bodies = []

    async def app(scope: Any, receive: Any, send: Send) -> None:
        await go.wait()
        bodies.append((await receive())["body"])
        await _answer(scope, receive, send)

    request = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n"
    async with started(app) as (_, port):
        reader, writer = await connect(port, request)
        waiting = asyncio.ensure_future(reader.readuntil(b"\r\n\r\n"))
        await asyncio.wait({waiting}, timeout=0.2)
        assert not waiting.done()
        go.set()
        async with asyncio.timeout(_PATIENCE_S):
            assert await waiting == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"hello")
            assert (await reader.readuntil(b"done")).startswith(b"HTTP/1.1 200 OK\r\n")
        writer.close()
    assert bodies == [b"hello"]


async def test_100_continue_is_not_sent_to_a_client_that_is_refused() -> None:
    request = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\nexpect: 100-continue\r\n\r\n"
    async with started(_answer) as (_, port):
        answer = await read_to_the_end(port, request)
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("http2", [False, True])
async def test_the_application_learns_that_its_client_has_left(http2: bool) -> None:
    waiting, left = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Send) -> None:
        await _begin(send, b"x")
        while (message := await receive())["type"] == "http.request":
            waiting.set()
        assert message["type"] == "http.disconnect"
        left.set()

    request = opening() + frame(HEADERS, END_HEADERS | 1, 1, header_block()) if http2 else _GET
    async with started(app) as (_, port):
        _, writer = await connect(port, request)
        await waiting.wait()
        writer.close()
        async with asyncio.timeout(_PATIENCE_S):
            await left.wait()


async def test_when_too_many_requests_wait_each_connection_may_begin_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dragoman.process.http_server._MAX_QUEUED", 5)
    begun: list[int] = []

    async def app(scope: Any, receive: Any, send: Send) -> None:
        begun.append(scope["client"][1])
        await asyncio.sleep(0.01)

    async with started(app) as (server, _):
        ports = [1] * 20 + [2, 2, 2]
        await asyncio.gather(*(server._serve({"client": ("h", port)}, _never, _never) for port in ports))
        assert (begun.count(1), begun.count(2)) == (6, 2)  # the first of a connection does not wait
        begun.clear()
        await asyncio.gather(*(server._serve({"client": ("h", 1)}, _never, _never) for _ in range(6)))
        assert len(begun) == 6  # nobody waits any more
        assert server._busy == {}


async def _never(*_: Any) -> Any:
    raise AssertionError


async def test_a_request_that_may_not_begin_is_answered_with_an_error() -> None:
    async def app(scope: Any, receive: Any, send: Send) -> None:
        """As if it had not been called."""

    async with started(app) as (_, port):
        answer = await read_to_the_end(port, _GET.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n"))
    assert answer.startswith(b"HTTP/1.1 500 ")


async def test_a_reset_stream_is_a_client_that_has_left() -> None:
    """The connection itself stays open."""
    waiting, left = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Send) -> None:
        await _begin(send, b"x")
        while (await receive())["type"] == "http.request":
            waiting.set()
        left.set()

    async with started(app) as (_, port):
        _, writer = await connect(port, opening() + frame(HEADERS, END_HEADERS | 1, 1, header_block()))
        await waiting.wait()
        writer.write(frame(3, 0, 1, (8).to_bytes(4)))
        async with asyncio.timeout(_PATIENCE_S):
            await left.wait()
        writer.close()


async def test_a_client_with_more_unfinished_requests_than_streams_is_hung_up_on() -> None:
    """It can only have reset its streams while their requests were still running (CVE-2023-44487)."""
    running = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Send) -> None:
        await running.wait()

    async with started(app) as (_, port):
        reader, writer = await connect(port, opening())
        for first in range(1, 1601, 200):
            streams = range(first, first + 200, 2)
            writer.write(
                b"".join(frame(HEADERS, END_HEADERS | 1, stream, header_block()) for stream in streams)
            )
            await asyncio.sleep(0.2)  # a stream that is reset at once does not reach the application
            writer.write(b"".join(frame(3, 0, stream, (8).to_bytes(4)) for stream in streams))
            await asyncio.sleep(0.2)  # streams count towards the limit until the server has read the reset
        async with asyncio.timeout(_PATIENCE_S):
            with suppress(ConnectionError):
                while await reader.read(65_536):
                    pass
        running.set()
        writer.close()
