"""Limits on how much a session may read and write, and the counters that enforce them."""

from __future__ import annotations

import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path

import msgspec

from dragoman.tools.errors import ToolRefused
from dragoman.tools.fs.sandbox import SECRET_NAMES

_MINUTE_S = 60.0
_MAX_SESSIONS = 1000


class FileLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Settings and limits of the file tools."""

    state: Path | None = None  # folder for backups; None means DRAGOMAN_HOME or the user's data folder
    max_read_bytes: int = 1024 * 1024
    max_write_bytes: int = 10 * 1024 * 1024
    reads_per_minute: int = 600
    writes_per_minute: int = 120
    written_bytes_per_session: int = 256 * 1024 * 1024
    backups_kept: int = 1000
    search_s: float = 10.0
    secrets: tuple[str, ...] = SECRET_NAMES  # names that are never opened

    @property
    def state_folder(self) -> Path:
        return self.state or _default_state_folder()


class FileUsage(msgspec.Struct):
    reads: deque[float] = msgspec.field(default_factory=deque)
    writes: deque[float] = msgspec.field(default_factory=deque)
    written_bytes: int = 0


class FileRateLimiter:
    """Counts reads and writes per session; the least recently used of too many sessions are dropped.

    Both methods raise `ToolRefused` when a limit is exceeded.
    """

    def __init__(self, limits: FileLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._lock = threading.Lock()
        self._sessions: OrderedDict[str, FileUsage] = OrderedDict()

    def count_read(self, session: str) -> None:
        with self._lock:
            self._count(self._usage(session).reads, self._limits.reads_per_minute, "reads")

    def count_write(self, session: str, size: int) -> None:
        """Count one write of `size` bytes."""
        if size > self._limits.max_write_bytes:
            limit = self._limits.max_write_bytes
            raise ToolRefused(f"{size:,} bytes is above the limit of {limit:,} for one file")
        with self._lock:
            usage = self._usage(session)
            if usage.written_bytes + size > self._limits.written_bytes_per_session:
                limit = self._limits.written_bytes_per_session
                raise ToolRefused(f"this session may write {limit:,} bytes, and they are used up")
            self._count(usage.writes, self._limits.writes_per_minute, "writes")
            usage.written_bytes += size

    def _usage(self, session: str) -> FileUsage:
        usage = self._sessions.setdefault(session, FileUsage())
        self._sessions.move_to_end(session)
        if len(self._sessions) > _MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return usage

    def _count(self, times: deque[float], limit: int, what: str) -> None:
        now = self._clock()
        while times and times[0] <= now - _MINUTE_S:
            times.popleft()
        if len(times) >= limit:
            wait = f"; wait {times[0] + _MINUTE_S - now:.0f} s" if times else ""
            raise ToolRefused(f"a session may do {limit} {what} a minute{wait}")
        times.append(now)


def _default_state_folder() -> Path:
    given = os.environ.get("DRAGOMAN_HOME", "").strip()
    if given:
        return Path(given).expanduser().absolute()
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "dragoman"
