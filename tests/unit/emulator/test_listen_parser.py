"""HTTP/1.1 requests out of bytes: whatever the slicing, whatever the garbage."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.http.http1 import Continue, Event, Malformed, Request, RequestParser

POST = b"POST /v1/x?alt=sse HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /c HTTP/1.1\r\nhost:h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
)
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


def parse(*pieces: bytes) -> list[Event]:
    parser = RequestParser()
    return [event for piece in pieces for event in parser.feed(piece)]


def requests(*pieces: bytes) -> list[Request]:
    events = parse(*pieces)
    assert all(isinstance(event, Request) for event in events), events
    return [event for event in events if isinstance(event, Request)]


def refusal(data: bytes) -> int:
    event = parse(data)[-1]
    assert isinstance(event, Malformed), event
    return event.status


def test_a_request_has_all_that_was_sent() -> None:
    (request,) = requests(POST)
    assert (request.verb, request.target, request.body) == ("POST", "/v1/x?alt=sse", b"hello")
    assert request.fields == (("host", "h"), ("content-length", "5"))
    assert (request.modern, request.keep_alive) == (True, True)


def test_a_chunked_body_is_joined_without_its_frame() -> None:
    assert [request.body for request in requests(CHUNKED)] == [b"abc0123456789"]


def test_requests_in_one_packet_are_all_seen() -> None:
    assert [request.target for request in requests(POST + GET + CHUNKED + GET)] == [
        "/v1/x?alt=sse",
        "/",
        "/c",
        "/",
    ]


@pytest.mark.parametrize(
    "data", [POST, CHUNKED, POST + GET + CHUNKED, b"\r\n\r\n" + GET, b"NO\r\n\r\n" + GET]
)
def test_a_slow_client_sends_byte_by_byte(data: bytes) -> None:
    assert parse(*(data[index : index + 1] for index in range(len(data)))) == parse(data)


@given(st.lists(st.integers(0, len(POST + CHUNKED + GET)), max_size=8))
def test_the_slicing_does_not_matter(cuts: list[int]) -> None:
    data = POST + CHUNKED + GET
    edges = [0, *sorted(cuts), len(data)]
    pieces = [data[start:end] for start, end in itertools.pairwise(edges)]
    assert parse(*pieces) == parse(data)


def test_two_user_agents_are_no_reason_to_refuse() -> None:
    """pydantic-ai sends its own beside the SDK's."""
    (request,) = requests(b"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a\r\nuser-agent: b\r\n\r\n")
    assert request.fields[1:] == (("user-agent", "a"), ("user-agent", "b"))


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        (b"GET / HTTP/1.1\r\nhost: h\r\n", True),
        (b"GET / HTTP/1.1\r\nhost: h\r\nConnection: x, Close\r\n", False),
        (b"GET / HTTP/1.0\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", True),
    ],
)
def test_who_wants_to_go_on(head: bytes, keep_alive: bool) -> None:
    assert [request.keep_alive for request in requests(head + b"\r\n")] == [keep_alive]


def test_who_expects_a_continue_is_told_once_and_only_if_it_waits() -> None:
    head, body = b"POST / HTTP/1.1\r\nhost: h\r\nexpect: 100-Continue\r\ncontent-length: 2\r\n\r\n", b"hi"
    assert [type(event) for event in parse(head, body)] == [Continue, Request]
    assert [type(event) for event in parse(head + body)] == [Request]
    old = b"POST / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    assert [type(event) for event in parse(old, body)] == [Request]


BAD = {
    b"nonsense\r\n\r\n": 400,
    b"GET /\r\n\r\n": 400,
    b"GET  / HTTP/1.1\r\nhost: h\r\n\r\n": 400,
    b"G(T / HTTP/1.1\r\nhost: h\r\n\r\n": 400,
    b"GET / HTTP/1.1\r\n\r\n": 400,
    b"GET / HTTP/1.1\r\nhost: h\r\nhost: g\r\n\r\n": 400,
    b"GET / HTTP/1.1\r\nhost: h\r\nname : x\r\n\r\n": 400,
    b"GET / HTTP/1.1\r\nhost: h\r\n folded\r\n\r\n": 400,
    b"GET / HTTP/1.1\r\nhost: h\r\nx: a\x00b\r\n\r\n": 400,
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: -1\r\n\r\n": 400,
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n": 400,
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n": 400,
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n": 400,
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n1\r\nabc\r\n": 400,
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: gzip, chunked\r\n\r\n": 501,
    b"POST / HTTP/1.1\r\nhost: h\r\nexpect: wonders\r\n\r\n": 417,
    b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 999999999\r\n\r\n": 413,
    b"POST / HTTP/1.1\nhost: h\ncontent-length: 2\n\nhi": 400,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n": 505,
    b"\x16\x03\x01\x02\x00\x01\x00": 400,
    b"GET /" + b"x" * 70_000: 431,
    b"GET / HTTP/1.1\r\nhost: h\r\n" + b"x: y\r\n" * 12_000: 431,
    b"POST / HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n0\r\n" + b"x: y\r\n" * 12_000: 431,
}


@pytest.mark.parametrize(("data", "status"), BAD.items(), ids=range(len(BAD)))
def test_what_is_no_request_is_refused_with_a_status(data: bytes, status: int) -> None:
    assert refusal(data) == status


def test_nothing_is_read_after_a_request_that_was_none() -> None:
    events = parse(GET + b"nonsense\r\n\r\n" + GET, GET)
    assert [type(event) for event in events] == [Request, Malformed]


def test_many_small_chunks_are_no_long_head() -> None:
    body = b"1\r\nx\r\n" * 30_000
    (request,) = requests(CHUNKED.partition(b"3;")[0] + body + b"0\r\n\r\n")
    assert request.body == b"x" * 30_000


def test_chunks_that_are_too_much_together_are_refused() -> None:
    parser = RequestParser(max_body_bytes=10)
    events = parser.feed(CHUNKED)
    assert [(event.status,) for event in events if isinstance(event, Malformed)] == [(413,)]


HEADS = st.lists(
    st.sampled_from(
        [
            b"GET / HTTP/1.1",
            b"POST /x HTTP/1.0",
            b"host: h",
            b"content-length: 3",
            b"transfer-encoding: chunked",
            b"expect: 100-continue",
            b"connection: close",
            b"",
            b"abc",
            b"3",
            b"0",
            b"\xff\x00: \r",
        ]
    ),
    max_size=12,
).map(b"\r\n".join)


@settings(max_examples=400, deadline=None)
@given(HEADS | st.binary(max_size=200), st.integers(1, 7))
def test_whatever_comes_there_are_requests_and_at_most_one_refusal_at_the_end(data: bytes, size: int) -> None:
    events = parse(*(data[start : start + size] for start in range(0, len(data), size)))
    refusals = [event for event in events if isinstance(event, Malformed)]
    assert len(refusals) <= 1
    assert all(400 <= refusal.status < 600 for refusal in refusals)
    assert not refusals or events[-1] is refusals[0]
    # The same bytes at once give the same requests; only whether a client waited for us depends on time.
    at_once = [event for event in parse(data) if not isinstance(event, Continue)]
    assert [event for event in events if not isinstance(event, Continue)] == at_once
