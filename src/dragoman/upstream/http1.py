"""Answers of HTTP/1.1 out of bytes in any slicing: pure, linear and bounded.

Only what a client that posts needs: no upgrades, no answers without a question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from dragoman.http1.chunks import ChunkReader
from dragoman.http1.heads import BadMessage, HeadCollector, keeps_alive, read_fields
from dragoman.upstream.inflate import Inflater

_MAX_HEAD_BYTES = 64 * 1024
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5]\d\d)(?: [^\r\n]*)?(?:\r\n|\Z)")
_LENGTH = re.compile(r"\d{1,18}")
_NEITHER_NOR = frozenset({204, 304})  # have no body, whatever their headers say
_CODINGS = frozenset({"gzip", "x-gzip", "deflate"})

BrokenAnswer = BadMessage


class Head(msgspec.Struct, frozen=True):
    """Header names are in lower case; of a repeated header the last one counts."""

    status: int
    headers: Mapping[str, str]
    keeps_alive: bool


class AnswerReader:
    """`feed` gives back what the bytes bring of the body; `head` is known when its last byte has come.

    When it is `over` nothing may follow. `close` says that no more bytes come, which may be the end or a break.
    """

    head: Head | None = None
    over = False
    _left: int | None = 0  # bytes of the body; None: until the connection ends
    _chunks: ChunkReader | None = None
    _inflater: Inflater | None = None

    def __init__(self) -> None:
        self._collector = HeadCollector(_MAX_HEAD_BYTES)

    def feed(self, data: bytes) -> bytes:
        if self.head is None:
            data = self._read_head(data)
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

    def _read_head(self, data: bytes) -> bytes:
        """What stands behind the head. Heads that only announce another one are passed over."""
        while self.head is None:
            raw = self._collector.feed(data)
            if raw is None:
                return b""
            data, self._collector.rest = self._collector.rest, b""
            head = _read_head(raw)
            if head.status >= 200:
                self.head = head
                self._expect_body(head)
            elif head.status == 101:
                raise BrokenAnswer("it changes the protocol")
        return data

    def _expect_body(self, head: Head) -> None:
        coding = head.headers.get("content-encoding", "identity").lower()
        if coding in _CODINGS:  # nobody asked for it
            self._inflater = Inflater()
        elif coding != "identity":
            raise BrokenAnswer(f"it is encoded as {coding!r}")
        transfer, length = head.headers.get("transfer-encoding"), head.headers.get("content-length")
        if head.status in _NEITHER_NOR:
            self.over = True
        elif transfer is not None:
            if transfer.lower() != "chunked":
                raise BrokenAnswer(f"it is transferred as {transfer!r}")
            self._chunks = ChunkReader()
        elif length is not None:
            if not _LENGTH.fullmatch(length):
                raise BrokenAnswer(f"its length is {length!r}")
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


def _read_head(raw: bytes) -> Head:
    status = _STATUS_LINE.match(raw)
    if status is None:
        raise BrokenAnswer("this is not HTTP/1.1")
    headers: dict[str, str] = {}
    for name, value in read_fields(raw, status.end()):
        key, said = name.decode("ascii"), value.decode("latin-1")
        if key == "content-length" and headers.get(key, said) != said:
            raise BrokenAnswer("it has two lengths")
        headers[key] = said
    modern, options = status[1] == b"1", headers.get("connection")
    stays = modern if options is None else keeps_alive(options.encode("latin-1"), modern=modern)
    return Head(int(status[2]), headers, stays)
