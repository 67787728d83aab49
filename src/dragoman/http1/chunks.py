"""A body that comes in chunks."""

from __future__ import annotations

import re

from dragoman.http1.heads import BadMessage, read_fields

_MAX_LINE_BYTES = 8 * 1024
_SIZE_LINE = re.compile(rb"([0-9a-fA-F]{1,15})[ \t]*(?:;[^\x00\r\n]*)?\r\n")
_HEXADECIMAL = b"0123456789abcdefABCDEF"
_USUAL_SIZE = 12  # digits of a chunk's length, with the line break
_FRAMING = 4  # times the body: a chunk of a single byte has five
_FREE_FRAMING_BYTES = 64 * 1024


class ChunkReader:
    """(size CRLF data CRLF)* 0 CRLF trailer CRLF. `feed` gives back what the bytes bring of the body.

    When it is `over`, `rest` is what stands behind the end. Chunks of hardly anything cost more to read than to send:
    there is an end to how much of what comes may be framing, where many of them come together.
    """

    __slots__ = ("_begun", "_between", "_in_trailer", "_left", "_spare", "_trailer_bytes", "over", "rest")

    def __init__(self) -> None:
        self.over = False
        self.rest = b""
        self._between = True  # two chunks, or before the first: nothing is begun
        self._begun = b""  # a line that is not whole yet
        self._left = 0  # of this chunk, with the line break behind it
        self._in_trailer = False
        self._trailer_bytes = 0
        self._spare = _FREE_FRAMING_BYTES  # of framing

    def feed(self, data: bytes) -> bytes:
        if self._between:
            end = data.find(b"\r\n", 0, _USUAL_SIZE)
            length = len(data) - end - 4
            # A stream is nearly always read chunk by chunk.
            if length > 0 and data[:end].lower() == b"%x" % length and data.endswith(b"\r\n"):
                return data[end + 2 : -2]
        elif self._begun:
            data, self._begun = self._begun + data, b""
        return self._read(data)

    def _read(self, data: bytes) -> bytes:
        pieces: list[bytes] = []
        at, end = 0, len(data)
        while at < end and not self.over:
            if self._left:
                at = self._read_chunk(data, at, pieces)
            elif self._in_trailer:
                at = self._read_trailer(data, at)
            else:
                at = self._begin_chunk(data, at)
        self._between = not (self._left or self._begun or self._in_trailer)
        if self.over:
            self.rest = data[at:]
        body = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._spare += (_FRAMING + 1) * len(body) - at + len(self._begun)
        if self._spare < 0:
            raise BadMessage("hardly anything but the lengths of chunks")
        return body

    def _begin_chunk(self, data: bytes, at: int) -> int:
        end = data.find(b"\r\n", at, at + _USUAL_SIZE)
        size = data[at:end]
        # Nearly always; a regular expression takes five times as long for it.
        if end > at and not size.strip(_HEXADECIMAL):
            self._expect(int(size, 16))
            return end + 2
        found = _SIZE_LINE.match(data, at)
        if found is None:
            if data.find(b"\n", at) >= 0 or len(data) - at > _MAX_LINE_BYTES:
                raise BadMessage("a chunk has no length")
            self._begun = data[at:]
            return len(data)
        self._expect(int(found[1], 16))
        return found.end()

    def _expect(self, size: int) -> None:
        self._in_trailer = size == 0
        self._left = size + 2 if size else 0

    def _read_chunk(self, data: bytes, at: int, pieces: list[bytes]) -> int:
        """What is here of the chunk; its line break is kept back until both bytes of it are here."""
        left = self._left
        here = min(left - 2, len(data) - at)
        if here:
            pieces.append(data[at : at + here])
            self._left = left = left - here
            at += here
        if left > 2 or len(data) == at:
            return at
        if len(data) - at == 1:
            self._begun = data[at:]
            return len(data)
        if not data.startswith(b"\r\n", at):
            raise BadMessage("a chunk is longer than it says")
        self._left = 0
        return at + 2

    def _read_trailer(self, data: bytes, at: int) -> int:
        """Fields up to an empty line; nobody needs what they say."""
        end = data.find(b"\r\n", at)
        line_bytes = (len(data) if end < 0 else end) - at
        if self._trailer_bytes + line_bytes > _MAX_LINE_BYTES:
            raise BadMessage("the trailer is too long", 431)
        if end < 0:
            self._begun = data[at:]
            return len(data)
        self._trailer_bytes += line_bytes + 2
        read_fields(data[at:end], 0)
        self.over = end == at
        return end + 2
