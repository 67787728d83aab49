"""Budgets: all or nothing, exact under any number of requests at once, forgotten when their time is over."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.store import Charge, MemoryStore, RedisStore, SqliteStore, Store, StoreUnavailable
from tests.redis_server import RedisServer
from tests.unit.store.conftest import Clock


def charge(name: str, amount: int, limit: int = 0, seconds: float = 3600) -> Charge:
    """Of a window that ends in so many seconds by everybody's clock: Redis has its own."""
    return Charge(name=name, amount=amount, limit=limit, ends_s=int(time.time() + seconds))


@pytest.fixture
def clock() -> Clock:
    clock = Clock()
    clock.now = time.time()
    return clock


async def test_a_meter_goes_up_to_its_limit_and_not_beyond(store: Store) -> None:
    meters = store.meters
    assert await meters.charge([charge("day", 60, 100)]) == ""
    assert await meters.charge([charge("day", 41, 100)]) == "day"
    assert await meters.charge([charge("day", 40, 100)]) == ""
    assert await meters.read(["day", "never"]) == {"day": 100, "never": 0}
    await store.close()


async def test_of_several_meters_all_are_charged_or_none(store: Store) -> None:
    meters = store.meters
    assert await meters.charge([charge("a", 1), charge("b", 10, 5), charge("c", 10, 5)]) == "b"
    assert await meters.read(["a", "b", "c"]) == {"a": 0, "b": 0, "c": 0}
    assert await meters.charge([charge("a", 1), charge("b", 5, 5)]) == ""
    assert await meters.read(["a", "b"]) == {"a": 1, "b": 5}
    await store.close()


async def test_what_was_reserved_and_not_used_is_given_back(store: Store) -> None:
    meters = store.meters
    await meters.charge([charge("tokens", 900, 1000)])
    assert await meters.charge([charge("tokens", -700)]) == ""
    assert await meters.charge([charge("tokens", 800, 1000)]) == ""
    assert await meters.read(["tokens"]) == {"tokens": 1000}
    await store.close()


async def test_nothing_to_charge_is_no_trouble(store: Store) -> None:
    assert await store.meters.charge([]) == ""
    assert await store.meters.read([]) == {}
    await store.close()


async def test_a_window_that_is_over_starts_again(store: Store, pass_time: Callable[[float], None]) -> None:
    meters = store.meters
    await meters.charge([charge("minute", 5, 5, seconds=60)])
    pass_time(61)
    assert await meters.read(["minute"]) == {"minute": 0}
    assert await meters.charge([charge("minute", 4, 5, seconds=180)]) == ""
    assert await meters.read(["minute"]) == {"minute": 4}
    await store.close()


async def test_many_at_once_never_pass_the_limit(store: Store) -> None:
    refused = await asyncio.gather(*(store.meters.charge([charge("day", 1, 100)]) for _ in range(150)))
    assert refused.count("") == 100
    assert await store.meters.read(["day"]) == {"day": 100}
    await store.close()


async def test_two_replicas_share_one_budget(redis: RedisServer) -> None:
    stores = [RedisStore(redis.url, max_age_s=60) for _ in range(2)]
    refused = await asyncio.gather(
        *(stores[one % 2].meters.charge([charge("day", 1, 100)]) for one in range(150))
    )
    assert refused.count("") == 100
    for store in stores:
        await store.close()


async def test_meters_that_ended_leave_the_file(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore(tmp_path / "s.db", max_age_s=9e9, max_bytes=1 << 24, now=clock)
    await store.meters.charge([charge("old", 1, seconds=10), charge("new", 1, seconds=1000)])
    clock.now += 100
    store.prune()
    assert store._db.execute("SELECT name FROM meter").fetchall() == [("new",)]
    await store.close()


async def test_a_file_that_cannot_be_written_or_read_is_unavailable(tmp_path: Path, clock: Clock) -> None:
    store = SqliteStore(tmp_path / "s.db", max_age_s=9e9, max_bytes=1 << 24, now=clock)
    with sqlite3.connect(tmp_path / "s.db") as other:
        other.execute("DROP TABLE meter")
    other.close()
    with pytest.raises(StoreUnavailable, match="written"):
        await store.meters.charge([charge("a", 1)])
    with pytest.raises(StoreUnavailable, match="read"):
        await store.meters.read(["a"])
    await store.close()


async def test_memory_forgets_with_the_process() -> None:
    assert await MemoryStore().meters.read(["a"]) == {"a": 0}


async def test_p5_what_is_spent_stays_spent_when_the_gateway_starts_again(
    tmp_path: Path, clock: Clock
) -> None:
    for _ in range(3):
        store = SqliteStore(tmp_path / "s.db", max_age_s=9e9, max_bytes=1 << 24, now=clock)
        assert await store.meters.charge([charge("day", 30, 100)]) == ""
        await store.close()
    store = SqliteStore(tmp_path / "s.db", max_age_s=9e9, max_bytes=1 << 24, now=clock)
    assert await store.meters.charge([charge("day", 11, 100)]) == "day"
    assert await store.meters.read(["day"]) == {"day": 90}
    await store.close()
