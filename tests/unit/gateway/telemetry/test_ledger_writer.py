"""The bookkeeper: nothing on the way of a request, nothing lost at the end, nothing broken by a store that is away."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import msgspec
import pytest

from dragoman.config.model import LimitsConfig
from dragoman.gateway.telemetry import ledger_writer
from dragoman.gateway.telemetry.ledger_writer import LedgerWriter
from dragoman.observe.record import RequestRecord
from dragoman.store import LedgerEntry, MemoryStore, StoreUnavailable, Tally
from dragoman.store.memory import MemoryLedger

NOW_S = 1_794_871_800.0
DAY = "2026-11-16"


def record(number: int) -> RequestRecord:
    return RequestRecord(
        id=f"req_{number}",
        started_s=NOW_S,
        method="POST",
        path="/v1/messages",
        client="c/1",
        caller="k",
        session="s",
        model="gemini-2.5-pro",
    )


class Flaky(MemoryLedger):
    """Away for a while."""

    def __init__(self) -> None:
        super().__init__(lambda: NOW_S)
        self.away = False
        self.batches: list[int] = []

    async def add(self, lines: Sequence[LedgerEntry], tallies: Sequence[Tally]) -> None:
        self.batches.append(len(lines))
        if self.away:
            raise StoreUnavailable("the disk is full")
        await super().add(lines, tallies)


async def requests_noted(ledger: MemoryLedger) -> int:
    return sum(tally.sums["requests"] for tally in await ledger.tallies("total", DAY, DAY))


async def until(ledger: MemoryLedger, count: int) -> None:
    while await requests_noted(ledger) < count:
        await asyncio.sleep(0.005)


async def test_what_is_told_is_written_later_and_together() -> None:
    ledger = Flaky()
    keeper = LedgerWriter(ledger, LimitsConfig(), pause_s=0.01)
    for number in range(7):
        keeper.on_request_end(record(number), None)
    assert ledger.batches == []
    await until(ledger, 7)
    assert ledger.batches == [7]
    found = await ledger.entry("req_3")
    assert found is not None
    assert msgspec.json.decode(found.data, type=RequestRecord) == record(3)
    assert (found.at_ms, found.session) == (int(NOW_S * 1000), "s")
    keeper.on_request_end(record(8), None)  # it goes on
    await until(ledger, 8)
    await keeper.close()


async def test_closing_writes_what_waits() -> None:
    store = MemoryStore(lambda: NOW_S)
    keeper = LedgerWriter(store.ledger, LimitsConfig(), pause_s=3600)
    for number in range(1234):
        keeper.on_request_end(record(number), None)
    await keeper.close()
    assert await requests_noted(store.ledger) == 1234
    assert len(await store.ledger.entries(limit=9999)) == 1234


async def test_closing_while_it_writes_loses_nothing() -> None:
    ledger = Flaky()
    keeper = LedgerWriter(ledger, LimitsConfig(), pause_s=0.0)
    keeper.on_request_end(record(1), None)
    while keeper._write_task is None and not ledger.batches:
        await asyncio.sleep(0)
    keeper.on_request_end(record(2), None)
    await keeper.close()
    assert await requests_noted(ledger) == 2


async def test_a_store_that_is_away_is_told_once_and_costs_lines_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger = Flaky()
    ledger.away = True
    keeper = LedgerWriter(ledger, LimitsConfig(), pause_s=0.0)
    with caplog.at_level(logging.WARNING, logger="dragoman"):
        for number in range(3):
            keeper.on_request_end(record(number), None)
            while len(ledger.batches) <= number:
                await asyncio.sleep(0.005)
        assert [one.message for one in caplog.records] == [
            "the disk is full; requests are answered, and missing in the ledger"
        ]
        ledger.away = False
        keeper.on_request_end(record(3), None)
        await until(ledger, 1)
        await keeper.close()
    assert caplog.records[-1].message == "the ledger is written again; 3 requests are missing in it"
    assert len(caplog.records) == 2


async def test_a_store_that_is_too_slow_costs_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_writer, "_MAX_PENDING", 5)
    ledger = Flaky()
    keeper = LedgerWriter(ledger, LimitsConfig(), pause_s=3600)
    for number in range(9):
        keeper.on_request_end(record(number), None)
    await keeper.close()
    assert await requests_noted(ledger) == 5


async def test_a_mistake_of_ours_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(MemoryLedger):
        async def add(self, lines: Sequence[LedgerEntry], tallies: Sequence[Tally]) -> None:
            raise ZeroDivisionError

    keeper = LedgerWriter(Broken(lambda: NOW_S), LimitsConfig(), pause_s=0)
    keeper.on_request_end(record(1), None)
    await keeper.close()
    assert "1 requests could not be noted in the ledger" in caplog.text


async def test_probes_are_not_noted() -> None:
    ledger = Flaky()
    keeper = LedgerWriter(ledger, LimitsConfig(), pause_s=3600)
    keeper.on_request_end(msgspec.structs.replace(record(1), method="GET", path="/healthz", model=""), None)
    await keeper.close()
    assert ledger.batches == []


async def test_what_comes_while_it_writes_is_written_next() -> None:
    class Slow(Flaky):
        def __init__(self) -> None:
            super().__init__()
            self.may_end = asyncio.Event()

        async def add(self, lines: Sequence[LedgerEntry], tallies: Sequence[Tally]) -> None:
            await super().add(lines, tallies)
            await self.may_end.wait()

    ledger = Slow()
    keeper = LedgerWriter(ledger, LimitsConfig(), pause_s=0.0)
    keeper.on_request_end(record(1), None)
    await until(ledger, 1)
    keeper.on_request_end(record(2), None)
    keeper.on_request_end(record(3), None)
    ledger.may_end.set()
    await until(ledger, 3)
    assert ledger.batches == [1, 2]
    await keeper.close()
