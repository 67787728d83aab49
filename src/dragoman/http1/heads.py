"""The head of a message: lines up to an empty one."""

from __future__ import annotations

import re
from collections.abc import Mapping

MAX_FIELDS = 100

HEAD_END = b"\r\n\r\n"
_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]++")
_MOST_NAMES = 512  # that are remembered
_LONGEST_NAME = 64  # of those
_BARE_LINE_FEED = re.compile(rb"(?<!\r)\n")

Fields = list[tuple[bytes, bytes]]


class BadMessage(Exception):
    """These bytes are no message of HTTP/1.1; the status is for whoever sent them, if that was a request."""

    def __init__(self, why: str, status: int = 400) -> None:
        super().__init__(why)
        self.why = why
        self.status = status


class HeadCollector:
    """`feed` gives back the head without its empty line when it is whole; `rest` is what stands behind it."""

    __slots__ = ("_buffer", "_max_bytes", "_searched", "begun_bytes", "rest")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._buffer = bytearray()
        self._searched = 0  # no head ends before this place
        self.begun_bytes = 0
        self.rest = b""

    def feed(self, data: bytes) -> bytes | None:
        if not self.begun_bytes:
            end = data.find(HEAD_END)
            if 0 <= end <= self._max_bytes:  # nearly always
                self.rest = data[end + 4 :]
                return data[:end]
        buffer = self._buffer
        buffer += data
        end = buffer.find(HEAD_END, self._searched)
        if end < 0:
            self._check(len(buffer))
            if _BARE_LINE_FEED.search(buffer, self._searched):
                raise BadMessage("a line ends with a line feed alone")
            self._searched = max(0, len(buffer) - 3)
            self.begun_bytes = len(buffer)
            return None
        self._check(end)
        head, self.rest = bytes(buffer[:end]), bytes(buffer[end + 4 :])
        self._buffer, self._searched, self.begun_bytes = bytearray(), 0, 0
        return head

    def _check(self, size: int) -> None:
        if size > self._max_bytes:
            raise BadMessage(f"the head is longer than {self._max_bytes} bytes", 431)


def read_fields(head: bytes, start: int) -> Fields:
    """The fields that stand in the head from `start` on; names in lower case, values without the space around them."""
    if start >= len(head):
        return []
    lines = (head[start:] if start else head).split(b"\r\n")
    if len(lines) > MAX_FIELDS:
        raise BadMessage(f"there are more than {MAX_FIELDS} headers", 431)
    breaks = len(lines) - 1
    pairs = [line.split(b":", 1) for line in lines]
    try:
        fields = [(_NAMES.get(name) or _learn(name), value.strip(b" \t")) for name, value in pairs]
    except ValueError:  # a line without a colon
        raise BadMessage(_NO_FIELD) from None
    if b"\0" in head or head.count(b"\n", start) != breaks or head.count(b"\r", start) != breaks:
        raise BadMessage(_NO_FIELD)
    return fields


_NO_FIELD = "a header line is not `name: value`"
_NAMES: dict[bytes, bytes] = {}


def may_remember(name: bytes, known: Mapping[bytes, object]) -> bool:
    """Names come again with every request; strangers' inventions are not to fill the memory."""
    return len(name) <= _LONGEST_NAME and len(known) < _MOST_NAMES


def _learn(name: bytes) -> bytes:
    """The name in lower case. Everybody sends the same few: each is looked at once."""
    if _NAME.fullmatch(name) is None:  # folded lines begin with a space
        raise BadMessage(_NO_FIELD)
    lower = name.lower()
    if may_remember(name, _NAMES):
        _NAMES[name] = lower
    return lower


def keeps_alive(options: bytes, *, modern: bool) -> bool:
    """Whether the connection goes on behind this message; `options` is what its `connection` fields say."""
    words = [word.strip(b" \t") for word in options.lower().split(b",")]
    return b"close" not in words if modern else b"keep-alive" in words and b"close" not in words
