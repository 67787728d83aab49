"""The observer that writes model requests to the store's ledger, in batches and in the background.

If the ledger cannot be written, its lines are lost but requests succeed. One warning is logged until it
recovers.
"""

from __future__ import annotations

import asyncio
import logging

import msgspec

from dragoman.config.model import LimitsConfig
from dragoman.observe.record import RequestRecord, RequestStages
from dragoman.observe.usage import is_counted, tallies_of_all
from dragoman.store import Ledger, LedgerEntry, StoreUnavailable, Tally

_PAUSE_S = 1.0
_BATCH = 200  # a batch is one script in Redis, which blocks its other clients
_MAX_PENDING = 20_000  # records beyond this are dropped if the store is slower than the requests
_log = logging.getLogger("dragoman")


class LedgerWriter:
    """Collect records and write them to the ledger every `pause_s`."""

    def __init__(self, ledger: Ledger, limits: LimitsConfig, *, pause_s: float = _PAUSE_S) -> None:
        self._ledger = ledger
        self._limits = limits
        self._pause_s = pause_s
        self._pending: list[RequestRecord] = []
        self._timer: asyncio.TimerHandle | None = None
        self._write_task: asyncio.Task[None] | None = None
        self._lost = 0

    def on_request_end(self, record: RequestRecord, stages: RequestStages | None) -> None:
        del stages
        if not is_counted(record):
            return
        if len(self._pending) >= _MAX_PENDING:
            self._lost += 1
            return
        self._pending.append(record)
        if self._timer is None and self._write_task is None:
            self._schedule_write()

    async def close(self) -> None:
        """Write everything that is left."""
        if self._write_task is not None:
            await self._write_task
        if self._timer is not None:
            self._timer.cancel()
        await self._write()

    def _schedule_write(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._pause_s, self._start_write)

    def _start_write(self) -> None:
        self._timer = None
        self._write_task = asyncio.get_running_loop().create_task(self._write_and_reschedule())

    async def _write_and_reschedule(self) -> None:
        await self._write()
        self._write_task = None
        if self._pending:  # records that arrived during the write
            self._schedule_write()

    async def _write(self) -> None:
        pending, self._pending = self._pending, []
        for start in range(0, len(pending), _BATCH):
            await self._write_batch(pending[start : start + _BATCH])

    async def _write_batch(self, batch: list[RequestRecord]) -> None:
        try:
            entries, tallies = await asyncio.to_thread(_ledger_entries, batch, self._limits)
            await self._ledger.add(entries, tallies)
        except StoreUnavailable as error:
            if not self._lost:
                _log.warning("%s; requests are answered, and missing in the ledger", error)
            self._lost += len(batch)
        except Exception:  # a failing observer must not affect requests
            _log.exception("%d requests could not be noted in the ledger", len(batch))
        else:
            if self._lost:
                _log.warning("the ledger is written again; %d requests are missing in it", self._lost)
                self._lost = 0


def _ledger_entries(
    records: list[RequestRecord], limits: LimitsConfig
) -> tuple[list[LedgerEntry], list[Tally]]:
    entries = [
        LedgerEntry(
            id=record.id,
            at_ms=int(record.started_s * 1000),
            session=record.session,
            data=msgspec.json.encode(record),
        )
        for record in records
    ]
    sums = tallies_of_all(records, limits)
    return entries, [Tally(day=one.day, kind=one.kind, labels=one.labels, sums=one.sums) for one in sums]
