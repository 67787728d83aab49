"""Split Google's answers into JSON documents.

A stream is framed as server-sent events (`alt=sse`) or as one JSON array; an answer that is not streamed is a
single object.
"""

from __future__ import annotations

import re

from dragoman.errors import UpstreamProtocolError
from dragoman.http.sse import MAX_EVENT_BYTES, SseDecoder

_OUTSIDE = re.compile(rb'["{}\[\]]')
_INSIDE = re.compile(rb'["\\]')
_LEADING = b" \t\r\n\xef\xbb\xbf"  # white space and the byte order mark
_FIELD = b"data: "
_OBJECT = _FIELD + b"{"
_END = b"\r\n\r\n"
_NO_DOCUMENT = (b"", b"[DONE]")


class FrameDecoder:
    """Decodes bytes, in chunks of any size, into complete JSON documents; the first byte selects the framing."""

    def __init__(self) -> None:
        self._decoder: SseFrames | ArrayFrames | WholeFrame | None = None

    def feed(self, data: bytes) -> list[bytes]:
        if self._decoder is None:
            data = data.lstrip(_LEADING)
            if not data:
                return []
            self._decoder = _FRAMINGS.get(data[:1], SseFrames)()
        return self._decoder.feed(data)

    def close(self) -> list[bytes]:
        return [] if self._decoder is None else self._decoder.close()

    def settled(self) -> Frames:
        """Return the decoder of the detected framing, to save a call for every chunk."""
        return self._decoder or self


class SseFrames:
    """Server-sent events, with a fast path for reads that contain complete one-line events."""

    def __init__(self) -> None:
        self._sse = SseDecoder()
        self._between_events = False

    def feed(self, data: bytes) -> list[bytes]:
        if self._between_events:
            end = data.find(b"\r")
            one_line = data[end:] == _END and data.find(b"\n") == end + 1
            if one_line and data.startswith(_OBJECT) and end < MAX_EVENT_BYTES:
                return [data[len(_FIELD) : end]]  # exactly one event: the usual read of a slow stream
            return self._feed_events(data)
        place = data.find(_END)
        partial = data if place < 0 else data[: place + len(_END)]
        frames = self._feed(partial)
        data = data[len(partial) :]
        return frames + self.feed(data) if data else frames

    def _feed_events(self, data: bytes) -> list[bytes]:
        whole, _, partial = data.rpartition(_END)
        frames = _plain_frames(whole)
        rest = partial if frames else data
        return frames + self._feed(rest) if rest else frames

    def _feed(self, data: bytes) -> list[bytes]:
        frames = [event.data for event in self._sse.feed(data) if event.data.strip() not in _NO_DOCUMENT]
        self._between_events = self._sse.is_between_events
        return frames

    def close(self) -> list[bytes]:
        return [event.data for event in self._sse.close() if event.data.strip() not in _NO_DOCUMENT]


def _plain_frames(events: bytes) -> list[bytes]:
    """Return the data of all events if each is a single `data: {…}` line; otherwise an empty list."""
    lines = events.splitlines()
    frames = [line[len(_FIELD) :] for line in lines[::2] if line.startswith(_OBJECT)]
    plain = len(lines) == 2 * len(frames) - 1 and not any(lines[1::2]) and len(events) < MAX_EVENT_BYTES
    return frames if plain else []


class WholeFrame:
    """An answer that is not a stream: one JSON object, complete when the bytes end."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> list[bytes]:
        self._size += len(data)
        if self._size > self._max_bytes:
            raise UpstreamProtocolError(f"the answer is longer than {self._max_bytes} bytes")
        self._pieces.append(data)
        return []

    def close(self) -> list[bytes]:
        whole = b"".join(self._pieces).rstrip()
        if not whole.endswith(b"}"):
            raise UpstreamProtocolError("the answer stops in the middle of a JSON document")
        return [whole]


class ArrayFrames:
    """The elements of the array `[{…},{…}]`, each as soon as it is complete."""

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._scanned = 0
        self._start = -1
        self._depth = 0
        self._in_string = False

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        frames: list[bytes] = []
        while (found := self._next()) is not None:
            if found:
                frames.append(found)
        self._discard_scanned()
        self._check_size(len(self._buffer))
        return frames

    def close(self) -> list[bytes]:
        if self._depth:
            raise UpstreamProtocolError("the answer stops in the middle of a JSON document")
        return []

    def _next(self) -> bytes | None:
        """Scan to the next quote, backslash or bracket.

        Return None at the end of the buffer, the document if one ends there, and otherwise `b""`.
        """
        pattern = _INSIDE if self._in_string else _OUTSIDE
        match = pattern.search(self._buffer, self._scanned)
        if match is None:
            self._scanned = len(self._buffer)
            return None
        mark, place = match[0], match.start()
        if mark == b"\\":
            if place + 1 >= len(self._buffer):
                self._scanned = place
                return None
            self._scanned = place + 2
            return b""
        self._scanned = place + 1
        if mark == b'"':
            self._in_string = not self._in_string
            return b""
        return self._bracket(mark, place)

    def _bracket(self, mark: bytes, place: int) -> bytes:
        if self._start < 0 and mark in b"[]":
            return b""  # the array that encloses the documents
        self._depth += 1 if mark in b"[{" else -1
        if self._start < 0:
            self._start = place
        if self._depth:
            return b""
        self._check_size(place + 1 - self._start)
        frame = bytes(self._buffer[self._start : place + 1])
        self._start = -1
        return frame

    def _check_size(self, size: int) -> None:
        if size > self._max_bytes:
            raise UpstreamProtocolError(f"an element of the stream is longer than {self._max_bytes} bytes")

    def _discard_scanned(self) -> None:
        cut = self._scanned if self._start < 0 else self._start
        del self._buffer[:cut]
        self._scanned -= cut
        if self._start >= 0:
            self._start = 0


Frames = FrameDecoder | SseFrames | ArrayFrames | WholeFrame
_FRAMINGS: dict[bytes, type[ArrayFrames] | type[WholeFrame]] = {b"[": ArrayFrames, b"{": WholeFrame}
