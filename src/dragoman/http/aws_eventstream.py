"""Amazon's event stream encoding (application/vnd.amazon.eventstream): a decoder and an encoder, without I/O.

The format of a message (https://smithy.io/2.0/aws/amazon-eventstream.html), all numbers big-endian:

    total length (4)  length of headers (4)  CRC-32 of these eight bytes (4)
    headers           each: length of name (1), name, type (1), value
    payload
    CRC-32 of everything before it (4)
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from zlib import crc32

import msgspec

from dragoman.errors import UpstreamIncomplete, UpstreamProtocolError

STREAM_TYPE = "application/vnd.amazon.eventstream"
MAX_MESSAGE_BYTES = 24 * 1024 * 1024
_MAX_HEADERS_BYTES = 128 * 1024
_MAX_NAME_BYTES = 255
_MAX_VALUE_BYTES = 32 * 1024 - 1  # the specified limit, although the length field has 16 bits
_PRELUDE = struct.Struct(">III")
_LENGTHS = struct.Struct(">II")
_SHORT = struct.Struct(">H")
_CRC = struct.Struct(">I")
_FRAME_BYTES = _PRELUDE.size + _CRC.size
_STRING = 7
#: Size of a header's value by its type; byte arrays (6) and strings (7) have a length field instead.
_FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_SIZED = frozenset({6, _STRING})


class EventMessage(msgspec.Struct, frozen=True):
    """A decoded message; only headers of type string are kept."""

    headers: dict[str, str]
    payload: bytes


def encode_message(headers: Mapping[str, str], payload: bytes) -> bytes:
    return _frame(_encode_headers(headers), payload)


def encode_event_headers(event_type: str) -> bytes:
    """Return the encoded headers of an event; they are the same for all events of a type."""
    return _encode_headers(
        {":event-type": event_type, ":content-type": "application/json", ":message-type": "event"}
    )


def encode_event(head: bytes, payload: bytes) -> bytes:
    """Encode an event with headers from `event_head`."""
    return _frame(head, payload)


def encode_exception(exception_type: str, payload: bytes) -> bytes:
    headers = {
        ":exception-type": exception_type,
        ":content-type": "application/json",
        ":message-type": "exception",
    }
    return encode_message(headers, payload)


class EventStreamDecoder:
    """`feed` takes bytes and returns complete messages; `close` raises `UpstreamCut` if a message is incomplete.

    If a message is damaged, the complete messages before it are returned first, and the next call raises
    `UpstreamGarbage`: the result does not depend on the slicing of the input.
    """

    def __init__(self, max_message_bytes: int = MAX_MESSAGE_BYTES) -> None:
        self._max_message_bytes = max_message_bytes
        self._buffer = bytearray()
        self._need = _PRELUDE.size  # buffered bytes needed for the next step
        self._damage = ""

    def feed(self, data: bytes) -> list[EventMessage]:
        self._raise_damage()
        self._buffer += data
        if len(self._buffer) < self._need:
            return []
        raw = bytes(self._buffer)
        messages: list[EventMessage] = []
        place = 0
        try:
            while len(raw) - place >= self._need:
                total, head = self._prelude(raw, place)
                if len(raw) - place < total:
                    self._need = total
                    break
                messages.append(_decode_message(raw[place : place + total], head))
                place += total
                self._need = _PRELUDE.size
        except UpstreamProtocolError as damage:
            self._damage = damage.message
            if not messages:
                raise
        del self._buffer[:place]
        return messages

    def close(self) -> None:
        self._raise_damage()
        if self._buffer:
            raise UpstreamIncomplete("the event stream ends inside a message")

    def _raise_damage(self) -> None:
        if self._damage:
            raise UpstreamProtocolError(self._damage)

    def _prelude(self, raw: bytes, place: int) -> tuple[int, int]:
        total, head, checksum = _PRELUDE.unpack_from(raw, place)
        if checksum != crc32(raw[place : place + _LENGTHS.size]):
            raise UpstreamProtocolError("the checksum of a message's prelude is wrong")
        if total > self._max_message_bytes:
            raise UpstreamProtocolError(f"a message of the event stream is too long: {total} bytes")
        if head > _MAX_HEADERS_BYTES:
            raise UpstreamProtocolError(f"the headers of a message are too long: {head} bytes")
        if total < head + _FRAME_BYTES:
            raise UpstreamProtocolError("a message of the event stream is shorter than its headers")
        return total, head


def _frame(head: bytes, payload: bytes) -> bytes:
    lengths = _LENGTHS.pack(len(head) + len(payload) + _FRAME_BYTES, len(head))
    start = b"%b%b%b" % (lengths, _CRC.pack(crc32(lengths)), head)
    return b"%b%b%b" % (start, payload, _CRC.pack(crc32(payload, crc32(start))))


def _encode_headers(headers: Mapping[str, str]) -> bytes:
    return b"".join(_encode_header(name.encode(), value.encode()) for name, value in headers.items())


def _encode_header(name: bytes, value: bytes) -> bytes:
    if not 0 < len(name) <= _MAX_NAME_BYTES or len(value) > _MAX_VALUE_BYTES:
        raise ValueError(f"no header of an event stream: {name[:40]!r} with {len(value)} bytes")
    return b"%c%b%c%b%b" % (len(name), name, _STRING, _SHORT.pack(len(value)), value)


def _decode_message(raw: bytes, head: int) -> EventMessage:
    if _CRC.unpack_from(raw, len(raw) - _CRC.size)[0] != crc32(memoryview(raw)[: -_CRC.size]):
        raise UpstreamProtocolError("the checksum of a message is wrong")
    end = _PRELUDE.size + head
    return EventMessage(_decode_headers(raw[_PRELUDE.size : end]), raw[end : -_CRC.size])


def _decode_headers(raw: bytes) -> dict[str, str]:
    seen: dict[str, str | None] = {}
    place = 0
    try:
        while place < len(raw):
            name_end = place + 1 + raw[place]
            name, kind = raw[place + 1 : name_end].decode(), raw[name_end]
            place = name_end + 1
            size = _FIXED.get(kind)
            if kind in _SIZED:
                size = _SHORT.unpack_from(raw, place)[0]
                place += _SHORT.size
            if size is None or place + size > len(raw) or name in seen:
                raise UpstreamProtocolError("a header of the event stream cannot be read")
            seen[name] = raw[place : place + size].decode() if kind == _STRING else None
            place += size
    except (IndexError, struct.error, UnicodeDecodeError):
        raise UpstreamProtocolError("a header of the event stream cannot be read") from None
    return {name: value for name, value in seen.items() if value is not None}
