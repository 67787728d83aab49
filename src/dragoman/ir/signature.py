"""Thought signatures, and how they travel in a client's opaque fields.

Google signs parts of its answers and requires the signature back unchanged, on the same part and at the same back
end (https://ai.google.dev/gemini-api/docs/thought-signatures). A sealed signature also carries its origin, its part
and a checksum, so that a foreign, damaged or misplaced one is dropped instead of forwarded (known problems A4, A9, A10).
"""

from __future__ import annotations

import zlib
from functools import lru_cache

import msgspec

_PREFIX = "dgm1"
_SEPARATOR = "."
_MAX_CACHED_CHARS = 16 * 1024  # longer signatures are not kept in the cache of `seal`

#: Targets that are not call ids.
ON_TEXT = "text"  # on the text part itself
AFTER_TEXT = "end"  # on an empty text part after the text
ON_THOUGHT = "thought"

#: The origin of a signature that a Gemini client sent itself: it is forwarded unchecked, Google validates it.
ANY_ORIGIN = "*"


class Signature(msgspec.Struct, frozen=True, gc=False):
    """`data` is the signature as the vendor sent it; `origin` names the back end and model family that made it."""

    data: str
    origin: str


class SealedSignature(msgspec.Struct, frozen=True):
    """A signature and the part it belongs to: `target` is a call id, `ON_TEXT`, `AFTER_TEXT` or `ON_THOUGHT`."""

    signature: Signature
    target: str

    def seal(self) -> str:
        return seal(self.signature, self.target)


def seal(signature: Signature, target: str) -> str:
    """Encode a signature and its target as one opaque printable string.

    Small results are cached briefly, because the same signature is sealed once for the store and once for the client.
    """
    return (
        _seal(signature, target)
        if len(signature.data) <= _MAX_CACHED_CHARS
        else _make_seal(signature, target)
    )


def _make_seal(signature: Signature, target: str) -> str:
    head = _SEPARATOR.join((_PREFIX, signature.origin, target))
    return _SEPARATOR.join((head, _checksum(head, signature.data), signature.data))


_seal = lru_cache(maxsize=16)(_make_seal)


def unseal(word: str) -> SealedSignature | None:
    """Decode the output of `seal`. Return None if the string was not made by `seal` or was changed."""
    pieces = word.split(_SEPARATOR, 4)
    if len(pieces) != 5 or pieces[0] != _PREFIX:
        return None
    _, origin, target, checksum, data = pieces
    if checksum != _checksum(_SEPARATOR.join(pieces[:3]), data):
        return None
    return SealedSignature(Signature(data, origin), target)


def _checksum(head: str, data: str) -> str:
    return f"{zlib.crc32(data.encode(), zlib.crc32(head.encode())):08x}"
