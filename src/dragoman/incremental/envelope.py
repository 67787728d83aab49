"""Request envelopes: the bytes of a request body around its history list.

From turn to turn of a conversation, only the history changes: the bytes before and after it stay the same. If a full
parse has shown that the list between these bytes is the history, then in another body with the same envelope the list
between them is the history too, and the rest of that body need not be parsed again.
"""

from __future__ import annotations

import re
from typing import Any, Generic, TypeVar

import msgspec

from dragoman import jsontext
from dragoman.errors import InvalidRequest

W = TypeVar("W")

_SPACE = b" \t\r\n"
_PLACEHOLDER = b"0"  # replaces the history when the envelope is parsed; never decoded
_NULL = b"null"  # Google's API ignores such elements: these bodies are parsed in full
_MAX_VOLATILE_BYTES = 256
VOLATILE_TEXT = rb"[ !#-\[\]-~]*"  # characters of a JSON string that need no escape: no quote, no backslash
_is_volatile_text = re.compile(VOLATILE_TEXT).fullmatch
_read_list = msgspec.json.Decoder(list[msgspec.Raw]).decode


class RequestEnvelope(Generic[W]):
    """The bytes of a body before and after its history list.

    `before` ends with the opening bracket of the list, `after` begins with the closing bracket. `after` may contain
    one volatile text inside a JSON string, which changes from turn to turn and has no meaning. The pattern `volatile`
    matches from the closing bracket to the end of that text; its first group is everything before the text. The bytes
    before the volatile text are `head`, the bytes after it `tail`.

    `parsed` is the parsed envelope, filled in on first use. `derived` holds what the dialect derived from it.
    """

    def __init__(
        self, before: bytes, after: bytes, derived: dict[str, Any], volatile: re.Pattern[bytes] | None = None
    ) -> None:
        found = volatile.match(after) if volatile is not None else None
        self.before = before
        self.head = b"" if found is None else found[1]
        self.tail = after if found is None else after[found.end() :]
        self.derived = derived
        self.parsed: W | None = None

    @property
    def body(self) -> bytes:
        """The envelope as a parsable body: one placeholder for the history, no volatile text."""
        return b"".join((self.before, _PLACEHOLDER, self.head, self.tail))

    def new_elements(self, body: bytes, start: int, known: int) -> list[bytes]:
        """Return the elements after offset `known` of the list that begins at `start`.

        Return an empty list if the body has a different envelope or the elements are not valid JSON.
        """
        if start != len(self.before) or not body.endswith(self.tail) or not body.startswith(self.before):
            return []
        end = len(body) - len(self.tail)
        return _read_elements(body[known : self._end_of_list(body, known, end) if self.head else end])

    def _end_of_list(self, body: bytes, known: int, end: int) -> int:
        at = body.rfind(self.head, max(known, end - _MAX_VOLATILE_BYTES - len(self.head)), end)
        return at if at >= 0 and _is_volatile_text(body, at + len(self.head), end) else known


def _read_elements(text: bytes) -> list[bytes]:
    """Return the elements in the rest of a list, which must begin with a comma; none if it is not valid."""
    text = text.lstrip(_SPACE)
    if not text.startswith(b","):
        return []
    try:
        elements = list(map(bytes, jsontext.decode(_read_list, b"[%b]" % text[1:])))
    except InvalidRequest:
        return []
    return [] if _NULL in elements else elements
