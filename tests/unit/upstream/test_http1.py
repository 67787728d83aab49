"""Answers of HTTP/1.1, whole, sliced anyhow, and broken."""

from __future__ import annotations

import gzip
import zlib

import pytest

from dragoman.http1.heads import Fields, read_fields
from dragoman.upstream import http1
from dragoman.upstream.http1 import AnswerReader, BrokenAnswer
from dragoman.upstream.inflate import MOST_BYTES

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
LENGTH = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b"

GZIP = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"


def _chunks(*pieces: bytes, end: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + end


WHOLE: dict[str, tuple[bytes, bytes]] = {
    "a length": (LENGTH % (5, b"hello"), b"hello"),
    "nothing": (LENGTH % (0, b""), b""),
    "chunks": (CHUNKED + _chunks(b"he", b"l", b"lo"), b"hello"),
    "large chunks": (CHUNKED + _chunks(b"x" * 300, b"y" * 17), b"x" * 300 + b"y" * 17),
    "large letters": (CHUNKED + b"1A\r\n" + b"x" * 26 + b"\r\n0\r\n\r\n", b"x" * 26),
    "extensions": (CHUNKED + b"5 ;name=value\r\nhello\r\n0\r\n\r\n", b"hello"),
    "a trailer": (CHUNKED + _chunks(b"hello", end=b"0\r\nx-sum: 1\r\ny: 2\r\n\r\n"), b"hello"),
    "announcements": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n" + LENGTH % (2, b"hi"),
        b"hi",
    ),
    "no body": (b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n", b""),
    "compressed": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: GZip\r\ntransfer-encoding: chunked\r\n\r\n"
        + _chunks(gzip.compress(b"hello " * 50)),
        b"hello " * 50,
    ),
    "deflated": (
        b"HTTP/1.1 200 OK\r\ncontent-encoding: deflate\r\ntransfer-encoding: chunked\r\n\r\n"
        + _chunks(zlib.compress(b"hello " * 50)),
        b"hello " * 50,
    ),
    "nothing, compressed": (b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 0\r\n\r\n", b""),
    "no words": (b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi", b"hi"),
}


@pytest.mark.parametrize(("raw", "body"), WHOLE.values(), ids=WHOLE)
def test_whole_answers_in_any_slicing(raw: bytes, body: bytes) -> None:
    for size in (1, 2, 3, 7, len(raw)):
        reader = AnswerReader()
        got = b"".join(reader.feed(raw[at : at + size]) for at in range(0, len(raw), size))
        assert (got, reader.over) == (body, True)
        reader.close()


def test_a_stream_gives_every_chunk_when_it_comes() -> None:
    reader = AnswerReader()
    assert reader.feed(CHUNKED) == b""
    assert reader.feed(b"5\r\nhello\r\n") == b"hello"
    assert reader.feed(b"5\r\nwo") == b"wo"
    assert reader.feed(b"rld\r\n1\r\n!\r\n") == b"rld!"
    assert not reader.over
    assert reader.feed(b"0\r\n\r\n") == b""
    assert reader.over


def test_without_a_length_the_end_of_the_connection_is_the_end() -> None:
    reader = AnswerReader()
    assert reader.feed(b"HTTP/1.0 200 OK\r\n\r\nhel") + reader.feed(b"lo") == b"hello"
    assert not reader.over
    reader.close()
    assert reader.over


@pytest.mark.parametrize(
    ("line", "keeps"),
    [
        (b"HTTP/1.1 200 OK\r\n", True),
        (b"HTTP/1.1 200 OK\r\nconnection: Close\r\n", False),
        (b"HTTP/1.0 200 OK\r\n", False),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\n", True),
    ],
)
def test_whether_the_connection_stays(line: bytes, keeps: bool) -> None:
    reader = AnswerReader()
    reader.feed(line + b"content-length: 0\r\n\r\n")
    assert reader.head is not None
    assert reader.head.keeps_alive is keeps


def test_headers_have_lower_names_and_no_space_around_them() -> None:
    reader = AnswerReader()
    reader.feed(b"HTTP/1.1 429 Too Many\r\nRetry-After:  7 \r\nX-A: 1\r\nx-a: 2\r\ncontent-length: 0\r\n\r\n")
    assert reader.head is not None
    assert reader.head.status == 429
    assert reader.head.headers == {"retry-after": "7", "x-a": "2", "content-length": "0"}


BROKEN: dict[str, bytes] = {
    "another protocol": b"SSH-2.0-OpenSSH\r\n\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
    "a protocol that changes": b"HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n",
    "a folded header": b"HTTP/1.1 200 OK\r\na: b\r\n c\r\n\r\n",
    "a header without a name": b"HTTP/1.1 200 OK\r\n: b\r\n\r\n",
    "a space before the colon": b"HTTP/1.1 200 OK\r\na : b\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
    "a length that is none": b"HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    "an unknown coding": b"HTTP/1.1 200 OK\r\ncontent-encoding: br\r\n\r\n",
    "an unknown transfer": b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n",
    "more than its length": LENGTH % (2, b"hello"),
    "more than nothing": LENGTH % (0, b"x"),
    "more than the last chunk": CHUNKED + _chunks(b"hi") + b"x",
    "a chunk without a length": CHUNKED + b"\r\nhello\r\n",
    "a chunk with a bad length": CHUNKED + b"0x5\r\nhello\r\n",
    "a chunk with a sign": CHUNKED + b"+5\r\nhello\r\n",
    "a chunk of less than nothing": CHUNKED + b"-2\r\n",
    "a length with a space": b"HTTP/1.1 200 OK\r\ncontent-length: 1 2\r\n\r\n",
    "no length": b"HTTP/1.1 200 OK\r\ncontent-length: \r\n\r\n",
    "a length beyond reason": b"HTTP/1.1 200 OK\r\ncontent-length: " + b"1" * 19 + b"\r\n\r\n",
    "no status": b"HTTP/1.1 2000 OK\r\n\r\n",
    "a chunk that is longer": CHUNKED + b"2\r\nhello\r\n",
    "no compression": b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 5\r\n\r\nhello",
    "compressed, and cut": GZIP % (40, gzip.compress(b"hello world " * 100)[:40]),
    "compressed twice": GZIP % (46, gzip.compress(b"one") + gzip.compress(b"two")),
    "a head without end": b"HTTP/1.1 200 OK\r\nx: " + b"a" * 70_000,
    "a length without end": CHUNKED + b"5;" + b"a" * 9_000,
    "a trailer without end": CHUNKED + b"0\r\n" + b"a" * 9_000,
}


@pytest.mark.parametrize("raw", BROKEN.values(), ids=BROKEN)
def test_what_is_no_answer_is_called_broken(raw: bytes) -> None:
    for size in (len(raw), 500):
        with pytest.raises(BrokenAnswer):
            _feed_all(raw, size)


def _feed_all(raw: bytes, size: int) -> None:
    reader = AnswerReader()
    for at in range(0, len(raw), size):
        reader.feed(raw[at : at + size])


_LINES = (
    b"Content-Type: application/json; charset=UTF-8\r\nDate: Tue, 18 Nov 2026 10:%02d:12 GMT\r\n"
    b"Server-Timing: gfet4t7; dur=%03d\r\n"
)


def test_a_head_of_a_known_shape_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    http1._framing.cache_clear()
    read: list[bytes] = []

    def watched(lines: bytes, at: int) -> Fields:
        read.append(lines)
        return read_fields(lines, at)

    monkeypatch.setattr(http1, "read_fields", watched)
    for number in range(20):
        reader = AnswerReader()
        lines = _LINES % (number, 10 * number)
        body = b"x" * (10 + number)
        assert (
            reader.feed(b"HTTP/1.1 200 OK\r\n%bcontent-length: %d\r\n\r\n%b" % (lines, len(body), body))
            == body
        )
        assert reader.over
    assert len(read) == 1
    assert reader.head is not None
    assert reader.head.headers["server-timing"] == "gfet4t7; dur=190"
    assert reader.head.headers["content-length"] == "29"


def test_a_shape_that_is_known_says_nothing_of_its_numbers() -> None:
    """Neither the status, nor the version, nor the lengths: they are read from each head."""
    for minor, status, keeps in ((b"1", b"200", True), (b"0", b"200", False), (b"1", b"429", True)):
        reader = AnswerReader()
        reader.feed(b"HTTP/1.%b %b OK\r\ncontent-length: 2\r\n\r\nhi" % (minor, status))
        assert reader.head is not None
        assert (reader.head.status, reader.head.keeps_alive, reader.over) == (int(status), keeps, True)
    for status in (b"204", b"304"):
        reader = AnswerReader()
        assert reader.feed(b"HTTP/1.1 %b OK\r\ncontent-length: 2\r\n\r\n" % status) == b""
        assert reader.over
    twice = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nx: y\r\nContent-Length:\t%d \r\n\r\nhi"
    assert AnswerReader().feed(twice % (2, 2)) == b"hi"
    with pytest.raises(BrokenAnswer, match="two lengths"):
        AnswerReader().feed(twice % (2, 3))
    with pytest.raises(BrokenAnswer):
        AnswerReader().feed(b"HTTP/1.1 600 OK\r\ncontent-length: 2\r\n\r\nhi")


def test_a_head_longer_than_usual_is_read_and_forgotten() -> None:
    http1._framing.cache_clear()
    reader = AnswerReader()
    assert reader.feed(b"HTTP/1.1 200 OK\r\nx: %b\r\ncontent-length: 2\r\n\r\nhi" % (b"a" * 5_000)) == b"hi"
    assert http1._framing.cache_info().currsize == 0


def test_a_length_in_a_sea_of_spaces_takes_no_longer_than_its_bytes() -> None:
    spaces = b" \t" * 20_000
    reader = AnswerReader()
    assert (
        reader.feed(b"HTTP/1.1 200 OK\r\ncontent-length:%b2%b\r\n\r\nhi" % (spaces, spaces[:20_000])) == b"hi"
    )
    with pytest.raises(BrokenAnswer, match="its length is"):
        AnswerReader().feed(b"HTTP/1.1 200 OK\r\ncontent-length: 2%b3\r\n\r\nhi" % spaces)


@pytest.mark.parametrize("raw", [b"", b"HTTP/1.1 200 OK\r\n", LENGTH % (9, b"half"), CHUNKED + b"5\r\nhel"])
def test_an_end_in_the_middle_is_a_break(raw: bytes) -> None:
    reader = AnswerReader()
    reader.feed(raw)
    with pytest.raises(BrokenAnswer):
        reader.close()


def test_what_is_compressed_and_ends_with_the_connection_ends_whole() -> None:
    raw = gzip.compress(b"hello")
    for cut, whole in ((0, True), (1, False)):
        reader = AnswerReader()
        reader.feed(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n" + raw[: len(raw) - cut])
        if whole:
            reader.close()
        else:
            with pytest.raises(BrokenAnswer):
                reader.close()


def test_what_is_read_at_once_never_becomes_more_than_it_may() -> None:
    """A bomb does not go off; what is only long is unpacked piece by piece."""
    size = 3 * MOST_BYTES
    raw = GZIP % (10**9, gzip.compress(bytes(size)))
    with pytest.raises(BrokenAnswer, match="beyond reason"):
        _feed_all(raw, len(raw))
    reader = AnswerReader()
    got = [len(reader.feed(raw[at : at + 1_000])) for at in range(0, len(raw), 1_000)]
    assert sum(got) == size
    assert max(got) < MOST_BYTES
