"""Answers that end at the same time are remembered in one transaction, which costs hardly more than one row does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

Row = tuple[str, str, int]


class Together:
    """`write` waits until its rows are written, with all others that come in this turn of the event loop."""

    def __init__(self, write: Callable[[list[Row]], None]) -> None:
        self._write = write
        self._rows: list[Row] = []
        self._waiting: list[asyncio.Future[None]] = []

    async def write(self, rows: list[Row]) -> None:
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
        except Exception as failed:  # each of them is told, and the event loop goes on
            error = failed
        for done in waiting:
            if done.done():  # whoever waited has left
                continue
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)
