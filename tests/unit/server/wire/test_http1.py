"""HTTP/1.1 on real sockets: framing, order, back-pressure, leaving, and every way to end."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman.config import ServerConfig
from dragoman.server.listen import bind
from dragoman.server.wire import Server
from dragoman.server.wire.house import FIRST_HEAD_S
from dragoman.server.wire.http1 import Http1Connection
from dragoman.server.wire.turn import TURN

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
GET = b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"
LAST_GET = b"GET / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"
MIB = 1024 * 1024


def start(status: int = 200, *headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"type": "http.response.start", "status": status, "headers": [*headers]}


def body(data: bytes = b"", *, more: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": more}


async def whole(receive: Any) -> bytes:
    pieces = []
    while True:
        message = await receive()
        assert message["type"] == "http.request"
        pieces.append(message["body"])
        if not message["more_body"]:
            return b"".join(pieces)


async def echo(scope: Any, receive: Any, send: Any) -> None:
    data = await whole(receive)
    await send(start(200, (b"x-path", scope["path"].encode())))
    await send(body(data))


def says(*messages: dict[str, Any]) -> Any:
    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    return app


class Opened:
    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self.port = port
        self.writers: list[Writer] = []

    async def connect(self) -> tuple[Reader, Writer]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        return reader, writer

    async def ask(self, data: bytes) -> bytes:
        """Everything that comes back until the connection ends."""
        reader, writer = await self.connect()
        writer.write(data)
        async with asyncio.timeout(10):
            return await reader.read()

    async def guest(self) -> Http1Connection:
        await until(lambda: len(self.server._house.guests) == 1)
        (guest,) = self.server._house.guests
        assert isinstance(guest, Http1Connection)
        return guest


@asynccontextmanager
async def opened(app: Any, **settings: Any) -> AsyncIterator[Opened]:
    config = ServerConfig(**settings)
    listener = bind("127.0.0.1", 0, config)
    port = listener.getsockname()[1]
    server = Server(app, listener, config)
    server.start()
    here = Opened(server, port)
    try:
        yield here
    finally:
        for writer in here.writers:
            writer.close()
        await server.abort()


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.01)


async def read_answer(reader: Reader) -> tuple[bytes, bytes]:
    """Head and body of an answer with a length."""
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return head, await reader.readexactly(length)


class TestFraming:
    async def test_an_answer_in_one_piece_has_its_length(self) -> None:
        async with opened(echo) as here:
            reader, writer = await here.connect()
            writer.write(b"POST /a%20b HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\nhi")
            head, said = await read_answer(reader)
        assert said == b"hi"
        assert head.startswith(b"HTTP/1.1 200 OK\r\nx-path: /a b\r\n")
        assert b"\r\ndate: " in head
        assert b"transfer-encoding" not in head

    async def test_a_stream_comes_in_chunks_and_ends(self) -> None:
        app = says(
            start(), body(b"one", more=True), body(b"", more=True), body(b"x" * 100_000, more=True), body()
        )
        async with opened(app) as here:
            answer = await here.ask(GET.replace(b"host", b"connection: close\r\nhost"))
        head, _, chunks = answer.partition(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        assert chunks == b"3\r\none\r\n186a0\r\n" + b"x" * 100_000 + b"\r\n0\r\n\r\n"

    async def test_who_speaks_http_1_0_gets_no_chunks_and_the_end_is_the_end(self) -> None:
        async with opened(says(start(), body(b"one", more=True), body(b"two"))) as here:
            answer = await here.ask(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
        assert answer.endswith(b"\r\n\r\nonetwo")
        assert b"chunked" not in answer
        assert b"keep-alive" not in answer

    async def test_who_speaks_http_1_0_may_stay_where_there_is_a_length(self) -> None:
        async with opened(echo) as here:
            reader, writer = await here.connect()
            for _ in range(2):
                writer.write(b"GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n")
                head, _ = await read_answer(reader)
                assert b"connection: keep-alive" in head

    @pytest.mark.parametrize(
        ("method", "status", "length"),
        [(b"HEAD", 200, True), (b"GET", 204, False), (b"GET", 304, False), (b"HEAD", 404, True)],
    )
    async def test_some_answers_have_no_body_whatever_the_application_says(
        self, method: bytes, status: int, length: bool
    ) -> None:
        async with opened(says(start(status, (b"content-length", b"5")), body(b"hello"))) as here:
            answer = await here.ask(
                GET.replace(b"GET", method).replace(b"host", b"connection: close\r\nhost")
            )
        assert answer.endswith(b"\r\n\r\n")
        assert (b"content-length: 5" in answer) is length

    async def test_pipelined_requests_are_answered_in_their_order(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await asyncio.sleep(0.1 if scope["path"] == "/slow" else 0)
            await echo(scope, receive, send)

        slow = b"POST /slow HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
        last = b"POST /last HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 1\r\n\r\nc"
        async with opened(app) as here:
            answer = await here.ask(slow + GET + last)
        assert [line for line in answer.split(b"\r\n") if line.startswith(b"x-path")] == [
            b"x-path: /slow",
            b"x-path: /",
            b"x-path: /last",
        ]

    async def test_a_proxys_request_names_its_host_in_the_address(self) -> None:
        seen: list[Any] = []

        async def app(scope: Any, _receive: Any, send: Any) -> None:
            seen.append(
                (scope["path"], scope["query_string"], [v for n, v in scope["headers"] if n == b"host"])
            )
            await send(start())
            await send(body())

        async with opened(app) as here:
            for target in (
                b"http://evil.example:1/p/q?a=b",
                b"HTTP://evil.example",
                b"http://evil.example?a",
            ):
                await here.ask(b"GET %b HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n" % target)
        evil = [b"evil.example"]
        assert seen == [("/p/q", b"a=b", [b"evil.example:1"]), ("/", b"", evil), ("/", b"a", evil)]

    @pytest.mark.parametrize(
        "target", [b"localhost:80", b"*", b"a", b"ftp://h/", b"http:///x", b"http://u@h/"]
    )
    async def test_other_addresses_are_refused(self, target: bytes) -> None:
        async with opened(echo) as here:
            assert (await here.ask(b"GET %b HTTP/1.1\r\nhost: h\r\n\r\n" % target)).startswith(
                b"HTTP/1.1 400 "
            )

    async def test_a_header_cannot_begin_another_answer(self) -> None:
        async with opened(says(start(200, (b"x-a", b"b\r\n\r\nHTTP/1.1 200 OK")), body(b"x"))) as here:
            answer = await here.ask(GET)
        assert answer.startswith(b"HTTP/1.1 500 ")
        assert answer.count(b"HTTP/1.1 ") == 1


class TestExpectations:
    HEAD = b"POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"

    async def test_the_word_comes_when_the_body_is_wanted(self) -> None:
        async with opened(echo) as here:
            reader, writer = await here.connect()
            writer.write(self.HEAD)
            assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            writer.write(b"hi")
            assert (await read_answer(reader))[1] == b"hi"

    async def test_who_is_refused_gets_no_word_and_the_connection_ends(self) -> None:
        async with opened(says(start(413), body())) as here:
            answer = await here.ask(self.HEAD)
        assert answer.startswith(b"HTTP/1.1 413 ")

    async def test_who_did_not_wait_needs_no_word(self) -> None:
        async with opened(echo) as here:
            reader, writer = await here.connect()
            writer.write(self.HEAD + b"hi")
            assert (await read_answer(reader))[0].startswith(b"HTTP/1.1 200 ")


class TestFailures:
    """Nobody takes half an answer for a whole one."""

    @pytest.mark.parametrize("error", [ValueError("x"), asyncio.CancelledError()])
    async def test_a_stream_that_fails_has_no_end(self, error: BaseException) -> None:
        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send(start())
            await send(body(b"half", more=True))
            raise error

        async with opened(app) as here:
            assert (await here.ask(GET)).endswith(b"\r\n\r\n4\r\nhalf\r\n")

    async def test_without_a_frame_only_a_reset_tells(self) -> None:
        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send(start())
            await send(body(b"half", more=True))
            await asyncio.sleep(0.05)
            raise ValueError

        async with opened(app) as here:
            with pytest.raises(ConnectionResetError):
                await here.ask(b"GET / HTTP/1.0\r\n\r\n")

    async def test_an_application_that_never_answers_is_a_500(self) -> None:
        async with opened(says()) as here:
            assert (await here.ask(GET)).startswith(b"HTTP/1.1 500 ")

    @pytest.mark.parametrize("length", [b"3", b"10"])
    async def test_an_answer_that_is_not_as_long_as_it_says_ends_the_connection(self, length: bytes) -> None:
        app = says(start(200, (b"content-length", length)), body(b"he", more=True), body(b"llo"))
        async with opened(app) as here:
            answer = await here.ask(GET + GET)
        assert answer.count(b"HTTP/1.1 ") == 1

    async def test_a_body_that_breaks_off_is_told_to_the_application_and_may_be_answered(self) -> None:
        async def app(_scope: Any, receive: Any, send: Any) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            await send(start(400))
            await send(body(b"cut"))

        async with opened(app) as here:
            head = b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"
            reader, writer = await here.connect()
            writer.write(head)
            await until(lambda: here.server._house.tasks)
            writer.write(b"3\r\nabc\r\nzz\r\n" + GET)
            broken = await reader.read()
            reader, writer = await here.connect()
            writer.write(head)
            writer.write_eof()
            half = await reader.read()
        for answer in (broken, half):
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert answer.endswith(b"\r\n\r\ncut")
            assert b"connection: close" in answer


class TestBodyAtOnce:
    @pytest.mark.parametrize(
        "framing",
        [b"content-length: 3\r\n\r\nabc", b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"],
    )
    async def test_what_is_here_is_given_once_and_whole(self, framing: bytes) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            take = scope["extensions"][TURN].take_body
            taken, again = take(), take()
            waiting = asyncio.ensure_future(receive())  # the body is over: nothing comes but the end
            await asyncio.sleep(0.02)
            assert not waiting.done()
            waiting.cancel()
            await send(start())
            await send(body(taken + repr(again).encode()))

        async with opened(app) as here:
            answer = await here.ask(b"POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\n" + framing)
        assert answer.endswith(b"\r\n\r\nabcNone")

    async def test_what_is_not_all_here_is_received(self) -> None:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            taken = scope["extensions"][TURN].take_body()
            await send(start())
            await send(body(repr(taken).encode() + await whole(receive)))

        async with opened(app) as here:
            reader, writer = await here.connect()
            writer.write(b"POST / HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-length: 6\r\n\r\nabc")
            await until(lambda: here.server._house.tasks)
            await asyncio.sleep(0.02)
            writer.write(b"def")
            assert (await reader.read()).endswith(b"\r\n\r\nNoneabcdef")

    async def test_of_one_who_has_gone_nothing_is_given(self) -> None:
        taken: list[bytes | None] = []

        async def app(scope: Any, _receive: Any, _send: Any) -> None:
            gone = asyncio.Event()
            scope["extensions"][TURN].tell_leaving(gone.set)
            await gone.wait()
            taken.append(scope["extensions"][TURN].take_body())

        async with opened(app) as here:
            _, writer = await here.connect()
            writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 3\r\n\r\nabc")
            await until(lambda: here.server._house.tasks)
            writer.close()
            await until(lambda: taken)
        assert taken == [None]


class TestLeaving:
    @pytest.mark.parametrize("leave", ["close", "write_eof", "reset"])
    async def test_the_application_is_told_at_once(self, leave: str) -> None:
        told = asyncio.Event()

        async def app(scope: Any, receive: Any, _send: Any) -> None:
            await whole(receive)
            scope["extensions"][TURN].tell_leaving(told.set)
            assert (await receive())["type"] == "http.disconnect"

        async with opened(app) as here:
            _, writer = await here.connect()
            writer.write(GET)
            await until(lambda: here.server._house.tasks)
            await asyncio.sleep(0.02)
            {"close": writer.close, "write_eof": writer.write_eof, "reset": writer.transport.abort}[leave]()
            async with asyncio.timeout(5):
                await told.wait()
            await until(lambda: not here.server._house.guests and not here.server._house.tasks)

    async def test_who_asks_too_late_is_told_too(self) -> None:
        told = asyncio.Event()

        async def app(scope: Any, receive: Any, _send: Any) -> None:
            await whole(receive)
            assert (await receive())["type"] == "http.disconnect"
            scope["extensions"][TURN].tell_leaving(told.set)
            assert not told.is_set()  # never in the middle of what it does
            await told.wait()

        async with opened(app) as here:
            _, writer = await here.connect()
            writer.write(GET)
            await until(lambda: here.server._house.tasks)
            writer.close()
            async with asyncio.timeout(5):
                await told.wait()

    async def test_what_was_taken_back_is_not_told(self) -> None:
        told: list[str] = []
        ended = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope["extensions"][TURN].tell_leaving(lambda: told.append("left"))
            scope["extensions"][TURN].tell_leaving(None)
            await echo(scope, receive, send)
            ended.set()

        async with opened(app) as here:
            _, writer = await here.connect()
            writer.write(GET)
            await ended.wait()
            writer.close()
            await until(lambda: not here.server._house.guests)
        assert told == []

    async def test_what_is_sent_to_nobody_is_lost_without_a_word(self) -> None:
        done = asyncio.Event()

        async def app(_scope: Any, receive: Any, send: Any) -> None:
            await whole(receive)
            assert (await receive())["type"] == "http.disconnect"
            await send(start())
            for _ in range(100):
                await send(body(b"x" * MIB, more=True))
            await send(body())
            done.set()

        async with opened(app) as here:
            _, writer = await here.connect()
            writer.write(GET)
            await until(lambda: here.server._house.tasks)
            writer.close()
            async with asyncio.timeout(5):
                await done.wait()


class TestPressure:
    async def test_a_slow_reader_holds_little_of_ours(self) -> None:
        sent = 0

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            nonlocal sent
            await send(start())
            for _ in range(2_000):
                await send(body(b"x" * 16_000, more=True))
                sent += 1
            await send(body())

        async with opened(app) as here:
            reader, writer = await here.connect()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(GET.replace(b"host", b"connection: close\r\nhost"))
            guest = await here.guest()
            await until(lambda: guest.is_full)
            stopped = sent
            await asyncio.sleep(0.1)
            assert sent == stopped < 2_000
            assert guest.transport.get_write_buffer_size() <= 128 * 1024
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            assert (await reader.read()).count(b"x") == 2_000 * 16_000

    async def test_a_body_that_nobody_takes_makes_its_sender_wait(self) -> None:
        take = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await take.wait()
            await echo(scope, receive, send)

        async with opened(app) as here:
            reader, writer = await here.connect()
            writer.write(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % (20 * MIB))
            writer.write(b"x" * 20 * MIB)
            guest = await here.guest()
            await until(lambda: guest._held)
            assert guest._turn is not None
            assert guest._turn.untaken < MIB
            take.set()
            assert len((await read_answer(reader))[1]) == 20 * MIB

    async def test_requests_that_wait_do_not_pile_up(self) -> None:
        go = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await go.wait()
            await echo(scope, receive, send)

        async with opened(app) as here:
            reader, writer = await here.connect()
            number = 200_000
            writer.write(GET * number)
            guest = await here.guest()
            await until(lambda: guest._held)
            assert len(guest._reader.rest) < MIB
            assert len(here.server._house.tasks) == 1
            go.set()
            for _ in range(200):
                await read_answer(reader)

    async def test_more_connections_than_allowed_wait_until_one_leaves(self) -> None:
        go = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            if scope["path"] == "/busy":
                await go.wait()
            await echo(scope, receive, send)

        async with opened(app, max_connections=2) as here:
            kept = [await here.connect() for _ in range(2)]
            for _, writer in kept:
                writer.write(b"GET /busy HTTP/1.1\r\nhost: h\r\n\r\n")
            await until(lambda: len(here.server._house.tasks) == 2)
            reader, writer = await here.connect()
            writer.write(GET)
            await asyncio.sleep(0.1)
            assert len(here.server._house.tasks) == 2
            kept[0][1].close()
            assert (await read_answer(reader))[0].startswith(b"HTTP/1.1 200 ")
            go.set()

    async def test_who_keeps_others_out_and_has_asked_nothing_makes_room_for_them(self) -> None:
        async with opened(echo, max_connections=8) as here:
            asked = await here.connect()
            asked[1].write(GET)
            await read_answer(asked[0])
            silent = [await here.connect() for _ in range(7)]
            for at, (_, writer) in enumerate(silent):
                writer.write(
                    (b"", b"GET /healthz HTTP/1.1\r\nhost: loc", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")[at % 3]
                )
            await until(lambda: len(here.server._house.guests) == 8)
            for number in range(3):
                assert (await here.ask(LAST_GET)).startswith(b"HTTP/1.1 200 ")
                await until(lambda number=number: len(here.server._house.guests) == 7)  # type: ignore[misc]
                silent.append(await here.connect())
                await until(lambda: len(here.server._house.guests) == 8)
            asked[1].write(GET)
            await read_answer(asked[0])  # who has asked stays

    async def test_of_those_who_have_asked_one_goes_that_was_idle_for_a_while(self) -> None:
        async with opened(echo, max_connections=2) as here:
            both = [await here.connect() for _ in range(2)]
            for reader, writer in both:
                writer.write(GET)
                await read_answer(reader)
            reader, writer = await here.connect()
            writer.write(GET)
            await asyncio.sleep(0.1)
            assert len(here.server._house.guests) == 2  # they may be about to ask again
            here.server._look()
            assert (await read_answer(reader))[0].startswith(b"HTTP/1.1 200 ")
            assert await both[0][0].read() == b""
            both[1][1].write(GET)
            await read_answer(both[1][0])


class TestTime:
    """Nobody has to wait for it here: the server looks at its connections with a clock that we move."""

    @pytest.mark.parametrize(
        "said", [b"", b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r"], ids=["nothing", "a byte", "almost"]
    )
    async def test_slowloris_without_a_request_is_hung_up_on(self, said: bytes) -> None:
        async with opened(echo) as here:
            reader, writer = await here.connect()
            writer.write(said)
            await until(lambda: len(here.server._house.guests) == 1)
            await asyncio.sleep(0.05)
            now = here.server._house.now
            await self.pass_time(here, now + FIRST_HEAD_S - 1)
            assert here.server._house.guests
            await self.pass_time(here, now + 121)
            async with asyncio.timeout(5):
                await reader.read()

    async def test_who_has_asked_once_may_be_silent_for_as_long_as_the_settings_say(self) -> None:
        async with opened(echo) as here:
            reader, writer = await here.connect()
            writer.write(GET)
            await read_answer(reader)
            guest = await here.guest()
            now = here.server._house.now
            for second, stays in ((31, True), (119, True), (121, False)):
                guest.look(now + second)
                await asyncio.sleep(0.02)
                assert bool(here.server._house.guests) is stays

    @pytest.mark.parametrize(("served", "limit_s"), [(True, 120), (False, FIRST_HEAD_S)])
    async def test_headers_that_stop_coming_have_as_long_but_not_the_first(
        self, served: bool, limit_s: float
    ) -> None:
        async with opened(echo) as here:
            reader, writer = await here.connect()
            if served:
                writer.write(GET)
                await read_answer(reader)
            writer.write(b"GET /a/longer/path HTTP/1.1\r\nhost: h\r\n")
            guest = await here.guest()
            await until(lambda: guest._reader.begun_bytes)
            now = here.server._house.now
            for second, stays in ((limit_s - 1, True), (limit_s + 1, False)):
                guest.look(now + second)
                await asyncio.sleep(0.02)
                assert bool(here.server._house.guests) is stays

    @pytest.mark.skipif(sys.platform != "linux", reason="other kernels are not asked")
    async def test_who_has_asked_too_far_ahead_and_leaves_is_noticed_with_a_look(self) -> None:
        """It is not read from, so nobody says so."""
        told = asyncio.Event()

        async def app(scope: Any, _receive: Any, _send: Any) -> None:
            scope["extensions"][TURN].tell_leaving(told.set)
            await told.wait()

        async with opened(app) as here:
            _, writer = await here.connect()
            writer.write(GET)
            guest = await here.guest()
            await until(lambda: guest._turn)
            writer.write(GET * 1_000)
            await until(lambda: guest._held)
            guest.look(here.server._house.now)
            await asyncio.sleep(0.02)
            assert not told.is_set()
            writer.close()
            await until(guest.has_left)
            guest.look(here.server._house.now)
            async with asyncio.timeout(5):
                await told.wait()

    async def test_a_connection_that_cannot_be_looked_at_takes_no_time_from_the_others(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        async with opened(echo) as here:
            for _ in range(3):
                await here.connect()
            await until(lambda: len(here.server._house.guests) == 3)
            broken, *others = here.server._house.guests
            looked: list[object] = []

            def look(guest: Http1Connection, _now: float) -> None:
                if guest is broken:
                    raise ValueError
                looked.append(guest)

            monkeypatch.setattr(Http1Connection, "look", look)
            before = here.server._looking
            here.server._look()
            assert (set(looked), here.server._looking is before) == ({*others}, False)
            await until(lambda: broken not in here.server._house.guests)
            assert "could not be looked at" in caplog.text
            assert before is not None
            before.cancel()

    async def test_an_answer_may_take_for_ever_to_be_thought_of(self) -> None:
        async def app(_scope: Any, receive: Any, _send: Any) -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        async with opened(app) as here:
            _, writer = await here.connect()
            writer.write(GET)
            guest = await here.guest()
            await until(lambda: here.server._house.tasks)
            guest.look(here.server._house.now + 10_000)
            await asyncio.sleep(0.02)
            assert here.server._house.guests

    async def test_a_reader_who_takes_a_little_is_not_given_up(self) -> None:
        async with opened(says(start(), body(b"x" * 30 * MIB))) as here:
            reader, writer = await here.connect()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writer.write(GET)
            guest = await here.guest()
            await until(lambda: guest.is_full)
            await asyncio.sleep(0.1)
            now = here.server._house.now
            guest.look(now)
            writer.transport.resume_reading()  # type: ignore[attr-defined]
            await reader.readexactly(5 * MIB)
            guest.look(now + 299)
            guest.look(now + 301)
            assert not guest.transport.is_closing()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            await asyncio.sleep(0.1)
            guest.look(now + 302)
            guest.look(now + 700)
            assert guest.transport.is_closing()

    async def pass_time(self, here: Opened, now: float) -> None:
        for guest in [*here.server._house.guests]:
            guest.look(now)
        await asyncio.sleep(0.02)


class TestStopping:
    async def test_idle_connections_end_and_running_answers_finish(self) -> None:
        go = asyncio.Event()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await go.wait()
            await echo(scope, receive, send)

        async with opened(app) as here:
            idle, _ = await here.connect()
            reader, writer = await here.connect()
            writer.write(GET)
            await until(lambda: here.server._house.tasks)
            here.server.stop()
            assert await idle.read() == b""
            with pytest.raises(ConnectionRefusedError):
                await here.connect()
            go.set()
            assert b"connection: close" in (await read_answer(reader))[0]
            assert await reader.read() == b""
            async with asyncio.timeout(5):
                await here.server.wait_closed()

    async def test_an_answer_that_had_begun_is_the_last_one_of_its_connection(self) -> None:
        go = asyncio.Event()

        async def app(_scope: Any, _receive: Any, send: Any) -> None:
            await send(start())
            await send(body(b"one", more=True))
            await go.wait()
            await send(body(b"two"))

        async with opened(app) as here:
            reader, writer = await here.connect()
            writer.write(GET)
            await reader.readuntil(b"one")
            here.server.stop()
            go.set()
            async with asyncio.timeout(5):
                assert (await reader.read()).endswith(b"two\r\n0\r\n\r\n")
                await here.server.wait_closed()

    async def test_whom_the_kernel_has_let_in_is_answered(self) -> None:
        async with opened(echo, max_connections=1) as here:
            await here.connect()
            await here.guest()
            reader, writer = await here.connect()  # waits in the backlog
            writer.write(GET)
            here.server._house.settings = ServerConfig()
            here.server._settings = ServerConfig()
            here.server.stop()
            assert b"connection: close" in (await read_answer(reader))[0]

    async def test_aborting_leaves_nothing(self) -> None:
        app: Callable[..., Awaitable[None]] = _for_ever
        async with opened(app) as here:
            for _ in range(3):
                _, writer = await here.connect()
                writer.write(GET)
            await until(lambda: len(here.server._house.tasks) == 3)
            await here.server.abort()
            assert not here.server._house.tasks
            assert not here.server._house.guests


async def _for_ever(*_: Any) -> None:
    await asyncio.sleep(3600)
