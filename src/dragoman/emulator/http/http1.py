"""Whole requests out of bytes, without any I/O."""

from __future__ import annotations

import msgspec

from dragoman.http1.heads import BadMessage
from dragoman.http1.requests import MAX_HEAD_BYTES, RequestHead, RequestReader

MAX_BODY_BYTES = 100 * 1024 * 1024

Fields = tuple[tuple[str, str], ...]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """A whole request; names of fields are in lower case, `modern` is HTTP/1.1."""

    verb: str
    target: str
    fields: Fields
    body: bytes
    modern: bool
    keep_alive: bool


class Continue(msgspec.Struct, frozen=True):
    """The client sends its body when it has seen `100 Continue`."""


class Malformed(msgspec.Struct, frozen=True):
    """What came is no request, or too much of one; nothing after it can be understood."""

    status: int
    why: str


Event = Request | Continue | Malformed


class RequestParser:
    """Events in the order they came: ([Continue] Request)* [Malformed]."""

    def __init__(self, *, max_head_bytes: int = MAX_HEAD_BYTES, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._reader = RequestReader(max_head_bytes)
        self._max_body_bytes = max_body_bytes
        self._pieces: list[bytes] = []
        self._size = 0
        self._begun = False  # the body of this request
        self._deaf = False

    def feed(self, data: bytes) -> list[Event]:
        events: list[Event] = []
        if self._deaf:
            return events
        try:
            self._take(self._reader.feed(data), events)
            while self._reader.over:
                self._take_end(events)
                self._take(self._reader.next(), events)
        except BadMessage as bad:
            self._deaf = True
            events.append(Malformed(bad.status, bad.why))
        return events

    def _take(self, piece: bytes, events: list[Event]) -> None:
        reader = self._reader
        if reader.speaks_http2:
            raise BadMessage("the emulator speaks HTTP/1.1", 505)
        if reader.head is None:
            return
        self._size += len(piece)
        if max(self._size, reader.head.length or 0) > self._max_body_bytes:
            raise BadMessage(f"the body is longer than {self._max_body_bytes} bytes", 413)
        if piece:
            self._pieces.append(piece)
        elif reader.head.expects_continue and not self._begun and not reader.over:
            events.append(Continue())
        self._begun = True

    def _take_end(self, events: list[Event]) -> None:
        if self._reader.head is not None:
            events.append(_whole(self._reader.head, b"".join(self._pieces)))
        self._pieces, self._size, self._begun = [], 0, False


def _whole(head: RequestHead, body: bytes) -> Request:
    return Request(
        verb=head.method,
        target=head.target.decode("ascii"),
        fields=tuple((name.decode("ascii"), value.decode("latin-1")) for name, value in head.fields),
        body=body,
        modern=head.modern,
        keep_alive=head.keeps_alive,
    )
