"""A change flag in shared memory, visible to all processes of a machine.

Every request asks for session tools, which few sessions have. A process that has found none does not query
the database again until the flag changes.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from time import monotonic

_BYTES = 8
# query again after this time: a process may be killed between its write and the change of the flag
_MAX_AGE_S = 1.0


class ChangeFlag:
    """Cache whether anything exists.

    `may_exist` returns what `query` returned for the current value of the flag.
    """

    def __init__(self, path: Path, query: Callable[[], bool]) -> None:
        self._query = query
        self._seen = b""
        self._found = True
        self._until_s = 0.0
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < _BYTES:
                os.ftruncate(file, _BYTES)
            self._memory = mmap.mmap(file, _BYTES)
        finally:
            os.close(file)

    def mark_changed(self) -> None:
        """Tell all processes to query again; call it after the write."""
        # random, because two concurrent increments could yield the same number
        self._memory[:] = os.urandom(_BYTES)

    def may_exist(self) -> bool:
        value = self._memory[:]
        now_s = monotonic()
        if value != self._seen or now_s > self._until_s:
            self._found = self._query()
            self._seen, self._until_s = value, now_s + _MAX_AGE_S
        return self._found

    def close(self) -> None:
        self._memory.close()
