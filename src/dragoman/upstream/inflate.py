"""A compressed body, unpacked in pieces of a bounded size."""

from __future__ import annotations

import zlib
from contextlib import suppress

from dragoman.http1.heads import BadMessage

MOST_BYTES = (
    16 * 1024 * 1024
)  # that what is read at once (256 KB at most) may become; a bomb of zlib's is a thousandfold
_ANY_ZLIB = 32 + zlib.MAX_WBITS  # gzip or zlib, as its first bytes say


class Inflater:
    """feed* close: one member, all of it, and nothing behind it."""

    __slots__ = ("_begun", "_zlib")

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(_ANY_ZLIB)
        self._begun = False

    def feed(self, data: bytes) -> bytes:
        if not data:
            return b""
        self._begun = True
        unpacked = self._unpack(data)
        if unpacked is None:
            raise BadMessage("it is not compressed as it says")
        if len(unpacked) >= MOST_BYTES:
            raise BadMessage("it is compressed beyond reason")
        if self._zlib.unused_data:
            raise BadMessage("bytes behind the end of what is compressed")
        return unpacked

    def close(self) -> None:
        if self._begun and not self._zlib.eof:
            raise BadMessage("what is compressed ended too soon")

    def _unpack(self, data: bytes) -> bytes | None:
        """None if that cannot be: an error that came of another would hold its frames, and they the connection."""
        with suppress(zlib.error, EOFError):
            return self._zlib.decompress(data, MOST_BYTES)
        return None
