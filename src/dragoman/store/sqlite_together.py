"""Group the writes of answers that end at the same time into one transaction.

A transaction with several rows costs little more than one with a single row.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

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
