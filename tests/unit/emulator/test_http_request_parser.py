"""The emulator's request parser: limits, strictness, and the same requests as h11, however the bytes are sliced."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.http_request_parser import (
    MAX_HEAD_BYTES,
    BadRequest,
    ContinueExpected,
    ParsedHttpRequest,
    ParserEvent,
    RequestParser,
)

POST = b"POST /v1/x?alt=sse HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /c HTTP/1.1\r\nhost:h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
)
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n"
SIZES = [1, 7, 10**6]


def slices(data: bytes, size: int) -> Iterator[bytes]:
    return (data[start : start + size] for start in range(0, len(data), size))


def parse(parts: Iterable[bytes], **limits: int) -> list[ParserEvent]:
    parser = RequestParser(**limits)
    events: list[ParserEvent] = []
    for part in parts:
        parser.receive_data(part)
        while (event := parser.next_event()) is not None:
            events.append(event)
    return events


def requests(data: bytes, size: int = 10**9) -> list[ParsedHttpRequest]:
    events = [event for event in parse(slices(data, size)) if not isinstance(event, ContinueExpected)]
    assert all(isinstance(event, ParsedHttpRequest) for event in events), events
    return [event for event in events if isinstance(event, ParsedHttpRequest)]


def post(headers: bytes = b"", body: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\nhost: h\r\n" + headers + b"\r\n" + body


def chunked(body: bytes) -> bytes:
    return post(b"transfer-encoding: chunked\r\n", body)


def test_a_request_has_all_that_was_sent() -> None:
    assert requests(POST) == [
        ParsedHttpRequest(
            method="POST",
            target="/v1/x?alt=sse",
            headers=(("host", "h"), ("content-length", "5")),
            http_version="1.1",
            keep_alive=True,
            body=b"hello",
        )
    ]


def test_a_chunked_body_is_joined() -> None:
    assert [request.body for request in requests(CHUNKED)] == [b"abc0123456789"]


def test_a_trailer_is_no_header() -> None:
    (request,) = requests(CHUNKED)
    assert request.headers == (("host", "h"), ("transfer-encoding", "chunked"))


def test_all_pipelined_requests_are_parsed() -> None:
    targets = [request.target for request in requests(POST + GET + CHUNKED + GET)]
    assert targets == ["/v1/x?alt=sse", "/", "/c", "/"]


@pytest.mark.parametrize(
    "data",
    [POST, CHUNKED, POST + GET + CHUNKED, b"\r\n\r\n" + GET, GET + b"NO\r\n\r\n" + GET, post(UPGRADE) + GET],
    ids=range(6),
)
def test_byte_by_byte_gives_the_same_events(data: bytes) -> None:
    assert parse(slices(data, 1)) == parse([data])


@given(st.lists(st.integers(0, len(POST + CHUNKED + GET)), max_size=8))
def test_slices_do_not_matter(cuts: list[int]) -> None:
    data = POST + CHUNKED + GET
    edges = [0, *sorted(cuts), len(data)]
    assert parse(data[start:end] for start, end in itertools.pairwise(edges)) == parse([data])


def test_two_user_agents_are_accepted() -> None:
    """pydantic-ai sends its own beside the SDK's."""
    (request,) = requests(b"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a\r\nuser-agent: b\r\n\r\n")
    assert request.headers[1:] == (("user-agent", "a"), ("user-agent", "b"))


@pytest.mark.parametrize(
    ("head", "keep_alive"),
    [
        (b"GET / HTTP/1.1\r\nhost: h\r\n", True),
        (b"GET / HTTP/1.1\r\nhost: h\r\nConnection: x, Close\r\n", False),
        (b"GET / HTTP/1.1\r\nhost: h\r\nConnection: x\r\nconnection: close\r\n", False),
        (b"GET / HTTP/1.1\r\nhost: h\r\nConnection: closed\r\n", True),
        (b"GET / HTTP/1.0\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", True),
    ],
)
def test_keep_alive(head: bytes, keep_alive: bool) -> None:
    assert [request.keep_alive for request in requests(head + b"\r\n")] == [keep_alive]


def test_a_trailer_can_end_the_connection() -> None:
    (request,) = requests(chunked(b"0\r\nconnection: close\r\n\r\n"))
    assert not request.keep_alive


def test_continue_is_sent_once_and_only_to_a_client_that_waits() -> None:
    head = post(b"expect: 100-Continue\r\ncontent-length: 2\r\n")
    assert [type(event) for event in parse([head, b"h", b"i"])] == [ContinueExpected, ParsedHttpRequest]
    assert [type(event) for event in parse([head + b"hi"])] == [ParsedHttpRequest]
    assert [type(event) for event in parse([post(b"expect:\r\ncontent-length: 2\r\n"), b"hi"])] == [
        ParsedHttpRequest
    ]
    assert [type(event) for event in parse([post(b"expect: 100-continue\r\n")])] == [ParsedHttpRequest]
    old = b"POST / HTTP/1.0\r\nexpect: 100-continue\r\ncontent-length: 2\r\n\r\n"
    assert [type(event) for event in parse([old, b"hi"])] == [ParsedHttpRequest]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("framing", "raw", "body"),
    [
        (b"", b"", b""),
        (b"content-length: 2\r\n", b"hi", b"hi"),
        (b"Transfer-Encoding: Chunked\r\n", b"1\r\nh\r\n1;a\r\ni\r\n0\r\nx: y\r\n\r\n", b"hi"),
    ],
    ids=["no body", "content-length", "chunked"],
)
def test_an_upgrade_is_ignored_and_the_body_is_read(
    framing: bytes, raw: bytes, body: bytes, size: int
) -> None:
    """Java's HttpClient and `curl --http2` ask for h2c with the first request of a connection."""
    first, second = requests(post(UPGRADE + framing, raw) + POST, size)
    assert (first.method, first.target, first.body, first.keep_alive) == ("POST", "/", body, True)
    assert first.headers[1:3] == (("connection", "Upgrade, HTTP2-Settings"), ("upgrade", "h2c"))
    assert [second] == requests(POST)


def test_continue_is_sent_to_a_client_that_also_asks_for_an_upgrade() -> None:
    head = post(UPGRADE + b"expect: 100-continue\r\ncontent-length: 2\r\n")
    assert [type(event) for event in parse([head, b"hi"])] == [ContinueExpected, ParsedHttpRequest]


def test_connect_is_a_request_like_others() -> None:
    first, second = requests(b"CONNECT h:1 HTTP/1.1\r\nhost: h\r\n\r\n" + GET)
    assert (first.method, first.target) == ("CONNECT", "h:1")
    assert second.method == "GET"


#: Other parsers could read these differently, or they are too large.
REFUSED: dict[str, tuple[bytes, int]] = {
    "no request line": (b"nonsense\r\n\r\n", 400),
    "unknown method": (b"MOO / HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "invalid method": (b"G(T / HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "no method": (b" / HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "tab in the request line": (b"GET\t/ HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "space after the version": (b"GET / HTTP/1.1 \r\nhost: h\r\n\r\n", 400),
    "target that is not ASCII": (b"GET /\xc3\xa4 HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "NUL in the target": (b"GET /\0 HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "version in lower case": (b"GET / http/1.1\r\nhost: h\r\n\r\n", 400),
    "HTTP/0.9": (b"GET /\r\n\r\n", 505),
    "HTTP/1.2": (b"GET / HTTP/1.2\r\nhost: h\r\n\r\n", 505),
    "HTTP/2.0": (b"GET / HTTP/2.0\r\nhost: h\r\n\r\n", 505),
    "HTTP/3.0": (b"GET / HTTP/3.0\r\nhost: h\r\n\r\n", 505),
    "preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00", 400),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (post(b"host: h\r\n"), 400),
    "space before the colon": (post(b"name : x\r\n"), 400),
    "empty header name": (post(b": x\r\n"), 400),
    "header without a colon": (post(b"name\r\n"), 400),
    "folded header": (post(b"a: b\r\n folded\r\n"), 400),
    "folded first header": (b"GET / HTTP/1.1\r\n a: b\r\nhost: h\r\n\r\n", 400),
    "NUL in a value": (post(b"x: a\x00b\r\n"), 400),
    "CR in a value": (post(b"x: a\rb\r\n"), 400),
    "LF in a value": (post(b"x: a\nb: c\r\n"), 400),
    "bare LF": (b"POST / HTTP/1.1\nhost: h\ncontent-length: 2\n\nhi", 400),
    "bare LF after the last header": (b"POST / HTTP/1.1\r\nhost: h\n\r\n", 400),
    "bare LF for the empty line": (b"POST / HTTP/1.1\r\nhost: h\r\n\n", 400),
    "negative length": (post(b"content-length: -1\r\n"), 400),
    "length with a sign": (post(b"content-length: +1\r\n"), 400),
    "hexadecimal length": (post(b"content-length: 0x1\r\n"), 400),
    "length with an underscore": (post(b"content-length: 1_0\r\n"), 400),
    "length in other digits": (post("content-length: ٣\r\n".encode()), 400),
    "empty length": (post(b"content-length:\r\n"), 400),
    "list of lengths": (post(b"content-length: 1, 1\r\n"), 400),
    "two numbers as length": (post(b"content-length: 1 1\r\n"), 400),
    "the same length twice": (post(b"content-length: 1\r\ncontent-length: 1\r\n"), 400),
    "two lengths": (post(b"content-length: 1\r\ncontent-length: 2\r\n"), 400),
    "length above 64 bits": (post(b"content-length: 99999999999999999999\r\n"), 400),
    "length above the limit": (post(b"content-length: 999999999\r\n"), 413),
    "length and coding": (post(b"content-length: 1\r\ntransfer-encoding: chunked\r\n"), 400),
    "coding and length": (post(b"transfer-encoding: chunked\r\ncontent-length: 1\r\n"), 400),
    "length and identity": (post(b"content-length: 1\r\ntransfer-encoding: identity\r\n", b"x"), 400),
    "chunked twice": (post(b"transfer-encoding: chunked\r\n" * 2), 400),
    "chunked is not last": (post(b"transfer-encoding: chunked, identity\r\n"), 400),
    "another coding": (post(b"transfer-encoding: gzip, chunked\r\n"), 501),
    "identity": (post(b"transfer-encoding: identity\r\n"), 501),
    "xchunked": (post(b"transfer-encoding: xchunked\r\n"), 501),
    "vertical tab before chunked": (post(b"transfer-encoding: \x0bchunked\r\n"), 400),
    "empty coding": (post(b"transfer-encoding:\r\n"), 400),
    "chunks in HTTP/1.0": (b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n", 400),
    "coding in HTTP/1.0": (b"POST / HTTP/1.0\r\ntransfer-encoding: gzip\r\n\r\n", 400),
    "unknown expectation": (post(b"expect: wonders\r\n"), 417),
    "two expectations": (post(b"expect: 100-continue\r\n" * 2), 400),
    "long target": (b"GET /" + b"x" * 70_000, 431),
    "long header": (post(b"x: " + b"y" * 70_000), 431),
    "endless header value": (post()[:-2] + b"x: " + b"y" * 70_000, 431),
    "endless header name": (post()[:-2] + b"y" * 70_000, 431),
    "endless space": (post()[:-2] + b"x:" + b" " * 70_000, 431),
    "101 headers": (post(b"x: y\r\n" * 100), 431),
    "empty lines only": (b"\r\n" * 35_000, 431),
    "no chunk size": (chunked(b"\r\nabc\r\n"), 400),
    "chunk size that is no number": (chunked(b"zz\r\n"), 400),
    "chunk size with a sign": (chunked(b"+3\r\nabc\r\n"), 400),
    "chunk size with a prefix": (chunked(b"0x3\r\nabc\r\n"), 400),
    "space before the chunk size": (chunked(b" 3\r\nabc\r\n"), 400),
    "space after the chunk size": (chunked(b"3 \r\nabc\r\n"), 400),
    "chunk size with an underscore": (chunked(b"1_0\r\n"), 400),
    "chunk size above 64 bits": (chunked(b"f" * 17 + b"\r\n"), 400),
    "bare LF after the chunk size": (chunked(b"3\nabc\r\n"), 400),
    "bare LF after a chunk": (chunked(b"3\r\nabc\n0\r\n\r\n"), 400),
    "chunk longer than its size": (chunked(b"1\r\nabc\r\n"), 400),
    "chunk shorter than its size": (chunked(b"4\r\nabc\r\n0\r\n\r\n"), 400),
    "NUL in an extension": (chunked(b"3;a\0\r\nabc\r\n"), 400),
    "LF in an extension": (chunked(b"3;a\nb\r\nabc\r\n"), 400),
    "CR in an extension": (chunked(b"3;a\rb\r\nabc\r\n"), 400),
    "LF in a quoted extension": (chunked(b'3;a="\nb"\r\nabc\r\n'), 400),
    "endless extension": (chunked(b"3;" + b"a" * 70_000), 431),
    "trailer without a colon": (chunked(b"0\r\nno trailer\r\n\r\n"), 400),
    "trailer with a space before the colon": (chunked(b"0\r\na : b\r\n\r\n"), 400),
    "trailer with a bare LF": (chunked(b"0\r\na: b\nc: d\r\n\r\n"), 400),
    "trailer content-length": (chunked(b"0\r\ncontent-length: 5\r\n\r\n"), 400),
    "trailer transfer-encoding": (chunked(b"0\r\ntransfer-encoding: chunked\r\n\r\n"), 400),
    "too many trailers": (chunked(b"0\r\n" + b"x: y\r\n" * 12_000), 431),
    "endless trailer": (chunked(b"3\r\nabc\r\n0\r\nx: " + b"y" * 70_000), 431),
    "upgrade with two framings": (
        post(UPGRADE + b"content-length: 1\r\ntransfer-encoding: chunked\r\n", b"x"),
        400,
    ),
    "upgrade with a bad chunk": (post(UPGRADE + b"transfer-encoding: chunked\r\n", b"zz\r\n"), 400),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("data", "status"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_could_be_read_in_two_ways_is_refused(data: bytes, status: int, size: int) -> None:
    events = parse(slices(data, size))
    assert [event.status for event in events if isinstance(event, BadRequest)] == [status]
    assert not [event for event in events if isinstance(event, ParsedHttpRequest)]


#: llhttp accepts these although a strict parser refuses them. None of them changes where a request ends.
LENIENT: dict[str, bytes] = {
    "two spaces before the target": b"GET  / HTTP/1.1\r\nhost: h\r\n\r\n",
    "bare LF before a request": b"\n" + GET,
    "fragment in the target": b"GET /a#b HTTP/1.1\r\nhost: h\r\n\r\n",
    "protocol RTSP": b"OPTIONS * RTSP/1.0\r\nhost: h\r\nconnection: keep-alive\r\n\r\n",
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("data", LENIENT.values(), ids=LENIENT)
def test_leniencies_do_not_change_where_a_request_ends(data: bytes, size: int) -> None:
    first, second = requests(data + POST, size)
    assert first.body == b""
    assert [second] == requests(POST)


def test_the_reason_for_http2_says_what_is_spoken() -> None:
    assert parse([b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]) == [BadRequest(505, "the emulator speaks HTTP/1.1")]


def test_nothing_is_parsed_after_a_bad_request() -> None:
    events = parse([GET + b"nonsense\r\n\r\n" + GET, GET])
    assert [type(event) for event in events] == [ParsedHttpRequest, BadRequest]


def test_no_continue_is_sent_after_a_bad_request() -> None:
    data = post(b"expect: 100-continue\r\ntransfer-encoding: chunked\r\n", b"zz\r\n")
    assert [type(event) for event in parse([data])] == [BadRequest]


@pytest.mark.parametrize("size", SIZES)
def test_a_head_may_have_64_kib_and_100_headers(size: int) -> None:
    start = post(b"x: y\r\n" * 98)[:-2] + b"z: "
    (request,) = requests(start + b"z" * (MAX_HEAD_BYTES - len(start) - 4) + b"\r\n\r\n", size)
    assert len(request.headers) == 100


@pytest.mark.parametrize("before", [GET, POST, CHUNKED], ids=["GET", "POST", "chunked"])
def test_the_head_of_a_request_does_not_count_for_the_next(before: bytes) -> None:
    large = post(b"x: " + b"y" * 60_000 + b"\r\n")
    assert len(requests((before + large) * 3, 1000)) == 6


def test_many_small_chunks_are_no_long_head() -> None:
    (request,) = requests(chunked(b"1\r\nx\r\n" * 30_000 + b"0\r\n\r\n"))
    assert request.body == b"x" * 30_000


@pytest.mark.parametrize("size", [1, 10**6])
def test_chunks_above_the_limit_are_refused(size: int) -> None:
    assert [type(event) for event in parse(slices(CHUNKED, size), max_body_bytes=13)] == [ParsedHttpRequest]
    (event,) = parse(slices(CHUNKED, size), max_body_bytes=12)
    assert event == BadRequest(413, "the body is longer than 12 bytes")


def test_pipelined_requests_wait_as_bytes() -> None:
    """One event parses at most 4 KiB, so a flood of small requests takes hardly more memory than its bytes."""
    parser = RequestParser()
    parser.receive_data(GET * 10_000)
    assert isinstance(parser.next_event(), ParsedHttpRequest)
    assert len(parser._events) < 4096 / len(GET)
    assert parser.unparsed_bytes == 10_000 * len(GET) - 4096
    number = 1
    while parser.next_event() is not None:
        number += 1
    assert (number, parser.unparsed_bytes) == (10_000, 0)


def test_the_parser_keeps_nothing_after_a_bad_request() -> None:
    parser = RequestParser()
    parser.receive_data(b"nonsense\r\n\r\n" + b"x" * 100_000)
    assert isinstance(parser.next_event(), BadRequest)
    parser.receive_data(b"x" * 100_000)
    assert parser.unparsed_bytes == 0
    assert parser.next_event() is None


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.!", min_size=1, max_size=12).map(lambda t: f"x{t}")
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=20).map(str.strip)
TARGETS = st.text("abcXYZ019-._~!$&'()*+,;=:@/?%\"<>{}|^`\\", max_size=30).map(lambda t: "/" + t)
BODIES = st.none() | st.binary(max_size=200) | st.lists(st.binary(min_size=1, max_size=50), max_size=5)
METHODS = st.sampled_from(["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"])


@st.composite
def raw_requests(draw: st.DrawFn) -> bytes:
    host = draw(st.sampled_from(["", "http://h", "https://h:1"]))
    lines = [f"{draw(METHODS)} {host}{draw(TARGETS)} HTTP/1.1", "Host: h"]
    lines += [f"{name}:  {value}\t" for name, value in draw(st.lists(st.tuples(NAMES, VALUES), max_size=6))]
    if draw(st.booleans()):
        lines += UPGRADE.decode().split("\r\n")[:-1]
    body = draw(BODIES)
    raw = b""
    if isinstance(body, bytes):
        lines.append(f"Content-Length: {len(body)}")
        raw = body
    elif body is not None:
        lines.append("Transfer-Encoding: Chunked")
        extension = draw(st.sampled_from([b"", b";a", b';a="b;c"']))
        ending = draw(st.sampled_from([b"0\r\n\r\n", b"000\r\nx-sum: 1\r\n\r\n"]))
        raw = b"".join(b"%x%b\r\n%b\r\n" % (len(part), extension, part) for part in body) + ending
    return "\r\n".join([*lines, "", ""]).encode() + raw


def parse_with_h11(data: bytes) -> list[tuple[Any, ...]]:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    found: list[tuple[Any, ...]] = []
    while (event := connection.next_event()) is not h11.NEED_DATA:
        if isinstance(event, h11.Request):
            headers = tuple((name.decode(), value.decode("latin-1")) for name, value in event.headers)
            found.append((event.method.decode(), event.target.decode(), headers, b""))
        elif isinstance(event, h11.Data):
            found[-1] = (*found[-1][:3], found[-1][3] + bytes(event.data))
        elif event is h11.PAUSED or isinstance(event, h11.EndOfMessage):
            connection.send(h11.Response(status_code=204, headers=[]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
    return found


@settings(max_examples=300, deadline=None)
@given(st.lists(raw_requests(), min_size=1, max_size=4), st.integers(1, 50) | st.just(10**6))
def test_h11_reads_the_same_requests(several: list[bytes], size: int) -> None:
    data = b"".join(several)
    found = [
        (
            request.method,
            request.target,
            # h11 writes the coding in lower case.
            tuple((n, v.lower() if n == "transfer-encoding" else v) for n, v in request.headers),
            request.body,
        )
        for request in requests(data, size)
    ]
    assert found == parse_with_h11(data)


LINES = st.lists(
    st.sampled_from(
        [
            *(
                b"GET / HTTP/1.1",
                b"POST /x HTTP/1.0",
                b"host: h",
                b"content-length: 3",
                b"",
                b"abc",
                b"3",
                b"0",
            ),
            *(b"transfer-encoding: chunked", b"expect: 100-continue", b"connection: close", b"upgrade: x"),
            *(b"connection: upgrade", b"\xff\x00: \r", b"\n", b"PRI * HTTP/2.0"),
        ]
    ),
    max_size=14,
).map(b"\r\n".join)


@settings(max_examples=500, deadline=None)
@given(LINES | st.binary(max_size=200), st.integers(1, 7))
def test_any_bytes_give_requests_and_at_most_one_refusal_at_the_end(data: bytes, size: int) -> None:
    events = parse(slices(data, size))
    refused = [event for event in events if isinstance(event, BadRequest)]
    assert refused in ([], events[-1:])
    assert all(400 <= event.status < 600 for event in refused)
    # The same bytes at once give the same events, except that nobody waits for a 100.
    at_once = [event for event in parse([data]) if not isinstance(event, ContinueExpected)]
    assert [event for event in events if not isinstance(event, ContinueExpected)] == at_once
