"""Slow clients: they occupy connections and memory, and newcomers must still get in."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.attacker import Attack
from tests.attacks.gateway_target import ATTACKER_KEY, Target, answers, attack_for, gateway_process, measured
from tests.attacks.http2_frames import (
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    PING,
    WINDOW_UPDATE,
    frame,
    header_block,
    opening,
    setting,
)
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.faults.harness import Arrived, FakeGoogle, chunk, streams
from tests.faults.harness import answers as answers_with

_SLOTS = 64
_ATTACKERS = 150  # they take all slots, and wait in front of every newcomer
_ATTACK_S = 90.0  # at most; it ends when the victims were served
_READERS = 40
_POST = (
    b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    b"content-length: 1000000\r\n\r\n"
)
_GET = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """A gateway with few slots for connections."""
    limits = {"SERVER_MAX_CONNECTIONS": str(_SLOTS), "SERVER_MAX_REQUESTS": "32", "SERVER_KEEP_ALIVE_S": "30"}
    with gateway_process(tmp_path_factory.mktemp("small"), **limits) as running:
        yield running


def silent() -> Iterator[bytes]:
    yield from itertools.repeat(b"")


def first_byte() -> Iterator[bytes]:
    yield b"P"
    yield from itertools.repeat(b"")


def half_a_preface() -> Iterator[bytes]:
    yield b"PRI * HTT"
    yield from itertools.repeat(b"")


def dripped_preface() -> Iterator[bytes]:
    yield from (bytes((byte,)) for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r")
    yield from itertools.repeat(b"")


def dripped_head() -> Iterator[bytes]:
    yield b"GET /healthz HTTP/1.1\r\nx-slow: "
    yield from itertools.repeat(b"x")


def dripped_body() -> Iterator[bytes]:
    """Without a key: it is refused, and goes on sending."""
    yield _POST
    yield from itertools.repeat(b"{")


def idle_http1() -> Iterator[bytes]:
    yield _GET
    yield from itertools.repeat(b"")


def idle_http2() -> Iterator[bytes]:
    yield opening() + frame(HEADERS, END_HEADERS | END_STREAM, 1, header_block())
    yield from itertools.repeat(b"")


def http2_without_a_request() -> Iterator[bytes]:
    yield opening()
    yield from itertools.repeat(b"")


def http2_with_pings() -> Iterator[bytes]:
    yield opening()
    yield from itertools.repeat(frame(PING, 0, 0, b"12345678"))


def http2_dripped_head() -> Iterator[bytes]:
    """A head that never ends, a byte at a time."""
    yield opening() + frame(HEADERS, 0, 1, header_block())
    yield from itertools.repeat(frame(9, 0, 1, b"\0"))


def http2_dripped_body() -> Iterator[bytes]:
    block = header_block("POST", "/v1/messages", content_type="application/json")
    yield opening() + frame(HEADERS, END_HEADERS, 1, block)
    yield from itertools.repeat(frame(DATA, 0, 1, b"{"))


SLOW = [
    silent,
    first_byte,
    half_a_preface,
    dripped_preface,
    dripped_head,
    dripped_body,
    idle_http1,
    idle_http2,
    http2_without_a_request,
    http2_with_pings,
    http2_dripped_head,
    http2_dripped_body,
]


@pytest.mark.parametrize("pieces", SLOW, ids=lambda pieces: pieces.__name__)
async def test_slowloris_does_not_keep_newcomers_out(
    small: Target, pieces: Callable[[], Iterator[bytes]], tmp_path: Path
) -> None:
    """Every victim's request comes on a connection of its own, and is answered while the attack goes on."""
    stop = tmp_path / "stop"
    attack = Attack(pieces=pieces, connections=_ATTACKERS, pause_s=0.3, stop_file=str(stop))
    async with measured(small, f"slowloris {pieces.__name__}", newcomer=True) as row:
        attacking = asyncio.ensure_future(attack_for(attack, small.port, _ATTACK_S))
        with suppress(TimeoutError):  # some attackers are refused so fast that the slots are never all taken
            async with asyncio.timeout(3):
                while small.descriptors() < _SLOTS:
                    await asyncio.sleep(0.01)
        await answers(row, 6)
        assert not attacking.done()
        stop.touch()
        row.outcome = await attacking
    assert row.outcome.connections >= _ATTACKERS


class Torrent(FakeGoogle):
    """Streams without end to the attackers; `running` is how many of these it is sending now."""

    def __init__(self) -> None:
        super().__init__()
        self.began = 0
        self.running = 0

    def answer_to(self, arrived: Arrived) -> Any:
        if "much" in str(arrived.body["contents"]):
            return self._pour
        if ":stream" in arrived.path:
            return streams(chunk({"text": "Hello"}, finish="STOP"))
        return answers_with(
            {"candidates": [{"content": {"parts": [{"text": "Hello"}]}, "finishReason": "STOP"}]}
        )

    async def _pour(self, writer: asyncio.StreamWriter) -> None:
        self.began += 1
        self.running += 1
        try:
            await streams(*[chunk({"text": "x" * 50_000})] * 2_000)(writer)
        finally:
            self.running -= 1


_MUCH = (
    b'{"model":"gemini-3.8-flash","max_tokens":9000,"stream":true,'
    b'"messages":[{"role":"user","content":"much"}]}'
)


def http1_reader() -> bytes:
    head = b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\nx-api-key: "
    return b"%b%b\r\ncontent-length: %d\r\n\r\n%b" % (head, ATTACKER_KEY.encode(), len(_MUCH), _MUCH)


def _http2_reader(window: int, streams_: int = 5) -> bytes:
    block = header_block("POST", "/v1/messages", content_type="application/json", x_api_key=ATTACKER_KEY)
    sent = opening(setting(INITIAL_WINDOW_SIZE, window)) + frame(
        WINDOW_UPDATE, 0, 0, (2**31 - 1 - 65_535).to_bytes(4)
    )
    for stream in range(1, 2 * streams_, 2):
        sent += frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, _MUCH)
    return sent


def http2_reader_with_open_windows() -> bytes:
    return _http2_reader(2**31 - 1)


def http2_reader_with_closed_windows() -> bytes:
    return _http2_reader(0)


@pytest.mark.parametrize(
    ("request_bytes", "answers_per_connection"),
    [(http1_reader, 1), (http2_reader_with_open_windows, 5), (http2_reader_with_closed_windows, 5)],
    ids=["http1", "http2-open-windows", "http2-closed-windows"],
)
async def test_clients_that_read_nothing_are_given_up(
    tmp_path: Path, request_bytes: Callable[[], bytes], answers_per_connection: int
) -> None:
    """Each could be sent 100 MB; after `server.reader_idle_s` nothing is asked of Google for them any more."""
    google = Torrent()
    fake = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    keys = f"{GATEWAY_KEY},{ATTACKER_KEY}"
    settings = {"SERVER_KEYS": keys, "SERVER_READER_IDLE_S": "2", "SERVER_PING_S": "1"}
    port = fake.sockets[0].getsockname()[1]
    gateway = Gateway(tmp_path / "home", f"http://127.0.0.1:{port}", **settings)
    await asyncio.to_thread(gateway.start)
    clients: list[socket.socket] = []
    try:
        target = Target(gateway.url, gateway.pid)
        async with measured(target, f"slow {request_bytes.__name__}") as row:
            for _ in range(_READERS // answers_per_connection):
                clients.append(socket.create_connection(("127.0.0.1", target.port)))
                clients[-1].sendall(request_bytes())
            row.outcome.connections = len(clients)
            async with asyncio.timeout(60):
                while google.began < _READERS or google.running:
                    await asyncio.sleep(0.05)
    finally:
        for client in clients:
            client.close()
        await asyncio.to_thread(gateway.stop)
        fake.close()
