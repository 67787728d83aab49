"""HTTP/2 on real sockets, spoken by the h2 package as a client and by hand where a client would not do it."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    RemoteSettingsChanged,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.settings import SettingCodes

from dragoman.server.wire.http2 import Http2Connection
from dragoman.server.wire.http2_frames import FrameHeads
from dragoman.server.wire.http2_turn import Http2Turn
from dragoman.server.wire.turn import TURN
from tests.unit.server.wire.test_http1 import MIB, Opened, body, echo, opened, says, start, until, whole

HEAD = [(":method", "POST"), (":scheme", "http"), (":authority", "h"), (":path", "/a%20b?c=d")]


def window(stream: int, size: int = 1) -> bytes:
    return b"\0\0\x04\x08\0" + stream.to_bytes(4) + size.to_bytes(4)


class Client:
    """Reads all the time; what has happened is in `events`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.h2 = H2Connection(
            H2Configuration(
                client_side=True, validate_outbound_headers=False, normalize_outbound_headers=False
            )
        )
        self.events: list[Event] = []
        self.closed = asyncio.Event()
        self.grants = True  # gives back the window for what has come
        self.writer = writer
        self._reading = asyncio.ensure_future(self._read(reader))
        self.h2.initiate_connection()
        self.flush()

    def flush(self) -> None:
        self.writer.write(self.h2.data_to_send())

    def ask(self, *, data: bytes | None = b"", head: Any = None, end: bool = True) -> int:
        stream = self.h2.get_next_available_stream_id()
        self.h2.send_headers(stream, head or HEAD, end_stream=data is None)
        if data is not None:
            self.h2.send_data(stream, data, end_stream=end)
        self.flush()
        return stream

    def of(self, stream: int, kind: type[Event]) -> list[Any]:
        return [
            one for one in self.events if isinstance(one, kind) and getattr(one, "stream_id", 0) == stream
        ]

    def data(self, stream: int) -> bytes:
        return b"".join(one.data for one in self.of(stream, DataReceived))

    async def answer(self, stream: int) -> tuple[dict[str, str], bytes]:
        await until(lambda: self.of(stream, StreamEnded) or self.of(stream, StreamReset))
        assert not self.of(stream, StreamReset), self.of(stream, StreamReset)
        (head,) = self.of(stream, ResponseReceived)
        return {n.decode(): v.decode() for n, v in head.headers}, self.data(stream)

    async def ended(self) -> ErrorCodes | None:
        """Why the server said goodbye."""
        async with asyncio.timeout(10):
            await self.closed.wait()
        said = [one.error_code for one in self.events if isinstance(one, ConnectionTerminated)]
        return ErrorCodes(said[-1]) if said else None  # type: ignore[arg-type]

    async def close(self) -> None:
        self.writer.close()
        self._reading.cancel()
        await asyncio.wait({self._reading})

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while data := await reader.read(65_536):
                for event in self.h2.receive_data(data):
                    self.events.append(event)
                    if isinstance(event, DataReceived) and self.grants and event.flow_controlled_length:
                        self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                self.flush()
        except ConnectionError:
            pass
        finally:
            self.closed.set()


@asynccontextmanager
async def speaking(app: Any, **settings: Any) -> AsyncIterator[tuple[Client, Opened]]:
    async with opened(app, **settings) as here:
        client = Client(*(await here.connect()))
        try:
            yield client, here
        finally:
            await client.close()


async def guest_of(here: Opened) -> Http2Connection:
    await until(lambda: [one for one in here.server._house.guests if isinstance(one, Http2Connection)])
    (guest,) = here.server._house.guests
    assert isinstance(guest, Http2Connection)
    return guest


async def test_a_request_is_answered() -> None:
    scopes: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        await echo(scope, receive, send)

    async with speaking(app) as (client, _):
        head, said = await client.answer(client.ask(data=b"hello", head=[*HEAD, ("x-a", " b  c ")]))
    assert (head[":status"], head["x-path"], said) == ("200", "/a b", b"hello")
    assert "date" in head
    (scope,) = scopes
    assert (scope["http_version"], scope["raw_path"], scope["query_string"]) == ("2", b"/a%20b", b"c=d")
    assert scope["headers"] == [(b"host", b"h"), (b"x-a", b"b  c")]


async def test_streams_are_answered_as_they_are_ready_on_one_connection() -> None:
    gates = {f"/{number}": asyncio.Event() for number in range(20)}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await gates[scope["path"]].wait()
        await echo(scope, receive, send)

    async with speaking(app) as (client, _):
        asked = {path: client.ask(data=path.encode(), head=[*HEAD[:3], (":path", path)]) for path in gates}
        for path in reversed(asked):
            gates[path].set()
            assert (await client.answer(asked[path]))[1] == path.encode()


async def test_large_bodies_go_through_windows_both_ways() -> None:
    async with speaking(echo) as (client, _):
        data, sent, stream = bytes(range(256)) * 12_000, 0, client.ask(data=b"", end=False)
        while sent < len(data):
            await until(lambda: client.h2.local_flow_control_window(stream) > 0)
            room = min(client.h2.local_flow_control_window(stream), client.h2.max_outbound_frame_size)
            piece = data[sent : sent + room]
            sent += len(piece)
            client.h2.send_data(stream, piece, end_stream=sent == len(data))
            client.flush()
        assert (await client.answer(stream))[1] == data


async def test_a_body_that_nobody_takes_makes_its_sender_wait() -> None:
    take = asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await take.wait()
        await echo(scope, receive, send)

    async with speaking(app) as (client, _):
        stream = client.ask(data=b"", end=False)
        await until(lambda: client.h2.remote_settings.initial_window_size == 128 * 1024)
        for _ in range(8):
            client.h2.send_data(stream, b"x" * 16_384)
        client.flush()
        await asyncio.sleep(0.05)
        assert client.h2.local_flow_control_window(stream) == 0
        take.set()
        await until(lambda: client.h2.local_flow_control_window(stream) > 0)
        client.h2.end_stream(stream)
        client.flush()
        assert len((await client.answer(stream))[1]) == 128 * 1024


async def test_a_stream_that_nobody_reads_hinders_no_other() -> None:
    async with speaking(says(start(), body(b"x" * MIB))) as (client, here):
        client.grants = False
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 1_000})
        client.flush()
        stream = client.ask(data=None)
        await until(lambda: len(client.data(stream)) == 1_000)
        client.h2.increment_flow_control_window(10 * MIB)
        other = client.ask(data=None)
        client.h2.increment_flow_control_window(10 * MIB, other)
        client.flush()
        assert len((await client.answer(other))[1]) == MIB
        guest = await guest_of(here)
        guest.look(here.server._house.now + 299)
        assert not client.of(stream, StreamReset)
        guest.look(here.server._house.now + 301)
        await until(lambda: client.of(stream, StreamReset))
        await until(lambda: not here.server._house.tasks)


async def test_a_window_that_opens_elsewhere_is_no_sign_of_a_reader() -> None:
    """Neither are settings: only a byte that could leave is one."""
    async with speaking(says(start(), body(b"x" * 100))) as (client, here):
        client.grants = False
        client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10})
        stream = client.ask(data=None)
        await until(lambda: len(client.data(stream)) == 10)
        guest = await guest_of(here)
        (turn,) = guest._streams.values()
        began = turn.blocked_since
        assert began
        for word in (window(0), b"\0\0\0\x04\0\0\0\0\0"):
            guest.house.now += 10
            patience = guest._patience
            client.writer.write(word)
            await until(lambda: guest._patience < patience)  # noqa: B023
            assert turn.blocked_since == began
        turn.unblock()  # as for a window that was taken by somebody else in the meantime
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert turn.blocked_since == began
        client.h2.increment_flow_control_window(10, stream)
        client.flush()
        await until(lambda: len(client.data(stream)) == 20)
        assert turn.blocked_since > began
        client.h2.increment_flow_control_window(1_000, stream)
        client.flush()
        await client.answer(stream)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ([*HEAD, ("x-a", "b" * 70_000)], "431"),
        ([*HEAD, *((f"x-{number}", "y") for number in range(101))], "431"),
        ([*HEAD, ("connection", "close")], "400"),
        ([*HEAD, ("transfer-encoding", "chunked")], "400"),
        ([*HEAD, ("te", "gzip")], "400"),
        ([*HEAD, ("X-A", "b")], "400"),
        ([*HEAD, ("x a", "b")], "400"),
        ([*HEAD, ("x-a", "b\r\nc: d")], "400"),
        ([*HEAD, ("host", "another")], "400"),
        ([*HEAD, (":path", "/")], "400"),
        ([*HEAD, (":protocol", "websocket")], "400"),
        ([("x-a", "b"), *HEAD], "400"),
        ([*HEAD[:3], (":path", "/a b")], "400"),
        ([*HEAD[:3], (":path", "/a#b")], "400"),
        ([*HEAD[:3], (":path", "a")], "400"),
        ([*HEAD[:3], (":path", "http://localhost/")], "400"),
        ([*HEAD[:3], (":path", "*")], "400"),
        ([*HEAD[:2], (":path", "/")], "400"),
        ([*HEAD[1:]], "400"),
        ([(":method", "CONNECT"), (":authority", "h:1")], "400"),
    ],
    ids=range(20),
)
async def test_a_head_that_is_none_ends_its_stream_and_no_other(head: Any, status: str) -> None:
    async with speaking(echo) as (client, _):
        stream = client.ask(data=None, head=head)
        await until(lambda: client.of(stream, ResponseReceived))
        (refused,) = client.of(stream, ResponseReceived)
        assert dict(refused.headers)[b":status"] == status.encode()
        assert (await client.answer(client.ask()))[0][":status"] == "200"


async def test_a_head_that_is_none_and_taken_back_at_once_ends_no_other_stream() -> None:
    async with speaking(echo) as (client, _):
        honest = client.ask(data=b"he", end=False)
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, [*HEAD, ("x a", "b")], end_stream=True)
        client.h2.reset_stream(stream)
        client.flush()  # both in one piece
        client.h2.send_data(honest, b"llo", end_stream=True)
        client.flush()
        assert (await client.answer(honest))[1] == b"hello"


async def test_the_same_host_twice_is_one_host() -> None:
    async with speaking(echo) as (client, _):
        assert (await client.answer(client.ask(head=[*HEAD, ("host", "h")])))[0][":status"] == "200"


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204)])
async def test_some_answers_have_no_body(method: str, status: int) -> None:
    async with speaking(says(start(status), body(b"hello", more=True), body(b"x"))) as (client, _):
        head, said = await client.answer(client.ask(data=None, head=[(":method", method), *HEAD[1:]]))
        assert (head[":status"], said) == (str(status), b"")


async def test_the_word_comes_when_the_body_is_wanted() -> None:
    async with speaking(echo) as (client, _):
        stream = client.h2.get_next_available_stream_id()
        client.h2.send_headers(stream, [*HEAD, ("expect", "100-continue")])
        client.flush()
        await until(lambda: client.of(stream, InformationalResponseReceived))
        client.h2.send_data(stream, b"hi", end_stream=True)
        client.flush()
        assert (await client.answer(stream))[1] == b"hi"


async def test_an_answer_before_the_end_of_the_body_stops_the_body() -> None:
    async with speaking(says(start(413), body(b"no"))) as (client, here):
        stream = client.ask(data=b"some", end=False)
        await until(lambda: client.of(stream, StreamReset))
        assert client.data(stream) == b"no"
        assert client.of(stream, StreamReset)[0].error_code == ErrorCodes.NO_ERROR
        assert (await guest_of(here)).running == 0


@pytest.mark.parametrize("begun", [True, False])
async def test_a_failure_is_seen_as_one(begun: bool) -> None:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        if begun:
            await send(start())
            await send(body(b"half", more=True))
        raise ValueError

    async with speaking(app) as (client, _):
        stream = client.ask()
        if begun:
            await until(lambda: client.of(stream, StreamReset))
            assert not client.of(stream, StreamEnded)
        else:
            assert (await client.answer(stream))[0][":status"] == "500"


async def test_a_failure_is_said_at_once_to_a_client_that_says_nothing() -> None:
    fail = asyncio.Event()

    async def app(*_: Any) -> None:
        await fail.wait()
        raise ValueError

    async with speaking(app) as (client, here):
        client.ask()
        guest = await guest_of(here)
        await until(lambda: guest.running)
        fail.set()
        await until(lambda: not guest.running)
        assert guest._h2.data_to_send() == b""


@pytest.mark.parametrize("leave", ["reset", "close"])
async def test_the_application_is_told_that_its_client_has_left(leave: str) -> None:
    told = asyncio.Event()

    async def app(scope: Any, receive: Any, _send: Any) -> None:
        await whole(receive)
        scope["extensions"][TURN].tell_leaving(told.set)
        assert (await receive())["type"] == "http.disconnect"

    async with speaking(app) as (client, here):
        stream = client.ask()
        await until(lambda: here.server._house.tasks)
        if leave == "reset":
            client.h2.reset_stream(stream, ErrorCodes.CANCEL)
            client.flush()
        else:
            client.writer.close()
        async with asyncio.timeout(5):
            await told.wait()


class TestFloods:
    """Each of them is cheap for a client and not for a server (CVE-2019-9511 to 9518, CVE-2023-44487, CVE-2024-27316)."""

    async def test_rapid_reset(self) -> None:
        running = most = 0

        async def app(_scope: Any, receive: Any, _send: Any) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            try:
                await asyncio.sleep(0.2)  # does not care who leaves
            finally:
                running -= 1

        async with speaking(app) as (client, here):
            for _ in range(1_000):
                stream = client.ask(data=None)
                client.h2.reset_stream(stream, ErrorCodes.CANCEL)
            client.flush()
            assert await client.ended() == ErrorCodes.ENHANCE_YOUR_CALM
            assert most <= 256
            await until(lambda: not here.server._house.tasks)

    @pytest.mark.parametrize(
        "kind",
        [
            *("ping", "settings", "empty data", "priority", "unknown"),
            *("window", "window of a stream", "window of a stream that is over"),
        ],
    )
    async def test_frames_that_bring_nothing(self, kind: str) -> None:
        async with speaking(echo) as (client, _):
            over = client.ask()
            await client.answer(over)
            stream = client.ask(data=b"", end=False)
            frames = {
                "ping": b"\0\0\x08\x06\0\0\0\0\0" + b"x" * 8,
                "settings": b"\0\0\0\x04\0\0\0\0\0",
                "empty data": b"\0\0\0\0\0" + stream.to_bytes(4),
                "priority": b"\0\0\x05\x02\0" + stream.to_bytes(4) + b"\0\0\0\0\x01",
                "unknown": b"\0\0\0\xfe\0\0\0\0\0",
                "window": window(0),
                "window of a stream": window(stream),
                "window of a stream that is over": window(over),
            }
            client.writer.write(frames[kind] * 5_000)
            assert await client.ended() == ErrorCodes.ENHANCE_YOUR_CALM

    @pytest.mark.parametrize("size", [10, 16_384])
    async def test_who_reads_may_open_both_windows_for_every_frame(self, size: int) -> None:
        async with speaking(says(start(), *[body(b"x" * size, more=True)] * 1_500, body())) as (client, _):
            client.grants = False
            stream, seen = client.ask(data=None), 0
            while not client.of(stream, StreamEnded):
                assert not client.closed.is_set()
                await asyncio.sleep(0.002)
                came = client.of(stream, DataReceived)[seen:]
                seen += len(came)
                for one in came:
                    if one.data and not client.of(stream, StreamEnded):
                        client.h2.increment_flow_control_window(len(one.data))
                        client.h2.increment_flow_control_window(len(one.data), stream)
                client.flush()
            assert len(client.data(stream)) == 1_500 * size

    async def test_a_window_that_is_opened_byte_by_byte(self) -> None:
        async with speaking(says(start(), body(b"x" * 1_000))) as (client, here):
            client.grants = False
            client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
            stream = client.ask(data=None)
            guest = await guest_of(here)
            await until(lambda: client.of(stream, ResponseReceived))
            before = guest._patience
            for size in range(1, 101):
                client.h2.increment_flow_control_window(1, stream)
                client.flush()
                await until(lambda size=size: len(client.data(stream)) == size)  # type: ignore[misc]
            assert guest._patience == before - 100

    async def test_nobody_is_woken_whose_window_is_still_closed(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        woken: list[int] = []
        unblock = Http2Turn.unblock

        def counted(turn: Http2Turn) -> None:
            woken.append(turn.stream)
            unblock(turn)

        monkeypatch.setattr(Http2Turn, "unblock", counted)
        async with speaking(says(start(), body(b"x" * 100))) as (client, here):
            client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
            streams = [client.ask(data=None) for _ in range(20)]
            await until(lambda: all(client.of(stream, ResponseReceived) for stream in streams))
            guest = await guest_of(here)
            patience = guest._patience
            client.writer.write(window(0) * 100)
            await until(lambda: guest._patience == patience - 100)
            assert woken == []
            client.h2.increment_flow_control_window(100, streams[7])
            client.flush()
            await client.answer(streams[7])
            assert woken == [streams[7]]

    @pytest.mark.parametrize("over", [False, True])
    async def test_frames_with_a_byte_of_a_body(self, over: bool) -> None:
        async with speaking(echo) as (client, here):
            stream = client.ask(data=b"", end=False)
            if over:
                await until(lambda: here.server._house.tasks)
                client.h2.reset_stream(stream)
                client.flush()
            client.writer.write((b"\0\0\x01\0\0" + stream.to_bytes(4) + b"x") * 14_000)
            assert await client.ended() == ErrorCodes.ENHANCE_YOUR_CALM

    async def test_small_frames_are_only_small(self) -> None:
        async with speaking(echo) as (client, _):
            stream = client.ask(data=b"", end=False)
            for _ in range(50):
                for _ in range(100):
                    client.h2.send_data(stream, b"xyz")
                client.flush()
                await asyncio.sleep(0)
            client.h2.end_stream(stream)
            client.flush()
            assert (await client.answer(stream))[1] == b"xyz" * 5_000

    async def test_heads_that_are_none(self) -> None:
        async with speaking(echo) as (client, _):
            for _ in range(250):
                if client.h2.state_machine.state != ConnectionState.CLOSED:
                    client.ask(data=None, head=[*HEAD, ("x a", "b")])
                    await asyncio.sleep(0)
            assert await client.ended() == ErrorCodes.ENHANCE_YOUR_CALM

    @pytest.mark.parametrize("word", [window(0), b"\0\0\0\x04\0\0\0\0\0"], ids=["window", "settings"])
    async def test_windows_that_open_while_a_stream_ends_end_no_other(self, word: bytes) -> None:
        async with speaking(says(start(), body(b"x" * 100))) as (client, here):
            client.grants = False
            client.h2.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 10})
            first, other = client.ask(data=None), client.ask(data=None)
            await until(lambda: len(client.data(first)) == len(client.data(other)) == 10)
            client.h2.reset_stream(first)
            third = client.h2.get_next_available_stream_id()
            client.h2.send_headers(third, HEAD, end_stream=True)  # with it h2 forgets those that are over
            client.writer.write(word + client.h2.data_to_send())  # in one piece
            await until(lambda: len(client.data(third)) == 10)
            assert len(here.server._house.tasks) == 2
            client.h2.increment_flow_control_window(1_000, other)
            client.flush()
            assert len((await client.answer(other))[1]) == 100

    async def test_continuations_without_end(self) -> None:
        async with speaking(echo) as (client, _):
            await until(lambda: client.events)
            client.writer.write(b"\0\0\x01\x01\0\0\0\0\x01\x82" + b"\0\0\x01\x09\0\0\0\0\x01\x84" * 5_000)
            assert await client.ended() is not None

    async def test_a_compressed_bomb_of_headers(self) -> None:
        long = [(f"x-{number}", "a" * 4_000) for number in range(1)]
        async with speaking(echo) as (client, _):
            client.ask(data=None, head=[*HEAD, *long * 5_000])  # a byte each, from the second on
            await client.ended()

    async def test_questions_whose_answers_nobody_reads_are_not_read_either(self) -> None:
        async with opened(echo) as here:
            narrow = socket.socket()
            narrow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            narrow.connect(("127.0.0.1", here.port))
            _, writer = await asyncio.open_connection(sock=narrow)
            here.writers.append(writer)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
            guest = await guest_of(here)
            ping = b"\0\0\x08\x06\0\0\0\0\0" + b"x" * 8
            async with asyncio.timeout(20):
                while not guest.is_full:
                    guest._patience = 10**9  # or it would be sent away for that alone
                    writer.write(ping * 900)
                    await asyncio.sleep(0)
            assert guest.transport.get_write_buffer_size() < MIB
            assert not guest.transport.is_reading()

    async def test_an_answered_stream_makes_room_for_the_next_at_once(self) -> None:
        """By the protocol it does; that its application still has something to do is none of its client's business."""
        late = asyncio.Event()

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send(start())
            await send(body(b"x"))
            await late.wait()

        async with speaking(app) as (client, here):
            for _ in range(2):
                streams = [client.ask(data=None) for _ in range(128)]
                for stream in streams:
                    await client.answer(stream)
            guest = await guest_of(here)
            assert guest.running == 256
            patience = guest._patience
            refused = client.ask(data=None)  # there is an end to it
            await until(lambda: client.of(refused, StreamReset))
            assert client.of(refused, StreamReset)[0].error_code == ErrorCodes.REFUSED_STREAM
            assert guest._patience == patience
            late.set()
            await until(lambda: guest.running == 0)
            await client.answer(client.ask(data=None))

    async def test_more_streams_than_allowed(self) -> None:
        async with speaking(_for_ever) as (client, here):
            await until(lambda: [one for one in client.events if isinstance(one, RemoteSettingsChanged)])
            assert client.h2.remote_settings.max_concurrent_streams == 128
            for _ in range(128):
                client.ask(data=None)
            await until(lambda: len(here.server._house.tasks) == 128)

    async def test_all_connections_together_run_no_more_than_the_settings_allow(self) -> None:
        go = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["http_version"] == "2":
                await go.wait()
            await echo(scope, receive, send)

        async with speaking(app, max_requests=6, max_connections=4) as (client, here):
            other = Client(*(await here.connect()))
            streams = [(one, one.ask()) for one in (client, other) for _ in range(5)]
            await until(lambda: len(here.server._house.tasks) == 10)
            refused = client.ask()
            await until(lambda: client.of(refused, StreamReset))
            assert client.of(refused, StreamReset)[0].error_code == ErrorCodes.REFUSED_STREAM
            probe = await here.ask(b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n")
            assert probe.startswith(b"HTTP/1.1 200")  # who asks one by one is not shut out by them
            go.set()
            for one, stream in streams:
                await one.answer(stream)
            await client.answer(client.ask())
            await other.close()


class TestGoodbye:
    async def test_a_server_that_stops_says_so_and_lets_streams_finish(self) -> None:
        go = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send(start())
            await send(body(b"one", more=True))
            await go.wait()
            await send(body(b"two"))

        async with speaking(app) as (client, here):
            stream = client.ask()
            await until(lambda: client.data(stream) == b"one")
            client.h2.state_machine._transitions = {  # as a client that goes on, as all but h2 do
                **client.h2.state_machine._transitions,
                **_GOING_ON,
            }
            here.server.stop()
            await until(lambda: [one for one in client.events if isinstance(one, ConnectionTerminated)])
            go.set()
            assert (await client.answer(stream))[1] == b"onetwo"
            assert await client.ended() == ErrorCodes.NO_ERROR
            await here.server.wait_closed()

    async def test_a_client_that_says_goodbye_gets_the_rest(self) -> None:
        """Node does so when a session is closed while it still waits for answers."""
        go = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send(start())
            await send(body(b"one", more=True))
            await go.wait()
            await send(body(b"two"))

        async with speaking(app) as (client, _):
            stream = client.ask()
            await until(lambda: client.data(stream) == b"one")
            client.writer.write(b"\0\0\x08\x07" + b"\0" * 13)
            await asyncio.sleep(0.05)
            go.set()
            assert (await client.answer(stream))[1] == b"onetwo"

    async def test_an_idle_connection_ends_in_time(self) -> None:
        async with speaking(echo) as (client, here):
            await client.answer(client.ask())
            guest = await guest_of(here)
            guest.look(here.server._house.now + 119)
            guest.look(here.server._house.now + 121)
            assert await client.ended() == ErrorCodes.NO_ERROR

    async def test_a_connection_that_never_asks_anything_ends_sooner(self) -> None:
        async with speaking(echo) as (client, here):
            guest = await guest_of(here)
            guest.look(here.server._house.now + 29)
            assert not guest._goodbye
            guest.look(here.server._house.now + 31)
            assert await client.ended() == ErrorCodes.NO_ERROR

    async def test_garbage_behind_the_first_bytes(self) -> None:
        async with opened(echo) as here:
            answer = await here.ask(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"garbage" * 3_000)
        assert answer[3:4] == b"\x04"  # our settings, and a goodbye


@pytest.mark.parametrize("size", [1, 2, 5, 24, 1000])
def test_a_frame_that_says_it_is_too_long_is_known_before_it_comes(size: int) -> None:
    good = b"x" * 24 + b"\0\0\x02" + b"x" * 8 + b"\0\0\0" + b"x" * 6 + b"\0\x40\0" + b"x" * 16_390
    for data, fits in ((good * 1, True), (good + b"\0\x40\x01", False), (good + b"\x01\0\0", False)):
        lengths = FrameHeads()
        found = [lengths.feed(data[at : at + size]) for at in range(0, len(data), size)]
        assert found[:-1] == [True] * (len(found) - 1)
        assert found[-1] is fits


def test_nobody_loads_http2_who_does_not_speak_it() -> None:
    code = "import sys, dragoman.server.worker; print([name for name in ('h2', 'aiohttp') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def _going_on() -> Any:
    from h2.connection import ConnectionInputs, ConnectionState

    opened_by_us = ConnectionState.CLIENT_OPEN
    return {(opened_by_us, ConnectionInputs.RECV_GOAWAY): (None, opened_by_us)}


_GOING_ON = _going_on()


async def _for_ever(*_: Any) -> None:
    await asyncio.sleep(3600)
