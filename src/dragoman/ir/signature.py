"""A model's proof of its own thinking, and how it travels inside a client's opaque fields.

Google signs what it wrote and wants the signature back untouched, on the same part, at the same back end.
Sealed, it carries where it came from and which part it belongs to, so that a foreign, damaged or moved one
is recognised and dropped instead of forwarded (pains A4, A9, A10).
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import msgspec

_PREFIX = "dgm1"
_SEPARATOR = "."
_USUAL_CHARS = 16 * 1024  # of a signature whose seal is remembered for a moment

#: Targets that are not call ids.
ON_TEXT = "text"  # on the text part itself
AFTER_TEXT = "end"  # on an empty text part behind the text
ON_THOUGHT = "thought"

#: The origin of a signature that a Gemini client brings back itself: it is Google's to judge.
AS_BROUGHT = "*"


class Signature(msgspec.Struct, frozen=True, gc=False):
    """`data` as the vendor sent it; `origin` names the back end and model family that made it."""

    data: str
    origin: str


class Sealed(msgspec.Struct, frozen=True):
    """A signature together with the part it belongs to: a call id, or one of the targets above."""

    signature: Signature
    target: str

    def seal(self) -> str:
        return seal(self.signature, self.target)


def seal(signature: Signature, target: str) -> str:
    """One opaque printable word for a client to keep and bring back; the store keeps it too, a moment before."""
    return _seal(signature, target) if len(signature.data) <= _USUAL_CHARS else _make_seal(signature, target)


def _make_seal(signature: Signature, target: str) -> str:
    head = _SEPARATOR.join((_PREFIX, signature.origin, target))
    return _SEPARATOR.join((head, _checksum(head, signature.data), signature.data))


_seal = lru_cache(maxsize=16)(_make_seal)


def unseal(word: str) -> Sealed | None:
    """What `seal` was given, or None if the word is not ours or was changed on the way."""
    pieces = word.split(_SEPARATOR, 4)
    if len(pieces) != 5 or pieces[0] != _PREFIX:
        return None
    _, origin, target, checksum, data = pieces
    if checksum != _checksum(_SEPARATOR.join(pieces[:3]), data):
        return None
    return Sealed(Signature(data, origin), target)


def _checksum(head: str, data: str) -> str:
    return f"{zlib.crc32(data.encode(), zlib.crc32(head.encode())):08x}"
