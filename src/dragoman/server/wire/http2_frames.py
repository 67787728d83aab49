"""What the frames of HTTP/2 say of themselves, before h2 reads them: one may say that it has 16 MB."""

from __future__ import annotations

_PREFACE_BYTES = 24
_HEAD_BYTES = 9
_MAX_BYTES = 16_384  # the protocol's default, and ours
_DATA, _WINDOW_UPDATE = 0, 8
_END_STREAM = 1
_KNOWN_BYTES = 5  # of a head: length, type, flags
_FRAMING = 4  # times the body, and no more; as for the chunks of HTTP/1.1
_FREE_FRAMING_BYTES = 64 * 1024


class FrameHeads:
    """`feed` all that comes, in any slicing; False as soon as a frame says that it is too long.

    `window_updates` are those of the last feeding: of streams that are over, h2 says nothing. `spare` is below zero when
    there was hardly anything in the frames of bodies; the last one of a body may be empty.
    """

    __slots__ = ("_begun", "_left", "spare", "window_updates")

    def __init__(self) -> None:
        self._left = _PREFACE_BYTES  # until the next frame begins
        self._begun = b""
        self.window_updates = 0
        self.spare = _FREE_FRAMING_BYTES

    def feed(self, data: bytes) -> bool:
        if self._begun:
            data, self._begun = self._begun + data, b""
        at, end = self._left, len(data)
        self.window_updates = 0
        while at + 3 <= end:
            length = int.from_bytes(data[at : at + 3])
            if length > _MAX_BYTES:
                return False
            if at + _KNOWN_BYTES > end:
                break
            kind = data[at + 3]
            if kind == _WINDOW_UPDATE:
                self.window_updates += 1
            elif kind == _DATA and not data[at + 4] & _END_STREAM:
                self.spare += _FRAMING * length - _HEAD_BYTES
            at += _HEAD_BYTES + length
        self._left = max(0, at - end)
        if at < end:
            self._begun = data[at:]
        return True
