"""HTTP/1.1 requests out of bytes, without any I/O."""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 100 * 1024 * 1024

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST_LINE = re.compile(rb"(%b) ([\x21-\x7e\x80-\xff]+) HTTP/(\d)\.(\d)" % _TOKEN)
_FIELD = re.compile(rb"(%b):[ \t]*([^\x00\r]*?)[ \t]*" % _TOKEN)
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;.*)?")
_MAY_BEGIN = re.compile(rb"[\r\n!#$%&'*+\-.^_`|~0-9A-Za-z]")

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


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    verb: str
    target: str
    fields: Fields
    modern: bool

    def values(self, name: str) -> list[str]:
        """The members of a list field, in lower case."""
        found = ",".join(value for field, value in self.fields if field == name)
        return [word.strip().lower() for word in found.split(",") if word.strip()]

    @property
    def keep_alive(self) -> bool:
        words = self.values("connection")
        return "close" not in words if self.modern else "keep-alive" in words


class _Bad(Exception):
    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class RequestParser:
    """Events in the order they came: ([Continue] Request)* [Malformed].

    Lines may end with LF alone; white space in front of a colon, folded fields and two ways of saying how
    long the body is are refused, because two programs would understand them differently.
    """

    def __init__(self, *, max_head_bytes: int = MAX_HEAD_BYTES, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_head_bytes = max_head_bytes
        self._max_body_bytes = max_body_bytes
        self._buffer = bytearray()
        self._searched = 0  # no line ends before this place
        self._line_bytes = 0  # of the lines that belong together
        self._lines: list[bytes] = []
        self._body = bytearray()
        self._wanted = 0
        self._events: list[Event] = []
        self._step: Callable[[], bool] = self._read_head

    def feed(self, data: bytes) -> list[Event]:
        self._buffer += data
        self._events = []
        try:
            while self._step():
                pass
        except _Bad as bad:
            self._events.append(Malformed(bad.status, bad.why))
            self._step = self._ignore
        return self._events

    def _ignore(self) -> bool:
        self._buffer.clear()
        return False

    def _read_head(self) -> bool:
        line = self._take_line()
        if line is None:
            return False
        if line:
            self._lines.append(line)
        elif self._lines:  # empty lines in front of a request are allowed
            self._head = _parse_head(self._lines)
            self._lines = []
            self._line_bytes = 0
            self._step = self._choose_body()
        return True

    def _choose_body(self) -> Callable[[], bool]:
        length = _body_length(self._head)
        self._body = bytearray()
        self._wanted = length or 0
        if self._wanted > self._max_body_bytes:
            raise _Bad(413, f"the body is longer than {self._max_body_bytes} bytes")
        expected = self._head.values("expect")
        if expected not in ([], ["100-continue"]):
            raise _Bad(417, "only 100-continue can be expected")
        if expected and self._head.modern and length != 0 and not self._buffer:
            self._events.append(Continue())
        return self._read_chunk_size if length is None else self._read_sized

    def _read_sized(self) -> bool:
        if len(self._buffer) < self._wanted:
            return False
        self._body = self._buffer[: self._wanted]
        del self._buffer[: self._wanted]
        return self._complete()

    def _read_chunk_size(self) -> bool:
        line = self._take_line()
        if line is None:
            return False
        found = _CHUNK_SIZE.fullmatch(line)
        if found is None:
            raise _Bad(400, "a chunk begins with its size")
        self._wanted = int(found[1], 16)
        self._line_bytes = 0
        if len(self._body) + self._wanted > self._max_body_bytes:
            raise _Bad(413, f"the body is longer than {self._max_body_bytes} bytes")
        self._step = self._read_chunk if self._wanted else self._read_trailers
        return True

    def _read_chunk(self) -> bool:
        end = self._wanted + 2
        if len(self._buffer) < end:
            return False
        if self._buffer[self._wanted : end] != b"\r\n":
            raise _Bad(400, "a chunk is not as long as it says")
        self._body += self._buffer[: self._wanted]
        del self._buffer[:end]
        self._step = self._read_chunk_size
        return True

    def _read_trailers(self) -> bool:
        line = self._take_line()
        if line:
            return True
        return False if line is None else self._complete()

    def _complete(self) -> bool:
        head = self._head
        self._events.append(
            Request(
                verb=head.verb,
                target=head.target,
                fields=head.fields,
                body=bytes(self._body),
                modern=head.modern,
                keep_alive=head.keep_alive,
            )
        )
        self._body = bytearray()
        self._line_bytes = 0
        self._step = self._read_head
        return True

    def _take_line(self) -> bytes | None:
        buffer = self._buffer
        if buffer and not self._lines and self._step == self._read_head and not _MAY_BEGIN.match(buffer):
            raise _Bad(400, "this is not HTTP; the emulator speaks plain http, not https")
        end = buffer.find(b"\n", self._searched)
        self._searched = len(buffer) if end < 0 else 0
        if self._line_bytes + (len(buffer) if end < 0 else end + 1) > self._max_head_bytes:
            raise _Bad(431, f"the head is longer than {self._max_head_bytes} bytes")
        if end < 0:
            return None
        line = bytes(buffer[:end]).removesuffix(b"\r")
        del buffer[: end + 1]
        self._line_bytes += end + 1
        return line


def _parse_head(lines: list[bytes]) -> _Head:
    found = _REQUEST_LINE.fullmatch(lines[0])
    if found is None:
        raise _Bad(400, "the first line is no request line")
    verb, target, major, minor = (group.decode("latin-1") for group in found.groups())
    if major != "1":
        raise _Bad(505, "the emulator speaks HTTP/1.1")
    fields = tuple(map(_parse_field, lines[1:]))
    head = _Head(verb=verb, target=target, fields=fields, modern=minor != "0")
    if head.modern and len([name for name, _ in fields if name == "host"]) != 1:
        raise _Bad(400, "a request names its host, once")
    return head


def _parse_field(line: bytes) -> tuple[str, str]:
    found = _FIELD.fullmatch(line)
    if found is None:
        raise _Bad(400, "a header line is not `name: value`")
    return found[1].decode("latin-1").lower(), found[2].decode("latin-1")


def _body_length(head: _Head) -> int | None:
    """The length of the body, None if it comes in chunks."""
    lengths, codings = set(head.values("content-length")), head.values("transfer-encoding")
    if codings:
        if lengths:
            raise _Bad(400, "content-length and transfer-encoding together")
        if codings != ["chunked"]:
            raise _Bad(501, "only the chunked transfer-encoding is understood")
        return None
    if not lengths:
        return 0
    length = lengths.pop()
    if lengths or not re.fullmatch(r"[0-9]{1,18}", length):
        raise _Bad(400, "content-length is not one number")
    return int(length)
