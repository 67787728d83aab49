"""Requests out of bytes: what one reader could take for the end of a request and another not is refused."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from dragoman.http1.chunks import ChunkReader
from dragoman.http1.heads import HEAD_END, BadMessage, Fields, HeadCollector, keeps_alive, read_fields

MAX_HEAD_BYTES = 64 * 1024

_REQUEST_LINE = re.compile(
    rb"([!#$%&'*+.^_`|~0-9A-Za-z-]++) ([\x21\x22\x24-\x7e]++) HTTP/(\d)\.(\d)(?:\r\n|\Z)"
)
_MOST_DIGITS = 18  # of a length
_LENGTH = re.compile(rb"\d{1,%d}" % _MOST_DIGITS)
_LENGTH_LINE = re.compile(rb"\r\ncontent-length:[ \t]*(\d++)", re.IGNORECASE)
_BEGINNINGS = frozenset(b"!#$%&'*+.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-")
_FRAMING = frozenset({b"content-length", b"transfer-encoding", b"host", b"expect", b"connection"})
_PREFACE = b"PRI * HTTP/2.0"  # the first line of every connection of HTTP/2


class Kept:
    """What others worked out of a head; heads that differ in nothing but their length share it.

    `scope` is the server's, `meaning` the application's. It lives as long as the connection remembers the head.
    """

    __slots__ = ("meaning", "scope")

    def __init__(self) -> None:
        self.scope: dict[str, Any] | None = None
        self.meaning: object = None


class RequestHead(msgspec.Struct, frozen=True, gc=False):
    """`length` is that of the body, None if it comes in chunks; `modern` is HTTP/1.1."""

    method: str
    target: bytes
    fields: Fields
    length: int | None
    modern: bool
    keeps_alive: bool
    expects_continue: bool


class LastHead:
    """The head of a connection's last request: nearly every client sends the same one again, but for the length."""

    __slots__ = ("_before", "_behind", "_head", "_place", "_start")

    def __init__(self, before: bytes, behind: bytes, head: RequestHead) -> None:
        self._before = before
        self._start = len(before)
        self._behind = behind
        self._head = head
        self._place = next(at for at, (name, _) in enumerate(head.fields) if name == b"content-length")

    @classmethod
    def of(cls, raw: bytes, head: RequestHead, max_bytes: int) -> LastHead | None:
        """None if it cannot come again, or could be too long with another length."""
        found = _LENGTH_LINE.search(raw) if len(raw) + _MOST_DIGITS <= max_bytes else None
        return cls(raw[: found.start(1)], raw[found.end(1) :] + HEAD_END, head) if found else None

    def again(self, data: bytes) -> tuple[RequestHead, int] | None:
        """What these bytes begin with, and where it ends, if that differs in the digits of the length alone."""
        if not data.startswith(self._before):
            return None
        start = self._start
        stop = data.find(b"\r", start, start + _MOST_DIGITS + 1)
        if stop < 0 or not data.startswith(self._behind, stop):
            return None
        digits = data[start:stop]
        if not digits.isdigit():
            return None
        head = self._head
        fields = head.fields.copy()
        fields[self._place] = (b"content-length", digits)
        same = RequestHead(
            head.method,
            head.target,
            fields,
            int(digits),
            head.modern,
            head.keeps_alive,
            head.expects_continue,
        )
        return same, stop + len(self._behind)


class RequestReader:
    """(head body)*, one request at a time. `feed` gives back what the bytes bring of the body.

    `head` is known when its last byte has come; `kept` stays the same while heads do, but for their length.
    When the request is `over`, what follows waits until `next` is called.
    `speaks_http2` says that these are the first bytes of another protocol; `rest` has all of them.
    """

    __slots__ = (
        *("_blank", "_chunks", "_collector", "_half_break", "_last", "_left", "_max_head_bytes"),
        *("head", "kept", "over", "rest", "speaks_http2"),
    )

    def __init__(self, max_head_bytes: int = MAX_HEAD_BYTES) -> None:
        self._max_head_bytes = max_head_bytes
        self._collector = HeadCollector(max_head_bytes)
        self._blank = 0  # bytes of empty lines in front of a head
        self._half_break = False
        self._chunks: ChunkReader | None = None
        self._left = 0
        self._last: LastHead | None = None
        self.head: RequestHead | None = None
        self.kept = Kept()
        self.over = False
        self.rest = b""
        self.speaks_http2 = False

    @property
    def begun_bytes(self) -> int:
        """Of a head that is not whole yet."""
        return self._collector.begun_bytes

    def feed(self, data: bytes) -> bytes:
        if self.over:
            self.rest += data
            return b""
        if self.head is None:
            behind = self._read_head(data)
            if behind is None:
                return b""
            data = behind
        if self._chunks is not None:
            return self._read_chunks(self._chunks, data)
        return self._read_plain(data)

    def next(self) -> bytes:
        """On with the next request: what is here of its body."""
        data, self.rest = self.rest, b""
        self.head, self.over, self._chunks = None, False, None
        return self.feed(data) if data else b""

    def _read_plain(self, data: bytes) -> bytes:
        left = self._left - len(data)
        if left <= 0:
            self.over = True
            if left:
                data, self.rest = data[:left], data[left:]
        self._left = left
        return data

    def _read_chunks(self, chunks: ChunkReader, data: bytes) -> bytes:
        body = chunks.feed(data)
        if chunks.over:
            self.over, self.rest = True, chunks.rest
        return body

    def _read_head(self, data: bytes) -> bytes | None:
        """What stands behind it, if it is whole."""
        last, collector = self._last, self._collector
        if last is not None and not collector.begun_bytes and not self._half_break:
            again = last.again(data)
            if again is not None:
                head, end = again
                self._expect_body(head)
                return data[end:]
        raw = self._collect(collector, data)
        if raw is None:
            return None
        if raw == _PREFACE:
            self.speaks_http2, self.over = True, True
            self.rest = raw + HEAD_END + collector.rest
            return None
        head = read_head(raw)
        self.kept = Kept()
        self._last = LastHead.of(raw, head, self._max_head_bytes)
        self._expect_body(head)
        behind, collector.rest = collector.rest, b""
        return behind

    def _collect(self, collector: HeadCollector, data: bytes) -> bytes | None:
        if not collector.begun_bytes:
            if self._half_break or data.startswith(b"\r"):
                data = self._without_blank_lines(data)
            if not data:
                return None
            if data[0] not in _BEGINNINGS:
                raise BadMessage("this is not HTTP; plain http is spoken here, not https")
        return collector.feed(data)

    def _without_blank_lines(self, data: bytes) -> bytes:
        """They are allowed in front of a request."""
        if self._half_break:
            data, self._half_break = b"\r" + data, False
        start = 0
        while data.startswith(b"\r\n", start):
            start += 2
        self._blank += start
        if self._blank > self._max_head_bytes:
            raise BadMessage("nothing but empty lines")
        if len(data) == start + 1 and data.endswith(b"\r"):
            self._half_break = True
            return b""
        return data[start:]

    def _expect_body(self, head: RequestHead) -> None:
        self.head = head
        self._blank = 0
        if head.length is None:
            self._chunks = ChunkReader()
        else:
            self._left = head.length


def read_head(raw: bytes) -> RequestHead:
    line = _REQUEST_LINE.match(raw)
    if line is None:
        raise BadMessage("the first line is no request line")
    method, target, major, minor = line.groups()
    if major != b"1":
        raise BadMessage("HTTP/1.1 is spoken here", 505)
    fields = read_fields(raw, line.end())
    said: dict[bytes, bytes] = {}
    for name, value in fields:
        if name in _FRAMING:
            said[name] = value if name not in said else _joined(name, said[name], value)
    modern = minor != b"0"
    if modern and b"host" not in said:
        raise BadMessage("a request names its host")
    return RequestHead(
        method.decode("ascii"),
        target,
        fields,
        _body_length(said, modern=modern),
        modern,
        modern if b"connection" not in said else keeps_alive(said[b"connection"], modern=modern),
        b"expect" in said and _expects_continue(said[b"expect"]) and modern,
    )


def _joined(name: bytes, one: bytes, other: bytes) -> bytes:
    if name == b"connection":
        return one + b"," + other
    raise BadMessage(f"the header {name.decode('ascii')} may come only once")


def _body_length(said: dict[bytes, bytes], *, modern: bool) -> int | None:
    length, coding = said.get(b"content-length"), said.get(b"transfer-encoding")
    if coding is not None:
        if length is not None:
            raise BadMessage("content-length and transfer-encoding together")
        if not modern:
            raise BadMessage("HTTP/1.0 knows no transfer-encoding")
        if coding.lower() != b"chunked":
            raise BadMessage("only the chunked transfer-encoding is understood", 501)
        return None
    if length is None:
        return 0
    if _LENGTH.fullmatch(length) is None:
        raise BadMessage("content-length is not one number")
    return int(length)


def _expects_continue(expected: bytes) -> bool:
    if expected and expected.lower() != b"100-continue":
        raise BadMessage("only 100-continue can be expected", 417)
    return bool(expected)
