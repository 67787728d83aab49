"""httptools and h11 read the raw bytes of the emulator's HTTP responses."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

import h11
import httptools
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.http_messages import HttpResponse
from dragoman.emulator.http_server import serve_in_thread

BODY = b'{"text": "\xc3\xa4\r\n\r\n0\r\n"}'
ANSWERS = {
    "whole": HttpResponse(status=200, actions=(BODY,)),
    "empty": HttpResponse(status=200),
    "error": HttpResponse(status=429, headers=(("retry-after", "3"),), actions=(b"wait",)),
    "unknown status": HttpResponse(status=599, actions=(b"odd",)),
    "streamed": HttpResponse(
        status=200, content_type="text/event-stream", actions=(b"data: 1\n\n", b"", BODY), streamed=True
    ),
    "streamed, empty": HttpResponse(status=200, actions=(b"",), streamed=True),
    "large chunk": HttpResponse(status=200, actions=(b"x" * 70_000,), streamed=True),
    "repeated header": HttpResponse(
        status=200, headers=(("x-a", "1"), ("x-a", "two, three")), actions=(b"y",)
    ),
}


class Response(msgspec.Struct, frozen=True):
    """A response as one of the parsers understood it."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    keep_alive: bool


class HttptoolsResponse:
    """Collects the callbacks of httptools."""

    def __init__(self) -> None:
        self.headers: list[tuple[str, str]] = []
        self.body = b""
        self.complete = False

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.decode("ascii").lower(), value.decode("latin-1")))

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.complete = True


def read_httptools(raw: bytes, method: str) -> Response:
    """HEAD cannot be announced to httptools: feed it the head alone and expect no body behind it."""
    collected = HttptoolsResponse()
    parser = httptools.HttpResponseParser(collected)
    if method == "HEAD":
        head, end, rest = raw.partition(b"\r\n\r\n")
        assert not rest
        raw = head + end
    parser.feed_data(raw)
    unframed = not {"content-length", "transfer-encoding"} & dict(collected.headers).keys()
    assert collected.complete or method == "HEAD" or unframed
    status, keep_alive = parser.get_status_code(), parser.should_keep_alive()
    return Response(status, tuple(collected.headers), collected.body, keep_alive)


def read_h11(raw: bytes, method: str) -> Response:
    connection = h11.Connection(h11.CLIENT)
    connection.send(h11.Request(method=method, target="/", headers=[("host", "h")]))
    connection.send(h11.EndOfMessage())
    connection.receive_data(raw)
    connection.receive_data(b"")
    response = connection.next_event()
    assert isinstance(response, h11.Response)
    body = b""
    while isinstance(event := connection.next_event(), h11.Data):
        body += event.data
    assert isinstance(event, h11.EndOfMessage)
    assert connection.trailing_data[0] == b""
    headers = tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in response.headers)
    return Response(response.status_code, headers, body, connection.their_state is not h11.MUST_CLOSE)


JUDGES: list[Callable[[bytes, str], Response]] = [read_httptools, read_h11]


def exchange(answer: HttpResponse, request: bytes) -> bytes:
    """The raw response; the request ends the connection, so the bytes end with it."""
    with serve_in_thread(lambda _: answer) as url:
        port = int(url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
            client.sendall(request)
            return b"".join(iter(lambda: client.recv(65536), b""))


@pytest.mark.parametrize("judge", JUDGES)
@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD"])
@pytest.mark.parametrize("name", ANSWERS)
def test_a_response_is_read_as_it_was_meant(judge: Any, version: str, method: str, name: str) -> None:
    answer = ANSWERS[name]
    raw = exchange(
        answer, f"{method} / HTTP/{version}\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode()
    )
    response = judge(raw, method)
    assert (response.status, response.body) == (answer.status, b"" if method == "HEAD" else answer.body)
    assert not response.keep_alive
    framing = ("content-length", "transfer-encoding", "connection")
    assert [one for one in response.headers if one[0] not in framing] == [
        ("content-type", answer.content_type),
        *answer.headers,
    ]
    if version == "1.0":
        assert "transfer-encoding" not in dict(response.headers), "HTTP/1.0 knows no chunks"


@pytest.mark.parametrize("judge", JUDGES)
@settings(max_examples=30, deadline=None)
@given(
    pieces=st.lists(st.binary(max_size=300), max_size=6).map(tuple),
    streamed=st.booleans(),
    value=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=40),
)
def test_any_body_in_any_pieces_arrives(
    judge: Any, pieces: tuple[bytes, ...], streamed: bool, value: str
) -> None:
    answer = HttpResponse(status=200, headers=(("x-value", value),), actions=pieces, streamed=streamed)
    raw = exchange(answer, b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    response = judge(raw, "GET")
    assert (response.body, dict(response.headers)["x-value"]) == (b"".join(pieces), value)


def test_responses_on_one_connection_stand_apart() -> None:
    """Three answers behind each other: h11 finds where each one ends."""
    answer = ANSWERS["streamed"]
    request = b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n"
    raw = exchange(answer, request * 2 + request.replace(b"host", b"connection: close\r\nhost", 1))
    connection = h11.Connection(h11.CLIENT)
    connection.receive_data(raw)
    for number in range(3):
        connection.send(h11.Request(method="GET", target="/", headers=[("host", "h")]))
        connection.send(h11.EndOfMessage())
        assert isinstance(connection.next_event(), h11.Response)
        body = b""
        while isinstance(event := connection.next_event(), h11.Data):
            body += event.data
        assert body == answer.body
        if number < 2:
            connection.start_next_cycle()
