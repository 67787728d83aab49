"""WAL checkpoints in a background thread, because a slow disk would block the event loop."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from pathlib import Path

#: Size of the WAL, in pages, at which a writer makes the checkpoint itself: a few times what is written
#: between two background checkpoints.
AUTOCHECKPOINT_PAGES = 8000
_log = logging.getLogger("dragoman")


class Checkpointer:
    """Run checkpoints in a thread, one at a time; `begin` returns at once.

    The connection stays open, because SQLite keeps the file descriptors of closed connections while others
    use the same file.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        self._running: asyncio.Future[None] | None = None
        self._run()  # move what a killed process left in the WAL

    @property
    def is_done(self) -> bool:
        return self._running is None or self._running.done()

    def start(self) -> None:
        if self.is_done:
            self._running = asyncio.get_running_loop().run_in_executor(None, self._run)

    async def close(self) -> None:
        if self._running is not None:
            await self._running
        self._db.close()

    def _run(self) -> None:
        try:
            self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:  # nothing is lost: the data stays in the WAL
            _log.warning("the state's log cannot be worked off now: %s", error)
