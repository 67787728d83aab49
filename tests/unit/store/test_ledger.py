"""The ledger: lines by pages, sums that are exact under many writers, and an end to both."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import dragoman.store.memory
import dragoman.store.redis.ledger
import dragoman.store.sqlite.ledger
from dragoman.config import Config, ObserveConfig
from dragoman.store import LedgerEntry, RedisStore, SqliteStore, Store, StoreUnavailable, Tally, open_store
from dragoman.store.base import LEDGER_DAYS, LEDGER_ENTRY_MAX_AGE_S
from dragoman.store.factory import ledger_is_empty
from tests.redis_server import RedisServer
from tests.unit.store.conftest import Clock

LEDGERS = (dragoman.store.memory, dragoman.store.sqlite.ledger, dragoman.store.redis.ledger)
NOW_MS = int(time.time() * 1000)
TODAY = datetime.now(UTC).date().isoformat()
_HOURS_MS = 6 * 3_600_000  # however long other tests take before this one


@pytest.fixture
def clock() -> Clock:
    """Everybody's: Redis has its own."""
    clock = Clock()
    clock.now = NOW_MS / 1000
    return clock


def line(name: str, at_ms: int = NOW_MS, session: str = "") -> LedgerEntry:
    return LedgerEntry(id=name, at_ms=at_ms, session=session, data=b"\x00 \xff" + name.encode())


def tally(labels: tuple[str, ...] = ("a",), day: str = TODAY, kind: str = "model", **sums: int) -> Tally:
    return Tally(day=day, kind=kind, labels=labels, sums=sums)


def day(ago: int) -> str:
    return (datetime.now(UTC).date() - timedelta(days=ago)).isoformat()


async def test_lines_come_back_newest_first_and_by_pages(store: Store) -> None:
    noted = [line(f"r{n}", NOW_MS + n // 3) for n in range(10)]  # three in one millisecond
    await store.ledger.add(noted[5:], [])
    await store.ledger.add(noted[:5], [])
    assert await store.ledger.entries(limit=100) == noted[::-1]
    paged: list[LedgerEntry] = []
    before: tuple[int, str] | None = None
    while page := await store.ledger.entries(limit=4, before=before):
        assert len(page) <= 4
        paged += page
        before = page[-1].at_ms, page[-1].id
    assert paged == noted[::-1]
    await store.close()


async def test_the_lines_of_a_session_alone(store: Store) -> None:
    noted = [line(f"r{n}", NOW_MS + n, session=("one", "zwei ü", "")[n % 3]) for n in range(9)]
    await store.ledger.add(noted, [])
    assert [found.id for found in await store.ledger.entries(limit=9, session="zwei ü")] == ["r7", "r4", "r1"]
    older = await store.ledger.entries(limit=9, session="zwei ü", before=(NOW_MS + 4, "r4"))
    assert older == [noted[1]]
    assert await store.ledger.entries(limit=9, session="nobody") == []
    await store.close()


async def test_one_line_by_its_id(store: Store) -> None:
    await store.ledger.add([line("r:1", session="s"), line("r:2")], [])
    assert await store.ledger.entry("r:1") == line("r:1", session="s")
    assert await store.ledger.entry("r:3") is None
    await store.close()


async def test_a_line_that_is_known_stays(store: Store) -> None:
    await store.ledger.add([line("r", session="first")], [])
    await store.ledger.add([line("r", NOW_MS + 9, session="second")], [])
    assert await store.ledger.entries(limit=9) == [line("r", session="first")]
    await store.close()


async def test_sums_add_up_by_day_kind_and_labels(store: Store) -> None:
    big = 1 << 55  # more than a float can tell apart
    await store.ledger.add([], [tally(("a", 'b "c'), calls=1, usd=big), tally(("a", "d"), calls=5)])
    await store.ledger.add([], [tally(("a", 'b "c'), calls=2, usd=1, failed=3)])
    await store.ledger.add([], [tally(("a", "d"), kind="tool", calls=7), tally(("z",), day(1), calls=1)])
    assert await store.ledger.tallies("model", day(1), TODAY) == [
        tally(("z",), day(1), calls=1),
        tally(("a", 'b "c'), calls=3, usd=big + 1, failed=3),
        tally(("a", "d"), calls=5),
    ]
    assert await store.ledger.tallies("model", day(9), day(1)) == [tally(("z",), day(1), calls=1)]
    assert await store.ledger.tallies("tool", TODAY, TODAY) == [tally(("a", "d"), kind="tool", calls=7)]
    assert await store.ledger.tallies("tool", day(90), day(2)) == []
    await store.close()


async def test_an_empty_ledger_has_nothing_and_takes_nothing(store: Store) -> None:
    await store.ledger.add([], [])
    assert await store.ledger.entries(limit=5) == []
    assert await store.ledger.tallies("model", day(400), TODAY) == []
    await store.close()


async def test_many_at_once_lose_nothing(store: Store) -> None:
    await asyncio.gather(*(store.ledger.add([line(f"r{n}")], [tally(calls=n)]) for n in range(50)))
    assert await store.ledger.tallies("model", TODAY, TODAY) == [tally(calls=sum(range(50)))]
    assert len(await store.ledger.entries(limit=99)) == 50
    await store.close()


async def test_a_large_batch_is_noted_whole_and_what_is_in_it_twice_adds_up(store: Store) -> None:
    names = [f"n{n:03}" for n in range(450)]
    await store.ledger.add(
        [line(name) for name in names], [tally((name,), calls=1) for name in (*names, *names[:250])]
    )
    assert len(await store.ledger.entries(limit=999)) == 450
    assert await store.ledger.tallies("model", TODAY, TODAY) == [
        tally((name,), calls=2 if name < "n250" else 1) for name in names
    ]
    await store.close()


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_two_processes_share_one_ledger(kind: str, tmp_path: Path, redis: RedisServer) -> None:
    def another() -> Store:
        if kind == "redis":
            return RedisStore(redis.url, max_age_s=60)
        return SqliteStore(tmp_path / "s.db", max_age_s=60, max_bytes=1 << 24, now=time.time)

    stores = [another(), another()]
    await asyncio.gather(*(stores[n % 2].ledger.add([line(f"r{n}")], [tally(calls=1)]) for n in range(40)))
    for store in stores:
        assert await store.ledger.tallies("model", TODAY, TODAY) == [tally(calls=40)]
        assert len(await store.ledger.entries(limit=99)) == 40
        await store.close()


async def test_old_lines_and_old_days_go(store: Store) -> None:
    old = line("old", NOW_MS - LEDGER_ENTRY_MAX_AGE_S * 1000 - 60_000, session="s")
    kept = line("kept", NOW_MS - LEDGER_ENTRY_MAX_AGE_S * 1000 + _HOURS_MS, session="s")
    await store.ledger.add([old, kept], [tally(day=day(LEDGER_DAYS + 2), calls=1)])
    await store.ledger.add([], [tally(day=day(LEDGER_DAYS - 1), calls=2)])
    assert await store.ledger.entries(limit=9) == [kept]
    assert await store.ledger.entries(limit=9, session="s") == [kept]
    assert await store.ledger.entry("old") is None
    found = await store.ledger.tallies("model", day(LEDGER_DAYS + 9), TODAY)
    assert found == [tally(day=day(LEDGER_DAYS - 1), calls=2)]
    await store.close()


async def test_of_too_many_lines_the_newest_stay(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in LEDGERS:
        monkeypatch.setattr(module, "MAX_LEDGER_ENTRIES", 5)
    await store.ledger.add([line(f"r{n}", NOW_MS + n, session="s") for n in range(12)], [])
    expected = [f"r{n}" for n in range(11, 6, -1)]
    assert [one.id for one in await store.ledger.entries(limit=99)] == expected
    assert [one.id for one in await store.ledger.entries(limit=99, session="s")] == expected
    assert await store.ledger.entry("r6") is None
    await store.close()


async def test_names_without_end_become_one(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in LEDGERS:
        monkeypatch.setattr(module, "MAX_LEDGER_LABELS", 3)
    await store.ledger.add([], [tally((f"n{n}", "x"), calls=1) for n in range(6)])
    await store.ledger.add([], [tally(("n1", "x"), calls=1), tally(("n9", "x"), calls=1)])
    assert await store.ledger.tallies("model", TODAY, TODAY) == [
        *(tally((f"n{n}", "x"), calls=2 if n == 1 else 1) for n in range(3)),
        tally(("other", "other"), calls=4),
    ]
    await store.close()


async def test_every_key_in_redis_has_an_end(redis: RedisServer) -> None:
    store = RedisStore(redis.url, max_age_s=60)
    await store.ledger.add([line("r", session="s")], [tally(calls=1)])
    with redis.client() as client:
        keys = list(client.scan_iter())
        assert len(keys) == 4
        assert all(client.ttl(key) > 0 for key in keys)
    await store.close()


async def test_a_line_that_redis_threw_out_is_passed_over(redis: RedisServer) -> None:
    """What is evicted under memory pressure goes key by key."""
    store = RedisStore(redis.url, max_age_s=60)
    await store.ledger.add([line("r", session="s")], [])
    with redis.client() as client:
        client.delete("dragoman:l:data")
    assert await store.ledger.entries(limit=9) == []
    await store.ledger.add([line("r2")], [])
    assert await store.ledger.entries(limit=9) == [line("r2")]
    await store.close()


async def test_a_file_that_is_no_ledger_is_unavailable(tmp_path: Path, clock: Clock) -> None:
    (tmp_path / "s-ledger.db").write_bytes(b"no database at all" * 100)
    store = SqliteStore(tmp_path / "s.db", max_age_s=9e9, max_bytes=1 << 24, now=clock)
    with pytest.raises(StoreUnavailable, match="written"):
        await store.ledger.add([line("r")], [])
    with pytest.raises(StoreUnavailable, match="read"):
        await store.ledger.entries(limit=1)
    await store.set_values([("signature", "is kept all the same")])
    await store.close()


async def test_a_ledger_of_a_newer_version_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    with sqlite3.connect(tmp_path / "s-ledger.db") as newer:
        newer.execute("PRAGMA user_version=99")
    newer.close()
    store = SqliteStore(tmp_path / "s.db", max_age_s=9e9, max_bytes=1 << 24, now=clock)
    with pytest.raises(StoreUnavailable, match="newer Dragoman"):
        await store.ledger.entries(limit=1)
    await store.close()


async def test_nobody_who_notes_nothing_gets_a_file(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore(tmp_path / "s.db", max_age_s=9e9, max_bytes=1 << 24, now=clock)
    await store.set_values([("a", "b")])
    await store.close()
    assert not (tmp_path / "s-ledger.db").exists()


async def test_a_batch_that_fails_leaves_nothing_behind(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore(tmp_path / "s.db", max_age_s=9e9, max_bytes=1 << 24, now=clock)
    await store.ledger.entries(limit=1)
    with sqlite3.connect(tmp_path / "s-ledger.db") as other:
        other.execute("DROP TABLE tally")
    other.close()
    with pytest.raises(StoreUnavailable):
        await store.ledger.add([line("r")], [tally(calls=1)])
    assert await store.ledger.entries(limit=9) == []
    await store.close()


async def test_what_is_forgotten_is_gone_from_its_session_too(
    redis: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or the pages of a long session would be full of holes."""
    monkeypatch.setattr(dragoman.store.redis.ledger, "MAX_LEDGER_ENTRIES", 5)
    store = RedisStore(redis.url, max_age_s=60)
    await store.ledger.add([line(f"r{n}", NOW_MS + n, session="s") for n in range(12)], [])
    with redis.client() as client:
        assert client.zcard("dragoman:ls:s") == client.hlen("dragoman:l:data") == 5
    await store.close()


@pytest.mark.parametrize("wanted", [True, False])
async def test_a_gateways_ledger_is_open_from_the_start(tmp_path: Path, wanted: bool) -> None:
    """Or the process would have more files open after its first request than before."""
    config = Config(home=str(tmp_path), observe=ObserveConfig(ledger=wanted))
    assert ledger_is_empty(config)
    store = open_store(config)
    assert ledger_is_empty(config) is not wanted
    await store.ledger.add([line("r")], [])
    assert await store.ledger.entry("r") == line("r")
    await store.close()


async def test_a_ledger_that_cannot_be_opened_stops_no_gateway(tmp_path: Path) -> None:
    (tmp_path / "state-ledger.db").write_bytes(b"no database at all" * 100)
    store = open_store(Config(home=str(tmp_path)))
    await store.set_values([("a", "b")])
    with pytest.raises(StoreUnavailable, match="not a database"):
        await store.ledger.entries(limit=1)
    await store.close()
