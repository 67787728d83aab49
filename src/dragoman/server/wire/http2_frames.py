"""How long the frames of HTTP/2 say they are: h2 looks only when all of one has come, and one may say 16 MB."""

from __future__ import annotations

_PREFACE_BYTES = 24
_HEAD_BYTES = 9
_MAX_BYTES = 16_384  # the protocol's default, and ours


class FrameLengths:
    """`feed` all that comes, in any slicing; False as soon as a frame says that it is too long."""

    __slots__ = ("_begun", "_left")

    def __init__(self) -> None:
        self._left = _PREFACE_BYTES  # until the next frame begins
        self._begun = b""

    def feed(self, data: bytes) -> bool:
        if self._begun:
            data, self._begun = self._begun + data, b""
        at, end = self._left, len(data)
        while at + 3 <= end:
            length = int.from_bytes(data[at : at + 3])
            if length > _MAX_BYTES:
                return False
            at += _HEAD_BYTES + length
        self._left = max(0, at - end)
        if at < end:
            self._begun = data[at:]
        return True
