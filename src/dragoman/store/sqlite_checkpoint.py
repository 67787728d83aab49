"""What was written goes from SQLite's log into its file beside the work: a disk may take long over it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from contextlib import closing
from pathlib import Path

#: Pages in the log from which on whoever writes would have to do it: a few times what comes between two of ours.
LAST_RESORT = 8000
_log = logging.getLogger("dragoman")


class Checkpoint:
    """`begin` returns at once; one at a time, in a thread, on a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._running: asyncio.Future[None] | None = None

    @property
    def is_done(self) -> bool:
        return self._running is None or self._running.done()

    def begin(self) -> None:
        if self.is_done:
            self._running = asyncio.get_running_loop().run_in_executor(None, _checkpoint, self._path)

    async def close(self) -> None:
        if self._running is not None:
            await self._running


def _checkpoint(path: Path) -> None:
    try:
        there = (
            f"{path.absolute().as_uri()}?mode=rw"  # or a file that somebody took away would come again, empty
        )
        with closing(sqlite3.connect(there, timeout=0, uri=True)) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    except sqlite3.Error as error:  # nothing is lost: it stays in the log
        _log.warning("the state's log cannot be worked off now: %s", error)
