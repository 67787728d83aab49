"""What the SQLite modules share: transactions, WAL checkpoints and batched writes.

SQLite errors become `StoreUnavailable`. Checkpoints run in a background thread, because a slow disk would
block the event loop. The writes of answers that end in the same iteration of the event loop share one
transaction, which costs little more than a transaction with a single row.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.store.base import StoreUnavailable


class SqliteConnection:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @contextmanager
    def reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be read: {error}") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        try:
            with self.transaction():
                yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be written: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield


#: Size of the WAL, in pages, at which a writer makes the checkpoint itself: a few times what is written
#: between two background checkpoints.
AUTOCHECKPOINT_PAGES = 8000
_log = logging.getLogger("dragoman")


class Checkpointer:
    """Run checkpoints in a thread, one at a time; `start` returns at once.

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
            _log.warning("the state file's WAL cannot be checkpointed now: %s", error)


ValueRow = tuple[str, str, int]


class WriteBatch:
    """Collect the rows of one event loop iteration; `write` returns when they are written."""

    def __init__(self, write: Callable[[list[ValueRow]], None]) -> None:
        self._write = write
        self._rows: list[ValueRow] = []
        self._waiting: list[asyncio.Future[None]] = []

    async def write(self, rows: list[ValueRow]) -> None:
        loop = asyncio.get_running_loop()
        if not self._waiting:
            loop.call_soon(self._write_all)
        self._rows += rows
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append(done)
        await done

    def _write_all(self) -> None:
        rows, waiting = self._rows, self._waiting
        self._rows, self._waiting = [], []
        error: Exception | None = None
        try:
            self._write(rows)
        except Exception as failed:  # every waiting call gets the error
            error = failed
        for done in waiting:
            if done.done():  # the caller was cancelled
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
