"""What was written goes from SQLite's log into its file beside the work: a disk may take long over it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path

#: Pages in the log from which on whoever writes would have to do it: a few times what comes between two of ours.
LAST_RESORT = 8000
_log = logging.getLogger("dragoman")


class Checkpoint:
    """`begin` returns at once; one at a time, in a thread, on a connection of its own.

    It is open from the beginning: SQLite would keep the descriptors of those that come and go.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self._running: asyncio.Future[None] | None = None
        self._work()  # what a process that was killed has left

    @property
    def is_done(self) -> bool:
        return self._running is None or self._running.done()

    def begin(self) -> None:
        if self.is_done:
            self._running = asyncio.get_running_loop().run_in_executor(None, self._work)

    async def close(self) -> None:
        if self._running is not None:
            await self._running
        self._db.close()

    def _work(self) -> None:
        try:
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:  # nothing is lost: it stays in the log
            _log.warning("the state's log cannot be worked off now: %s", error)
