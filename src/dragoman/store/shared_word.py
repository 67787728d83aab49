"""A few bytes that all processes of a machine see: whoever changes something rare changes them too.

Every request asks for what hardly anybody has. Who has seen that there is nothing need not look again while the
word is the same.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic

_BYTES = 8
_TRUSTED_S = 1.0  # somebody may have been killed between a change and its word


class SharedWord:
    """`may_be` is what `look` found when the word was what it is now."""

    def __init__(self, path: Path, look: Callable[[], bool]) -> None:
        self._look = look
        self._seen = b""
        self._found = True
        self._until_s = 0.0
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < _BYTES:
                os.ftruncate(file, _BYTES)
            self._word = mmap.mmap(file, _BYTES)
        finally:
            os.close(file)

    def change(self) -> None:
        """When it is written."""
        self._word[:] = os.urandom(_BYTES)  # not counted: two who count at once come to the same

    def may_be(self) -> bool:
        word = self._word[:]
        now_s = monotonic()
        if word != self._seen or now_s > self._until_s:
            self._found = self._look()
            self._seen, self._until_s = word, now_s + _TRUSTED_S
        return self._found

    def close(self) -> None:
        self._word.close()
