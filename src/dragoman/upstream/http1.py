"""Answers of HTTP/1.1 out of bytes in any slicing: pure, linear and bounded.

Only what a client that posts needs: no upgrades, no answers without a question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from dragoman.http1.chunks import ChunkReader
from dragoman.http1.heads import BadMessage, HeadCollector, keeps_alive, read_fields
from dragoman.upstream.inflate import Inflater

_MAX_HEAD_BYTES = 64 * 1024
_END = b"\r\n\r\n"
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)")
_STATUS_BYTES = 12
_WORDS = re.compile(rb"(?: [^\r\n]*)?(?:\r\n|\Z)")  # behind the status
_LENGTH = re.compile(rb"\d{1,18}")
_LENGTHS = re.compile(rb"\r\ncontent-length:[ \t]*([^\r\n]*)", re.IGNORECASE)
_ANY_NUMBER = bytes.maketrans(b"123456789", b"000000000")
_NEITHER_NOR = frozenset({204, 304})  # have no body, whatever their headers say
_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})
_KNOWN_SHAPES = 128
_USUAL_BYTES = 2 * 1024  # of a head that is remembered

BrokenAnswer = BadMessage


class Head(msgspec.Struct, frozen=True):
    """`lines` are what stands behind the status, as it came."""

    status: int
    lines: bytes
    keeps_alive: bool

    @property
    def headers(self) -> Mapping[str, str]:
        """Names are in lower case; of a repeated header the last one counts."""
        return _headers(self.lines)


class Framing(msgspec.Struct, frozen=True):
    """What a head says of its body and its connection, whatever the numbers in it."""

    lengths: tuple[tuple[int, int], ...]  # where in the lines they stand
    encoding: str
    transfer: str | None
    keeps_alive: tuple[bool, bool]  # if it is HTTP/1.0, and if it is 1.1


class AnswerReader:
    """`feed` gives back what the bytes bring of the body; `head` is known when its last byte has come.

    When it is `over` nothing may follow. `close` says that no more bytes come, which may be the end or a break.
    """

    head: Head | None = None
    over = False
    _left: int | None = 0  # bytes of the body; None: until the connection ends
    _chunks: ChunkReader | None = None
    _inflater: Inflater | None = None
    _collector: HeadCollector | None = None  # of a head that comes in pieces

    def feed(self, data: bytes) -> bytes:
        if self.head is None:
            data = self._read_heads(data)
            if self.head is None:
                return b""
        if self.over:
            if data:
                raise BrokenAnswer("bytes behind the end")
            return b""
        chunks = self._chunks
        if chunks is None:
            body = self._read_plain(data)
        else:
            body = chunks.feed(data)
            if chunks.over:
                self._end_with(chunks)
        return body if self._inflater is None else self._inflated(self._inflater, body)

    def close(self) -> None:
        if self.head is not None and self._left is None:
            if self._inflater is not None:
                self._inflater.close()
            self.over = True
        if not self.over:
            raise BrokenAnswer("the connection ended too soon")

    def _read_heads(self, data: bytes) -> bytes:
        """What stands behind the head. Heads that only announce another one are passed over."""
        while self.head is None:
            end = data.find(_END) if self._collector is None else -1
            if 0 <= end <= _MAX_HEAD_BYTES:  # nearly always
                self._read_head(data[:end])
                data = data[end + 4 :]
                continue
            collector = self._collector = self._collector or HeadCollector(_MAX_HEAD_BYTES)
            raw = collector.feed(data)
            if raw is None:
                return b""
            data, self._collector = collector.rest, None
            self._read_head(raw)
        return data

    def _read_head(self, raw: bytes) -> None:
        modern, status = _status(raw[:_STATUS_BYTES])
        lines = raw[_STATUS_BYTES:]
        shape = lines.translate(_ANY_NUMBER)
        framing = _framing(shape) if len(shape) <= _USUAL_BYTES else _find_framing(shape)
        lengths = framing.lengths
        if len(lengths) > 1 and len({lines[start:end] for start, end in lengths}) > 1:
            raise BrokenAnswer("it has two lengths")
        if status == 101:
            raise BrokenAnswer("it changes the protocol")
        if status >= 200:
            head = self.head = Head(status, lines, framing.keeps_alive[modern])
            self._expect_body(head, framing)

    def _expect_body(self, head: Head, framing: Framing) -> None:
        if framing.encoding in _CODINGS:  # nobody asked for it
            self._inflater = Inflater()
        elif framing.encoding != "identity":
            raise BrokenAnswer(f"it is encoded as {head.headers['content-encoding'].lower()!r}")
        if head.status in _NEITHER_NOR:
            self.over = True
        elif framing.transfer is not None:
            if framing.transfer != "chunked":
                raise BrokenAnswer(f"it is transferred as {head.headers['transfer-encoding']!r}")
            self._chunks = ChunkReader()
        elif framing.lengths:
            start, end = framing.lengths[0]
            length = head.lines[start:end]
            if not _LENGTH.fullmatch(length):
                raise BrokenAnswer(f"its length is {length.decode('latin-1')!r}")
            self._left = int(length)
            self.over = self._left == 0
        else:
            self._left = None

    def _read_plain(self, data: bytes) -> bytes:
        if self._left is not None:
            self._left -= len(data)
            if self._left < 0:
                raise BrokenAnswer("bytes behind the end")
            self.over = self._left == 0
        return data

    def _end_with(self, chunks: ChunkReader) -> None:
        self.over = True
        if chunks.rest:
            raise BrokenAnswer("bytes behind the end")

    def _inflated(self, inflater: Inflater, body: bytes) -> bytes:
        over, self.over = self.over, False  # not before all of it could be read
        unpacked = inflater.feed(body)
        if over:
            inflater.close()
        self.over = over
        return unpacked


@lru_cache(maxsize=_KNOWN_SHAPES)
def _status(line: bytes) -> tuple[bool, int]:
    """Whether it is HTTP/1.1, and what it says."""
    found = _STATUS.fullmatch(line)
    if found is None:
        raise BrokenAnswer("this is not HTTP/1.1")
    return found[1] == b"1", int(found[2])


def _find_framing(shape: bytes) -> Framing:
    """Of the lines behind a status, with a zero for every digit: answers of the same service differ in nothing else."""
    headers = _headers(shape)
    options = headers.get("connection")
    stays = (False, True)
    if options is not None:
        said = options.encode("latin-1")
        stays = keeps_alive(said, modern=False), keeps_alive(said, modern=True)
    transfer = headers.get("transfer-encoding")
    return Framing(
        tuple(
            (found.start(1), len(found[0].rstrip(b" \t")) + found.start())
            for found in _LENGTHS.finditer(shape)
        ),
        headers.get("content-encoding", "identity").lower(),
        None if transfer is None else transfer.lower(),
        stays,
    )


_framing = lru_cache(maxsize=_KNOWN_SHAPES)(_find_framing)


def _headers(lines: bytes) -> dict[str, str]:
    words = _WORDS.match(lines)
    if words is None:
        raise BrokenAnswer("this is not HTTP/1.1")
    fields = read_fields(lines, words.end())
    return {name.decode("ascii"): value.decode("latin-1") for name, value in fields}
