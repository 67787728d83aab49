"""The emulator's own server: connections live, end and break exactly as the answers say."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.http_messages import (
    CloseConnection,
    ConnectionAction,
    HttpRequest,
    HttpResponse,
    RefuseConnections,
    Wait,
)
from dragoman.emulator.http_server import _MAX_UNPARSED_BYTES, EmulatorServer, ServerThread, serve_in_thread
from dragoman.emulator.service import EmulatorService
from tests.unit.emulator.builders import MODEL, hello

Reader = asyncio.StreamReader
Writer = asyncio.StreamWriter
GET = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"


def text(*acts: ConnectionAction, **more: Any) -> HttpResponse:
    return HttpResponse(status=200, content_type="text/plain", actions=acts, **more)


def by_path(**answers: HttpResponse) -> Callable[[HttpRequest], HttpResponse]:
    return lambda question: answers[question.path.strip("/") or "root"]


@asynccontextmanager
async def connected(
    answer: Callable[[HttpRequest], HttpResponse], **options: Any
) -> AsyncIterator[tuple[Reader, Writer, EmulatorServer, int]]:
    listener = EmulatorServer(answer, **options)
    port = int((await listener.start()).rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer, listener, port
    finally:
        writer.close()
        await listener.close()


async def read_answer(reader: Reader) -> tuple[int, dict[str, str], bytes]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in head[1:] if line)
    if "content-length" in fields:
        body = await reader.readexactly(int(fields["content-length"]))
    elif fields.get("transfer-encoding") == "chunked":
        body = b"".join([chunk async for chunk in read_chunks(reader)])
    else:
        body = await reader.read()
    return int(head[0].split()[1]), fields, body


async def read_chunks(reader: Reader) -> AsyncIterator[bytes]:
    while size := int(await reader.readline(), 16):
        yield (await reader.readexactly(size + 2))[:-2]
    await reader.readexactly(2)


async def test_a_connection_serves_many_requests() -> None:
    async with connected(by_path(root=text(b"one"))) as (reader, writer, _, _):
        for _ in range(3):
            writer.write(GET)
            status, fields, body = await read_answer(reader)
            assert (status, body, fields["connection"]) == (200, b"one", "keep-alive")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"host: localhost:8378", 200),
        (b"host: [::1]:8378", 200),
        (b"host: 127.0.0.1", 200),
        (b"host: generativelanguage.googleapis.com", 200),
        (b"host: evil.example", 403),
        (b"host: googleapis.com.evil.example", 403),
        (b"host: [::1", 200),
        (b"host: ", 403),
        (b"host: localhost\r\norigin: https://evil.example", 403),
        (b"host: localhost\r\nsec-fetch-site: cross-site", 403),
        (b"host: localhost\r\nsec-fetch-site: none", 200),
    ],
)
async def test_q8_web_pages_and_names_made_to_point_here_are_refused(fields: bytes, status: int) -> None:
    async with connected(by_path(root=text(b"one"))) as (reader, writer, _, _):
        writer.write(b"GET / HTTP/1.1\r\n%b\r\n\r\n" % fields)
        assert (await read_answer(reader))[0] == status


async def test_pipelined_requests_are_answered_in_their_order() -> None:
    seen: list[str] = []

    def answer(question: HttpRequest) -> HttpResponse:
        seen.append(question.path)
        return text(Wait(0.01), question.path.encode())

    async with connected(answer) as (reader, writer, _, _):
        paths = [f"/{number}".encode() for number in range(40)]
        writer.write(b"".join(GET.replace(b" / ", b" %b " % path) for path in paths))
        assert [(await read_answer(reader))[2] for _ in paths] == paths
    assert seen == [path.decode() for path in paths]


async def test_each_piece_of_a_stream_is_a_chunk_and_an_empty_one_ends_nothing() -> None:
    stream = text(b"one", b"", Wait(0.001), b"two", streamed=True)
    async with connected(by_path(root=stream)) as (reader, writer, _, _):
        writer.write(GET)
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"transfer-encoding: chunked" in head
        assert b"content-length" not in head
        assert [chunk async for chunk in read_chunks(reader)] == [b"one", b"two"]


async def test_a_piece_arrives_before_the_wait_behind_it() -> None:
    async with connected(by_path(root=text(b"one", Wait(3600), b"two", streamed=True))) as (
        reader,
        writer,
        _,
        _,
    ):
        writer.write(GET)
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(8) == b"3\r\none\r\n"


async def test_a_client_that_leaves_ends_the_wait_at_once() -> None:
    async with connected(by_path(root=text(b"x", actions_before_head=(Wait(3600),)))) as (
        _,
        writer,
        listener,
        _,
    ):
        writer.write(GET)
        await until(lambda: [c for c in listener._state.connections if not c.idle])
        writer.close()
        await until(lambda: not listener._state.connections)


async def test_a_client_that_only_stops_sending_gets_its_answer() -> None:
    async with connected(by_path(root=text(b"late"))) as (reader, writer, _, _):
        writer.write(GET)
        writer.write_eof()
        assert (await reader.read()).endswith(b"\r\n\r\nlate")


async def test_an_old_client_gets_a_stream_until_the_connection_ends() -> None:
    async with connected(by_path(root=text(b"one", b"two", streamed=True))) as (reader, writer, _, _):
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        status, fields, body = await read_answer(reader)
        assert (status, body, fields["connection"]) == (200, b"onetwo", "close")


async def test_an_old_client_is_told_of_a_cut_by_a_reset() -> None:
    async with connected(by_path(root=text(b"one", CloseConnection(), streamed=True))) as (
        reader,
        writer,
        _,
        _,
    ):
        writer.write(b"GET / HTTP/1.0\r\n\r\n")
        with pytest.raises(ConnectionResetError):
            await read_answer(reader)


async def test_head_has_the_head_only() -> None:
    async with connected(by_path(root=text(b"12345"))) as (reader, writer, _, _):
        writer.write(GET.replace(b"GET", b"HEAD") + GET)
        assert b"content-length: 5\r\n" in await reader.readuntil(b"\r\n\r\n")
        assert (await reader.read(8)) == b"HTTP/1.1"


async def test_a_client_that_expects_a_continue_gets_it_in_its_turn() -> None:
    head = b"POST /b HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    async with connected(by_path(root=text(Wait(0.01), b"a"), b=text(b"b"))) as (reader, writer, _, _):
        writer.write(GET + head)
        assert (await read_answer(reader))[2] == b"a"
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"hi")
        assert (await read_answer(reader))[2] == b"b"


async def test_paths_queries_and_headers_arrive_as_meant() -> None:
    seen: list[HttpRequest] = []

    def answer(question: HttpRequest) -> HttpResponse:
        seen.append(question)
        return text()

    async with connected(answer) as (reader, writer, _, _):
        for target in (
            b"/v1/a%3Ab%20c?alt=sse&key=k1&key=k2",
            b"http://h:1/v1/x?",
            b"//odd",
            b"*",
            b"http://h",
        ):
            writer.write(
                b"GET %b HTTP/1.1\r\nhost: localhost\r\nUser-Agent: a\r\nUser-Agent: b\r\n\r\n" % target
            )
            await read_answer(reader)
    first = seen[0]
    assert (first.path, first.alt, first.key) == ("/v1/a:b c", "sse", "k2")
    assert first.headers["user-agent"] == "a, b"
    assert [question.path for question in seen[1:]] == ["/v1/x", "//odd", "*", "/"]


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    "acts", [(b"par", CloseConnection(), b"tial"), (b"par", CloseConnection())], ids=["middle", "end"]
)
async def test_a_cut_is_never_a_complete_message(acts: tuple[ConnectionAction, ...], streamed: bool) -> None:
    async with connected(by_path(root=text(*acts, streamed=streamed))) as (reader, writer, _, _):
        writer.write(GET)
        with pytest.raises((asyncio.IncompleteReadError, ValueError)):
            await read_answer(reader)


async def test_a_cut_before_the_head_says_nothing() -> None:
    async with connected(by_path(root=text(b"x", actions_before_head=(CloseConnection(),)))) as (
        reader,
        writer,
        _,
        _,
    ):
        writer.write(GET)
        assert await reader.read() == b""


@pytest.mark.parametrize(
    "answer",
    [
        text(b"x", actions_before_head=(CloseConnection(reset=True),)),
        text(b"x", CloseConnection(reset=True), b"y", streamed=True),
    ],
    ids=["before", "in the middle"],
)
async def test_a_reset_is_a_reset(answer: HttpResponse) -> None:
    async with connected(by_path(root=answer)) as (reader, writer, _, _):
        writer.write(GET)
        if answer.streamed:
            await reader.readuntil(b"1\r\nx\r\n")
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_refused_connections_come_back_on_the_same_port() -> None:
    answers = by_path(away=text(actions_before_head=(RefuseConnections(0.2),)), root=text(b"here"))
    async with connected(answers) as (reader, writer, _, port):
        idle_reader, idle_writer = await asyncio.open_connection("127.0.0.1", port)
        idle_writer.write(GET)
        await read_answer(idle_reader)
        writer.write(GET.replace(b" / ", b" /away "))
        with pytest.raises(ConnectionResetError):
            await reader.read()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await idle_reader.readexactly(1)
        idle_writer.close()
        again, back = await until_connected(port)
        back.write(GET)
        assert (await read_answer(again))[2] == b"here"
        back.close()


async def test_a_listener_that_is_away_can_be_closed() -> None:
    listener = EmulatorServer(by_path(root=text()))
    await listener.start()
    await listener.refuse_connections(3600)
    await listener.refuse_connections(3600)
    await listener.close()


async def test_connections_that_are_just_ending_can_be_closed() -> None:
    listener = EmulatorServer(by_path(root=text(b"x")))
    port = int((await listener.start()).rpartition(":")[2])
    clients = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    for reader, writer in clients:
        writer.write(GET.replace(b"host", b"connection: close\r\nhost"))
        await reader.readuntil(b"x")
    await listener.close()
    for _, writer in clients:
        writer.close()


async def test_a_malformed_request_is_a_400_and_the_end() -> None:
    async with connected(by_path(root=text(b"x"))) as (reader, writer, _, _):
        writer.write(GET + b"nonsense\r\n\r\n" + GET)
        assert (await read_answer(reader))[0] == 200
        status, fields, body = await read_answer(reader)
        assert (status, fields["connection"]) == (400, "close")
        assert body == b"Invalid method encountered\n"
        assert await reader.read() == b""


def test_a_client_that_sends_too_much_may_finish_and_still_reads_why() -> None:
    with socket.create_connection(("127.0.0.1", fuzzed_port())) as client:
        client.sendall(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 999999999\r\n\r\n")
        for _ in range(50):
            client.sendall(b"x" * 65_536)
        answered = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answered.startswith(b"HTTP/1.1 413 ")
    assert answered.endswith(b"\r\n\r\nthe body is longer than 104857600 bytes\n")


async def test_a_flood_of_pipelined_requests_stops_the_reading() -> None:
    async with connected(by_path(root=text(Wait(3600), b"x"))) as (_, writer, listener, _):
        writer.write(GET)
        (connection,) = await until(lambda: [c for c in listener._state.connections if not c.idle])
        writer.write(GET * 1_000_000)
        await until(lambda: not connection._transport.is_reading())
        parser = connection._parser
        waiting = parser.unparsed_bytes
        assert _MAX_UNPARSED_BYTES < waiting <= _MAX_UNPARSED_BYTES + 256 * 1024  # what asyncio reads at once
        await asyncio.sleep(0.05)
        assert (parser.unparsed_bytes, len(parser._events)) == (waiting, 0)


async def test_reading_goes_on_after_a_flood() -> None:
    number = 20_000
    async with connected(by_path(root=text(b"x"))) as (reader, writer, listener, _):
        writer.write(GET * number)
        for _ in range(number):
            assert (await read_answer(reader))[2] == b"x"
        (connection,) = listener._state.connections
        await until(lambda: connection.idle)
        assert connection._transport.is_reading()


async def test_an_upgrade_is_answered_with_http_1() -> None:
    upgrade = b"connection: upgrade\r\nupgrade: h2c\r\ncontent-length: 4\r\nhost"
    async with connected(lambda question: text(question.body)) as (reader, writer, _, _):
        writer.write(GET.replace(b"host", upgrade, 1) + b"body" + GET)
        assert [(await read_answer(reader))[::2] for _ in range(2)] == [(200, b"body"), (200, b"")]


async def test_http_2_gets_a_505() -> None:
    async with connected(by_path(root=text(b"x"))) as (reader, writer, _, _):
        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        status, fields, body = await read_answer(reader)
        assert (status, fields["connection"], body) == (505, "close", b"the emulator speaks HTTP/1.1\n")


async def test_a_connection_accepted_in_the_moment_of_closing_is_closed_too() -> None:
    listener = EmulatorServer(by_path(root=text()))
    port = int((await listener.start()).rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)):
        assert listener._socket is not None
        listener._accept(listener._socket)
        await listener.close()
        assert not listener._accepting
        assert not listener._state.connections


async def test_a_slow_reader_holds_the_answer_back() -> None:
    piece = b"x" * 1_000
    answer = text(*[piece] * 20_000, streamed=True)
    async with connected(by_path(root=answer)) as (reader, writer, listener, _):
        writer.write(GET)
        (connection,) = listener._state.connections
        await until(lambda: not connection._writable.is_set())
        assert connection._transport.get_write_buffer_size() <= len(piece) + 20
        await reader.readuntil(b"\r\n\r\n")
        assert len(b"".join([chunk async for chunk in read_chunks(reader)])) == 20_000 * len(piece)


async def test_a_mistake_of_a_director_is_told_in_the_answer() -> None:
    def broken(_: HttpRequest) -> HttpResponse:
        raise ZeroDivisionError("by zero")

    async with connected(broken) as (reader, writer, _, _):
        writer.write(GET)
        status, _, body = await read_answer(reader)
        assert status == 500
        assert json.loads(body)["error"]["message"] == "emulator: ZeroDivisionError: by zero"
        writer.write(GET)
        assert (await read_answer(reader))[0] == 500


async def test_the_access_line_has_no_key() -> None:
    lines: list[str] = []
    async with connected(by_path(x=text()), on_access=lines.append) as (reader, writer, _, _):
        writer.write(b"GET /x?key=secret HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await read_answer(reader)
    assert lines == ["GET /x 200"]


def test_the_emulator_in_a_thread_answers_and_leaves_nothing_behind() -> None:
    before = threading.active_count()
    with serve_in_thread(EmulatorService("test").handle) as base_url:
        request = urllib.request.Request(
            f"{base_url}/v1beta/models/{MODEL}:generateContent",
            json.dumps(hello()).encode(),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request) as response:
            assert json.load(response)["candidates"]
        idle = http.client.HTTPConnection(base_url.removeprefix("http://"))
        idle.request("GET", "/v1beta/models")
        assert idle.getresponse().read()
    assert threading.active_count() == before
    idle.close()
    with pytest.raises(OSError):
        urllib.request.urlopen(request)


def test_a_waiting_answer_does_not_hold_up_the_end() -> None:
    thread = ServerThread(EmulatorServer(by_path(root=text(b"x", actions_before_head=(Wait(3600),)))))
    port = int(thread.start().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(GET)
        thread.stop()
        assert not thread._thread.is_alive()
    thread.stop()


def test_a_port_in_use_is_said_to_whoever_starts_the_thread() -> None:
    with serve_in_thread(by_path(root=text())) as base_url:
        thread = ServerThread(EmulatorServer(by_path(root=text()), port=int(base_url.rpartition(":")[2])))
        with pytest.raises(OSError, match="in use"):
            thread.start()
        assert not thread._thread.is_alive()


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=120), st.booleans())
def test_whatever_is_sent_the_server_lives_and_answers_well(data: bytes, half: bool) -> None:
    raw = GET[:-2] + data if half else data
    with socket.create_connection(("127.0.0.1", fuzzed_port())) as client:
        client.sendall(raw + b"\r\n\r\n")
        client.shutdown(socket.SHUT_WR)
        answered = b"".join(iter(lambda: client.recv(65_536), b""))
    assert answered == b"" or answered.startswith(b"HTTP/1.1 ")
    with urllib.request.urlopen(f"http://127.0.0.1:{fuzzed_port()}/") as response:
        assert response.read() == b"alive"


_fuzzed: list[int] = []


def fuzzed_port() -> int:
    return _fuzzed[0]


@pytest.fixture(autouse=True, scope="module")
def _fuzzed_server() -> Any:
    with serve_in_thread(lambda _: text(b"alive")) as base_url:
        _fuzzed.append(int(base_url.rpartition(":")[2]))
        yield
    _fuzzed.clear()


@pytest.fixture(autouse=True)
def _nothing_goes_wrong_unseen(caplog: pytest.LogCaptureFixture) -> Any:
    yield
    assert caplog.records == []


async def until(condition: Callable[[], Any]) -> Any:
    while not (result := condition()):
        await asyncio.sleep(0.005)
    return result


async def until_connected(port: int) -> tuple[Reader, Writer]:
    while True:
        try:
            return await asyncio.open_connection("127.0.0.1", port)
        except ConnectionRefusedError:
            await asyncio.sleep(0.02)
