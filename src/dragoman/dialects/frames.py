"""What stands around the history of a conversation: in its next turn it is what it was, byte for byte.

A list was read between the two ends of a body, and it was the list that counts. Then any other elements between the
same two ends are the elements of that list, if they are whole ones, and all the rest of the body means what it meant.
"""

from __future__ import annotations

import re
from typing import Any, Generic, TypeVar

import msgspec

from dragoman import jsontext
from dragoman.errors import InvalidRequest

W = TypeVar("W")

_SPACE = b" \t\r\n"
_ONE_ELEMENT = b"0"  # stands for the history; nobody reads it
_NO_ELEMENT = b"null"  # for Google it is none
_LONGEST_IDLE = 256
IDLE_WORDS = rb"[ !#-\[\]-~]*"  # what is itself inside a string of JSON
_idle_words = re.compile(IDLE_WORDS).fullmatch
_read_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class Frame(Generic[W]):
    """`before` ends with the bracket that opens the list; what is `behind` it begins with the one that closes it.

    There, idle words may stand in the middle of a string, which change from turn to turn and mean nothing: between
    `head` and `tail`. `idle` finds them and has the head in its first group.
    `around` is what was read of the frame, where somebody had to; what a dialect makes of it is in its `notebook`.
    """

    def __init__(
        self, before: bytes, behind: bytes, notebook: dict[str, Any], idle: re.Pattern[bytes] | None = None
    ) -> None:
        found = idle.match(behind) if idle is not None else None
        self.before = before
        self.head = b"" if found is None else found[1]
        self.tail = behind if found is None else behind[found.end() :]
        self.notebook = notebook
        self.around: W | None = None

    @property
    def body(self) -> bytes:
        """The shortest one that means all that the frame does."""
        return b"".join((self.before, _ONE_ELEMENT, self.head, self.tail))

    def new_elements(self, body: bytes, start: int, known: int) -> list[bytes]:
        """Of the list that begins at `start`, behind `known`; none if anything is amiss or the frame is another one."""
        if start != len(self.before) or not body.endswith(self.tail) or not body.startswith(self.before):
            return []
        end = len(body) - len(self.tail)
        return _read_elements(body[known : self._before_idle(body, known, end) if self.head else end])

    def _before_idle(self, body: bytes, known: int, end: int) -> int:
        at = body.rfind(self.head, max(known, end - _LONGEST_IDLE - len(self.head)), end)
        return at if at >= 0 and _idle_words(body, at + len(self.head), end) else known


def _read_elements(text: bytes) -> list[bytes]:
    """Of a list that goes on with this."""
    text = text.lstrip(_SPACE)
    if not text.startswith(b","):
        return []
    try:
        elements = list(map(bytes, jsontext.decode(_read_list, b"[%b]" % text[1:])))
    except InvalidRequest:
        return []
    return [] if _NO_ELEMENT in elements else elements
