"""Server-sent events: an incremental decoder and an encoder, without I/O.

See https://html.spec.whatwg.org/multipage/server-sent-events.html. Decoding takes linear time for any slicing of the
input, and the size of an event is limited.
"""

from __future__ import annotations

import msgspec

from dragoman.errors import UpstreamProtocolError

MAX_EVENT_BYTES = 64 * 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: Line separators of Unicode (NEL, LS, PS) that SSE does not treat as line ends, and their JSON escapes.
_SEPARATORS = ((b"\xc2\x85", b"\\u0085"), (b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"))


def escape_line_separators(events: bytes) -> bytes:
    """Escape Unicode line separators in events whose data is JSON.

    Some clients, Google's Python SDK among them, split lines with `str.splitlines`, which breaks at them.
    """
    if not events.isascii():
        for separator, escape in _SEPARATORS:
            events = events.replace(separator, escape)
    return events


class ServerEvent(msgspec.Struct, frozen=True):
    event: str
    data: bytes


class SseDecoder:
    """The WHATWG event stream parser: `feed` takes bytes and returns complete events.

    Lines end in LF, CR or CRLF; the data lines of one event are joined with LF. Comments, `id`, `retry` and a leading
    byte order mark are ignored. Unlike the specification, `close` returns an event that is not terminated by an
    empty line, because some servers omit it.
    """

    def __init__(self, max_event_bytes: int = MAX_EVENT_BYTES) -> None:
        self._max_event_bytes = max_event_bytes
        self._unfinished: list[bytes] = []
        self._data: list[bytes] = []
        self._event = b""
        self._kept_bytes = 0
        self._unfinished_bytes = 0
        self._at_start = True
        self._after_cr = False

    def feed(self, data: bytes) -> list[ServerEvent]:
        if self._at_start:
            data = data.lstrip(_BYTE_ORDER_MARK)
            self._at_start = not data
        if self._after_cr and data:
            self._after_cr = False
            data = data.removeprefix(b"\n")
        if not data:
            return []
        if b"\n" not in data and b"\r" not in data:
            self._unfinished.append(data)
            self._unfinished_bytes += len(data)
            self._check_size(self._unfinished_bytes)
            return []
        lines = b"".join((*self._unfinished, data)).splitlines(keepends=True)
        self._unfinished = [] if lines[-1].endswith((b"\n", b"\r")) else [lines.pop()]
        self._unfinished_bytes = sum(map(len, self._unfinished))
        self._after_cr = data.endswith(b"\r")
        events = [event for line in lines if (event := self._line(line.rstrip(b"\r\n"))) is not None]
        self._check_size(self._unfinished_bytes)
        return events

    @property
    def is_between_events(self) -> bool:
        """Whether no event is incomplete, so that the next byte starts a new one."""
        return not (self._unfinished or self._data or self._event or self._after_cr or self._at_start)

    def close(self) -> list[ServerEvent]:
        rest = b"".join(self._unfinished)
        self._unfinished = []
        events = (self._line(rest) if rest else None, self._line(b""))
        return [event for event in events if event is not None]

    def _line(self, line: bytes) -> ServerEvent | None:
        if not line:
            return self._dispatch()
        self._check_size(len(line))
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._kept_bytes += len(line)
        elif name == b"event":
            self._event = value
        return None

    def _dispatch(self) -> ServerEvent | None:
        data, event = self._data, self._event
        self._data, self._event, self._kept_bytes = [], b"", 0
        if not data:
            return None
        return ServerEvent(event.decode("utf-8", "replace"), b"\n".join(data))

    def _check_size(self, more_bytes: int) -> None:
        if self._kept_bytes + more_bytes > self._max_event_bytes:
            raise UpstreamProtocolError(
                f"an event of the stream is longer than {self._max_event_bytes} bytes"
            )


def encode_event(event: str, data: bytes) -> bytes:
    """Encode one event; `data` must not have line breaks."""
    return b"event: %b\ndata: %b\n\n" % (event.encode(), data)
