"""Connections without a running request are closed in time, and make room when all slots are taken."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.config import ServerConfig
from dragoman.process.http_server import IdleConnectionSweeper, _accepted_connections, _Connection, _shut_down
from tests.attacks.http2_frames import END_HEADERS, END_STREAM, HEADERS, PING, frame, header_block, opening
from tests.faults.harness import serving

_PATIENCE_S = 30.0
_GET = b"GET /%b HTTP/1.1\r\nhost: localhost\r\n\r\n"
Client = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class App:
    """Answers at once, except requests for /wait: these wait for `go`."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.waiting = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/wait":
            self.waiting += 1
            await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"4")]})
        await send({"type": "http.response.body", "body": b"done"})

    async def until_waiting(self, number: int) -> None:
        async with asyncio.timeout(_PATIENCE_S):
            while self.waiting < number:
                await asyncio.sleep(0.01)


@asynccontextmanager
async def connected(url: str, *sent: bytes) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(b"".join(sent))
    try:
        yield reader, writer
    finally:
        writer.close()


async def read_to_the_end(client: Client) -> bytes:
    async with asyncio.timeout(_PATIENCE_S):
        return await client[0].read()


async def ask(url: str) -> bytes:
    """As a newcomer, on a connection of its own."""
    async with connected(url, _GET % b"") as client, asyncio.timeout(_PATIENCE_S):
        return await client[0].readuntil(b"done")


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"P",
        b"PRI * HTT",
        b"GET / HTTP/1.1\r\nx: ",
        _GET % b"",
        opening(),
        opening() + frame(HEADERS, END_HEADERS | END_STREAM, 1, header_block()),
        opening() + frame(PING, 0, 0, b"12345678"),
    ],
    ids=["silent", "P", "half a preface", "half a head", "idle", "HTTP/2", "idle HTTP/2", "HTTP/2 ping"],
)
async def test_an_idle_connection_is_closed_after_keep_alive_s(sent: bytes) -> None:
    async with serving(App(), ServerConfig(keep_alive_s=0.4)) as url, connected(url, sent) as client:
        await read_to_the_end(client)


@pytest.mark.parametrize("http2", [False, True])
async def test_a_connection_with_a_running_request_is_not_closed(http2: bool) -> None:
    """It sends and receives nothing for much longer than `keep_alive_s`."""
    app = App()
    request = _GET % b"wait"
    if http2:
        request = opening() + frame(HEADERS, END_HEADERS | END_STREAM, 1, header_block(path="/wait"))
    async with serving(app, ServerConfig(keep_alive_s=0.3)) as url, connected(url, request) as busy:
        await app.until_waiting(1)
        for _ in range(3):  # each time the sweep closes a connection that came later
            async with connected(url) as silent:
                await read_to_the_end(silent)
        app.go.set()
        async with asyncio.timeout(_PATIENCE_S):
            await busy[0].readuntil(b"done")


async def test_newcomers_get_in_when_silent_connections_take_all_slots() -> None:
    settings = ServerConfig(keep_alive_s=600, max_connections=4)
    async with serving(App(), settings) as url:
        silent = [await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2])) for _ in range(12)]
        for _ in range(8):
            assert b" 200 " in await ask(url)
        for _, writer in silent:
            writer.close()


async def test_running_requests_keep_their_slots_when_others_make_room() -> None:
    app, settings = App(), ServerConfig(keep_alive_s=600, max_connections=4)
    async with serving(app, settings) as url:
        port = int(url.rpartition(":")[2])
        busy = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        for _, writer in busy:
            writer.write(_GET % b"wait")
        await app.until_waiting(3)
        for _ in range(3):
            async with connected(url):
                assert b" 200 " in await ask(url)
        app.go.set()
        for reader, writer in busy:
            async with asyncio.timeout(_PATIENCE_S):
                await reader.readuntil(b"done")
            writer.close()


def _idle(max_connections: int, busy: set[int] | None = None) -> IdleConnectionSweeper:
    settings = ServerConfig(max_connections=max_connections)
    return IdleConnectionSweeper(1, settings, lambda: busy or set())


def test_those_that_had_no_request_for_longest_make_room_first() -> None:
    idle = _idle(max_connections=16)
    idle._unused_since = {1: 30.0, 2: 10.0, 3: 20.0}
    unused = [_Connection(fd=port, peer_port=port, idle_ms=5_000) for port in (1, 2, 3)]
    assert [one.peer_port for one in idle._choose_for_eviction(unused)] == [2, 3]


def test_a_client_between_two_requests_makes_room_last() -> None:
    idle = _idle(max_connections=16)
    idle._unused_since = {1: 10.0, 2: 20.0, 3: 30.0}
    unused = [_Connection(fd=port, peer_port=port, idle_ms=100 if port == 1 else 5_000) for port in (1, 2, 3)]
    assert [one.peer_port for one in idle._choose_for_eviction(unused)] == [2, 3]


class Pair:
    """Two accepted connections of one listening socket."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self.listener.getsockname()[1])
        self.clients = [socket.create_connection(("127.0.0.1", self.port)) for _ in range(2)]
        self.accepted = [self.listener.accept()[0] for _ in range(2)]

    def close(self) -> None:
        for one in (self.listener, *self.clients, *self.accepted):
            one.close()

    def peer_port(self, number: int) -> int:
        return int(self.accepted[number].getpeername()[1])

    def is_open(self, number: int) -> bool:
        self.accepted[number].setblocking(False)
        try:
            return self.accepted[number].recv(1) != b""
        except BlockingIOError:
            return True


@pytest.fixture
def pair() -> Iterator[Pair]:
    pair = Pair()
    yield pair
    pair.close()


def test_only_accepted_connections_of_the_port_are_looked_at(pair: Pair) -> None:
    """Not the listening socket, not the clients, not sockets of other kinds, not files."""
    left, right = socket.socketpair()
    with left, right, socket.socket(type=socket.SOCK_DGRAM), open("/dev/null", "rb"):
        found = {(one.fd, one.peer_port) for one in _accepted_connections(pair.port)}
    assert found == {(pair.accepted[number].fileno(), pair.peer_port(number)) for number in (0, 1)}


def test_a_descriptor_that_belongs_to_another_connection_now_is_left_alone(pair: Pair) -> None:
    """It was closed and reused between the look and the shutdown."""
    stale = _Connection(fd=pair.accepted[1].fileno(), peer_port=pair.peer_port(0), idle_ms=0)
    _shut_down(stale, pair.port)
    assert pair.is_open(1)
    _shut_down(_Connection(fd=stale.fd, peer_port=pair.peer_port(1), idle_ms=0), pair.port + 1)
    assert pair.is_open(1)
    _shut_down(_Connection(fd=stale.fd, peer_port=pair.peer_port(1), idle_ms=0), pair.port)
    assert not pair.is_open(1)


def test_a_descriptor_that_is_closed_or_no_socket_is_no_error(pair: Pair) -> None:
    pair.accepted[0].close()
    with open("/dev/null", "rb") as file:
        for fd in (file.fileno(), 1_000_000):
            _shut_down(_Connection(fd=fd, peer_port=1, idle_ms=0), pair.port)
        assert not file.closed
