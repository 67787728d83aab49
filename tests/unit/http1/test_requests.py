"""Requests out of bytes: whatever the slicing, as h11 reads them, and nothing that could be read in two ways."""

from __future__ import annotations

import itertools
from typing import Any

import h11
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.http1.chunks import ChunkReader
from dragoman.http1.heads import BadMessage, HeadCollector
from dragoman.http1.requests import RequestHead, RequestReader

POST = b"POST /v1/x?alt=sse HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /c HTTP/1.1\r\nhost:h\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"3;name=value\r\nabc\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n"
)
GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"


class Read(msgspec.Struct):
    head: RequestHead
    body: bytes


def read_all(*pieces: bytes, max_head_bytes: int = 64 * 1024) -> list[Read]:
    """Whole requests; one that is not whole is left out."""
    reader, found, body = RequestReader(max_head_bytes), [], b""
    for piece in pieces:
        body += reader.feed(piece)
        while reader.over:
            assert reader.head is not None
            found.append(Read(reader.head, body))
            body = reader.next()
    return found


def test_a_request_has_all_that_was_sent() -> None:
    (read,) = read_all(POST)
    head = read.head
    assert (head.method, head.target, read.body) == ("POST", b"/v1/x?alt=sse", b"hello")
    assert head.fields == [(b"host", b"h"), (b"content-length", b"5")]
    assert (head.length, head.modern, head.keeps_alive, head.expects_continue) == (5, True, True, False)


def test_pipelined_requests_are_read_one_at_a_time() -> None:
    reader = RequestReader()
    assert reader.feed(POST + GET + CHUNKED) == b"hello"
    assert (reader.over, reader.rest) == (True, GET + CHUNKED)
    assert reader.feed(GET) == b""  # it waits with the others
    assert reader.next() == b""
    assert reader.over
    assert reader.next() == b"abc0123456789"
    assert (reader.over, reader.rest) == (True, GET)


@pytest.mark.parametrize(
    "data", [POST, CHUNKED, POST + GET + CHUNKED, b"\r\n\r\n" + GET + b"\r\n" + POST], ids=range(4)
)
def test_a_slow_client_sends_byte_by_byte(data: bytes) -> None:
    assert read_all(*(data[at : at + 1] for at in range(len(data)))) == read_all(data)


@given(st.lists(st.integers(0, len(POST + CHUNKED + GET)), max_size=8))
def test_the_slicing_does_not_matter(cuts: list[int]) -> None:
    data = POST + CHUNKED + GET
    edges = [0, *sorted(cuts), len(data)]
    assert read_all(*(data[start:end] for start, end in itertools.pairwise(edges))) == read_all(data)


@pytest.mark.parametrize(
    ("head", "keeps"),
    [
        (b"GET / HTTP/1.1\r\nhost: h\r\n", True),
        (b"GET / HTTP/1.1\r\nhost: h\r\nConnection: x, Close\r\n", False),
        (b"GET / HTTP/1.1\r\nhost: h\r\nConnection: x\r\nconnection: close\r\n", False),
        (b"GET / HTTP/1.1\r\nhost: h\r\nConnection: closed\r\n", True),
        (b"GET / HTTP/1.0\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n", True),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n", False),
    ],
)
def test_who_wants_to_go_on(head: bytes, keeps: bool) -> None:
    assert [read.head.keeps_alive for read in read_all(head + b"\r\n")] == [keeps]


def test_who_waits_for_a_word_is_known() -> None:
    head = b"POST / HTTP/1.%d\r\nhost: h\r\nexpect: 100-Continue\r\ncontent-length: 2\r\n\r\nhi"
    assert [read.head.expects_continue for n in (0, 1) for read in read_all(head % n)] == [False, True]


def _post(fields: bytes, body: bytes = b"") -> bytes:
    return b"POST / HTTP/1.1\r\nhost: h\r\n" + fields + b"\r\n" + body


BAD: dict[str, tuple[bytes, int]] = {
    "nonsense": (b"nonsense\r\n\r\n", 400),
    "no version": (b"GET /\r\n\r\n", 400),
    "two spaces": (b"GET  / HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "a tab": (b"GET\t/ HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "a space behind the version": (b"GET / HTTP/1.1 \r\nhost: h\r\n\r\n", 400),
    "a method that is none": (b"G(T / HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "no method": (b" / HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "a fragment": (b"GET /a#b HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "bytes that are no target": (b"GET /\xc3\xa4 HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "a zero in the target": (b"GET /\0 HTTP/1.1\r\nhost: h\r\n\r\n", 400),
    "a small version": (b"GET / http/1.1\r\nhost: h\r\n\r\n", 400),
    "another version": (b"GET / HTTP/3.0\r\nhost: h\r\n\r\n", 505),
    "no host": (b"GET / HTTP/1.1\r\n\r\n", 400),
    "two hosts": (_post(b"host: h\r\n"), 400),
    "a space before the colon": (_post(b"name : x\r\n"), 400),
    "no name": (_post(b": x\r\n"), 400),
    "no colon": (_post(b"name\r\n"), 400),
    "a folded line": (_post(b"a: b\r\n folded\r\n"), 400),
    "a first line that is folded": (b"GET / HTTP/1.1\r\n a: b\r\nhost: h\r\n\r\n", 400),
    "a zero": (_post(b"x: a\x00b\r\n"), 400),
    "a carriage return": (_post(b"x: a\rb\r\n"), 400),
    "a line feed": (_post(b"x: a\nb: c\r\n"), 400),
    "line feeds alone": (b"POST / HTTP/1.1\nhost: h\ncontent-length: 2\n\nhi", 400),
    "a negative length": (_post(b"content-length: -1\r\n"), 400),
    "a signed length": (_post(b"content-length: +1\r\n"), 400),
    "a length in hexadecimal": (_post(b"content-length: 0x1\r\n"), 400),
    "a length with a line": (_post(b"content-length: 1_0\r\n"), 400),
    "an empty length": (_post(b"content-length:\r\n"), 400),
    "a list of lengths": (_post(b"content-length: 1, 1\r\n"), 400),
    "other digits": (_post("content-length: ٣\r\n".encode()), 400),
    "the same length twice": (_post(b"content-length: 1\r\ncontent-length: 1\r\n"), 400),
    "two lengths": (_post(b"content-length: 1\r\ncontent-length: 2\r\n"), 400),
    "a length beyond reason": (_post(b"content-length: 9999999999999999999\r\n"), 400),
    "both": (_post(b"content-length: 1\r\ntransfer-encoding: chunked\r\n"), 400),
    "both, the other way round": (_post(b"transfer-encoding: chunked\r\ncontent-length: 1\r\n"), 400),
    "chunked twice": (_post(b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n"), 400),
    "another coding": (_post(b"transfer-encoding: gzip, chunked\r\n"), 501),
    "chunked is not last": (_post(b"transfer-encoding: chunked, identity\r\n"), 501),
    "nearly chunked": (_post(b"transfer-encoding: \x0bchunked\r\n"), 501),
    "identity": (_post(b"transfer-encoding: identity\r\n"), 501),
    "chunks of old": (b"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n", 400),
    "wonders": (_post(b"expect: wonders\r\n"), 417),
    "tls": (b"\x16\x03\x01\x02\x00\x01\x00", 400),
    "a path without end": (b"GET /" + b"x" * 70_000, 431),
    "a header without end": (_post(b"x: " + b"y" * 70_000), 431),
    "a hundred and one": (_post(b"x: y\r\n" * 100), 431),
    "nothing but empty lines": (b"\r\n" * 40_000, 400),
}
BAD_CHUNKS: dict[str, bytes] = {
    "no size": b"\r\nabc\r\n",
    "no number": b"zz\r\n",
    "a sign": b"+3\r\nabc\r\n",
    "a prefix": b"0x3\r\nabc\r\n",
    "a space in front": b" 3\r\nabc\r\n",
    "a line": b"1_0\r\n",
    "beyond reason": b"f" * 16 + b"\r\n",
    "a line feed alone": b"3\nabc\r\n",
    "a line feed alone behind it": b"3\r\nabc\n0\r\n\r\n",
    "longer than it says": b"1\r\nabc\r\n",
    "shorter than it says": b"4\r\nabc\r\n0\r\n\r\n",
    "a zero in an extension": b"3;a\0\r\nabc\r\n",
    "a line feed in an extension": b"3;a\nb\r\nabc\r\n",
    "an extension without end": b"3;" + b"a" * 9_000,
    "a trailer that is none": b"0\r\nno trailer\r\n\r\n",
    "a trailer with a space": b"0\r\na : b\r\n\r\n",
    "a trailer with a line feed": b"0\r\na: b\nc: d\r\n\r\n",
    "a trailer without end": b"0\r\n" + b"a: b\r\n" * 2_000,
}


@pytest.mark.parametrize(("data", "status"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_what_two_readers_could_read_differently_is_refused(data: bytes, status: int, size: int) -> None:
    with pytest.raises(BadMessage) as refused:
        read_all(*(data[at : at + size] for at in range(0, len(data), size)))
    assert refused.value.status == status


@pytest.mark.parametrize("body", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_chunks_that_two_readers_could_read_differently_are_refused(body: bytes, size: int) -> None:
    data = _post(b"transfer-encoding: chunked\r\n", body)
    with pytest.raises(BadMessage):
        read_all(*(data[at : at + size] for at in range(0, len(data), size)))


@pytest.mark.parametrize("size", [1, 5, 100])
def test_the_first_bytes_of_http2_are_known_and_all_kept(size: int) -> None:
    data = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore"
    reader = RequestReader()
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
    assert reader.speaks_http2
    assert (reader.head, reader.rest) == (None, data)


def test_two_user_agents_are_no_reason_to_refuse() -> None:
    """pydantic-ai sends its own beside the SDK's."""
    (read,) = read_all(b"GET / HTTP/1.1\r\nHost: h\r\nUser-Agent: a\r\nuser-agent: b\r\n\r\n")
    assert read.head.fields[1:] == [(b"user-agent", b"a"), (b"user-agent", b"b")]


def test_many_small_chunks_are_no_long_head() -> None:
    (read,) = read_all(CHUNKED.partition(b"3;")[0] + b"1\r\nx\r\n" * 30_000 + b"0\r\n\r\n")
    assert read.body == b"x" * 30_000


@pytest.mark.parametrize("size", [5_000, 65_536])
@pytest.mark.parametrize("chunk", [b"1\r\nx\r\n", b"1;a\r\nx\r\n", b"3;" + b"a" * 100 + b"\r\nxyz\r\n"])
def test_chunks_of_hardly_anything_are_refused_when_there_are_many(chunk: bytes, size: int) -> None:
    data, reader = chunk * 200_000, ChunkReader()
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    with pytest.raises(BadMessage, match="hardly anything"):
        [reader.feed(piece) for piece in pieces]
    assert len([*pieces]) * size > len(data) // 2


@pytest.mark.parametrize("size", [1, 3, 5_000])
def test_small_chunks_are_only_small(size: int) -> None:
    data, reader = b"2\r\nxy\r\n" * 20_000 + b"0\r\n\r\n", ChunkReader()
    read = sum(len(reader.feed(data[at : at + size])) for at in range(0, len(data), size))
    assert (read, reader.over) == (40_000, True)


def test_l_the_work_is_linear_in_a_head_that_never_ends() -> None:
    """Each byte is searched once: the place is remembered."""
    collector = HeadCollector(max_bytes=10**9)
    for number in range(1, 2_000):
        collector.feed(b"G" * 100)
        assert collector._searched == 100 * number - 3


def test_l_what_a_body_leaves_over_is_never_more_than_a_line() -> None:
    chunks = ChunkReader()
    chunks.feed(b"fffff;")
    for _ in range(8_000):
        chunks.feed(b"x")
    assert len(chunks._begun) <= 8_192
    with pytest.raises(BadMessage):
        chunks.feed(b"x" * 200)


TOKENS = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.!", min_size=1, max_size=12).map(lambda t: f"x{t}")
VALUES = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=20).map(
    lambda t: t.replace(",", " ,").strip()
)
FIELDS = st.lists(st.tuples(TOKENS, VALUES), max_size=6)
TARGETS = st.text("abcXYZ019-._~!$&'()*+,;=:@/?%", max_size=30).map(lambda t: "/" + t)
BODIES = st.one_of(
    st.none(), st.binary(max_size=200), st.lists(st.binary(min_size=1, max_size=50), max_size=5)
)


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    verb = draw(st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH", "X-y"]))
    fields, body = draw(FIELDS), draw(BODIES)
    lines = [
        f"{verb} {draw(TARGETS)} HTTP/1.1",
        "Host: h",
        *(f"{name}:  {value}\t" for name, value in fields),
    ]
    match body:
        case None:
            raw = b""
        case bytes():
            lines.append(f"Content-Length: {len(body)}")
            raw = body
        case _:
            lines.append("Transfer-Encoding: Chunked")
            ending = draw(st.sampled_from([b"0\r\n\r\n", b"000\r\nx-sum: 1\r\n\r\n"]))
            extension = draw(st.sampled_from([b"", b";a", b';a="b"']))
            raw = b"".join(b"%x%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in body) + ending
    return "\r\n".join([*lines, "", ""]).encode() + raw


def by_h11(data: bytes) -> list[tuple[Any, ...]]:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(data)
    found: list[tuple[Any, ...]] = []
    while (event := connection.next_event()) is not h11.NEED_DATA:
        if isinstance(event, h11.Request):
            found.append((event.method.decode(), event.target, list(event.headers), b""))
        elif isinstance(event, h11.Data):
            found[-1] = (*found[-1][:3], found[-1][3] + bytes(event.data))
        elif event is h11.PAUSED or isinstance(event, h11.EndOfMessage):
            connection.send(h11.Response(status_code=204, headers=[]))
            connection.send(h11.EndOfMessage())
            connection.start_next_cycle()
    return found


@settings(max_examples=300, deadline=None)
@given(st.lists(requests(), min_size=1, max_size=4), st.integers(1, 50))
def test_h11_reads_the_same_in_well_formed_requests(several: list[bytes], size: int) -> None:
    data = b"".join(several)
    ours = read_all(*(data[at : at + size] for at in range(0, len(data), size)))
    told = [(read.head.method, read.head.target, read.head.fields, read.body) for read in ours]
    # h11 spells a coding in lower case.
    told = [
        (*one[:2], [(n, v.lower() if n == b"transfer-encoding" else v) for n, v in one[2]], one[3])
        for one in told
    ]
    assert told == by_h11(data)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                *(b"GET / HTTP/1.1", b"POST /x HTTP/1.0", b"host: h", b"content-length: 3", b"0", b"3"),
                *(b"transfer-encoding: chunked", b"connection: close", b"", b"abc", b"\xff\x00: \r", b"\n"),
            ]
        ),
        max_size=14,
    ).map(b"\r\n".join)
    | st.binary(max_size=200),
    st.integers(1, 7),
)
def test_whatever_comes_the_slicing_does_not_matter(data: bytes, size: int) -> None:
    def outcome(*pieces: bytes) -> list[Read] | str:
        try:
            return read_all(*pieces)
        except BadMessage:  # of several reasons the one that is seen first depends on the slicing
            return "refused"

    sliced = outcome(*(data[at : at + size] for at in range(0, len(data), size)))
    assert sliced == outcome(data)


AGAIN = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length:  5\r\nX-Length: content-length: 5"


def _read_next(reader: RequestReader, head: bytes) -> RequestHead | tuple[str, int] | None:
    try:
        reader.feed(head + b"\r\n\r\n")
    except BadMessage as bad:
        return bad.why, bad.status
    return reader.head


def _check_again(head: bytes) -> None:
    used = RequestReader()
    used.feed(AGAIN + b"\r\n\r\nhello")
    used.next()
    assert _read_next(used, head) == _read_next(RequestReader(), head)


@given(
    st.integers(0, len(AGAIN)),
    st.integers(0, 6),
    st.sampled_from([b"", b"0", b"17", b"5", b"-", b" ", b"x", b"\r\n", b"\xb2"]) | st.binary(max_size=4),
)
def test_a_head_like_the_last_one_is_read_as_if_it_were_the_first(at: int, gone: int, put: bytes) -> None:
    _check_again(AGAIN[:at] + put + AGAIN[at + gone :])


@pytest.mark.parametrize(
    "head",
    [
        AGAIN,
        AGAIN.replace(b"POST", b"PUSH"),
        AGAIN.replace(b"/x", b"/y"),
        AGAIN.replace(b"Host: h", b"Host: i"),
        AGAIN.replace(b"X-Length", b"Y-Length"),
        AGAIN[:-1] + b"6",
        AGAIN + b"\r\nTransfer-Encoding: chunked",
        AGAIN + b"\r\nContent-Length: 5",
        *(
            AGAIN.replace(b"  5\r", b"  %b\r" % length)
            for length in (b"", b"+5", b"5 5", b"5 ", b"5,5", b"0x5", b"-5", b"\xb2")
        ),
        *(AGAIN.replace(b"  5\r", b"  %b\r" % (b"9" * digits)) for digits in (18, 19, 40)),
        AGAIN.replace(b"  5\r", b"  5\r\nContent-Length: 7\r"),
        AGAIN.replace(b"  5\r", b"  5\n"),
        AGAIN.replace(b"  5\r\n", b"  5\r\n\r\n"),
        b"\r\n" + AGAIN,
        b" " + AGAIN,
    ],
)
def test_a_head_that_only_looks_like_the_last_one_is_read_anew(head: bytes) -> None:
    _check_again(head)


@pytest.mark.parametrize("digits", [b"0", b"007", b"123456"])
def test_the_next_length_is_read_and_nothing_of_the_last_one_stays(digits: bytes) -> None:
    lengths = (b"5", digits, b"5")
    heads = (AGAIN.replace(b"  5\r", b"  " + length + b"\r") + b"\r\n\r\n" for length in lengths)
    read = read_all(*(head + b"x" * int(length) for head, length in zip(heads, lengths, strict=True)))
    assert [one.head.length for one in read] == [len(one.body) for one in read] == [*map(int, lengths)]
    assert [dict(one.head.fields)[b"content-length"] for one in read] == [*lengths]
    assert read[0].head.fields is not read[2].head.fields  # whoever changes one changes no other


def test_what_was_worked_out_of_a_head_is_kept_while_nothing_but_its_length_changes() -> None:
    reader, kept = RequestReader(), []
    for length in (b"5", b"7", b"10", b"0", b"5"):
        reader.feed(AGAIN.replace(b"  5\r", b"  " + length + b"\r") + b"\r\n\r\n" + b"x" * int(length))
        kept.append(reader.kept)
        reader.next()
    assert len(set(map(id, kept))) == 1


@pytest.mark.parametrize(
    "other",
    [
        AGAIN.replace(b"Host: h", b"Host: i"),
        AGAIN.replace(b"/x", b"/y"),
        AGAIN[:-1] + b"6",
        AGAIN + b"\r\nX-More: 1",
        AGAIN.removesuffix(b"\r\nX-Length: content-length: 5"),
        b"GET /x HTTP/1.1\r\nHost: h",
    ],
)
def test_q_what_was_worked_out_of_one_head_is_never_found_with_another(other: bytes) -> None:
    reader, kept = RequestReader(), []
    for head in (AGAIN, other, AGAIN):
        reader.feed(head + b"\r\n\r\n")
        assert reader.head is not None
        reader.feed(b"x" * (reader.head.length or 0))
        kept.append(reader.kept)
        reader.next()
    assert len(set(map(id, kept))) == 3


def test_a_longer_length_makes_no_head_longer_than_allowed() -> None:
    most = len(AGAIN) + 17
    for digits, allowed in ((18, True), (19, False)):
        reader = RequestReader(most)
        reader.feed(AGAIN + b"\r\n\r\nhello")
        reader.next()
        head = AGAIN.replace(b"  5\r", b"  " + b"0" * (digits - 1) + b"5\r")
        read = _read_next(reader, head)
        assert isinstance(read, RequestHead) is allowed
    tight = RequestReader(len(AGAIN))
    tight.feed(AGAIN + b"\r\n\r\nhello")
    tight.next()
    read = _read_next(tight, AGAIN.replace(b"  5\r", b"  12\r"))
    assert read == (f"the head is longer than {len(AGAIN)} bytes", 431)


def test_half_an_empty_line_is_not_forgotten_for_a_head_that_comes_again() -> None:
    reader = RequestReader()
    reader.feed(AGAIN + b"\r\n\r\nhello\r")
    reader.next()
    with pytest.raises(BadMessage):
        reader.feed(AGAIN + b"\r\n\r\n")
