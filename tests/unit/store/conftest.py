"""The same tests for every store: in memory, in a file, in a real Redis."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.store import MemoryStore, RedisStore, SqliteStore, Store
from tests.redis_server import RedisServer

MAX_AGE_S = 3600.0


class Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield server
    server.stop()


@pytest.fixture
def redis(redis_server: RedisServer) -> RedisServer:
    """Empty, for one test."""
    redis_server.clear()
    return redis_server


@pytest.fixture(params=["memory", "sqlite", "redis"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Store:
    if request.param == "memory":
        return MemoryStore(clock)
    if request.param == "sqlite":
        return SqliteStore(tmp_path / "state.db", max_age_s=MAX_AGE_S, max_bytes=1 << 24, now=clock)
    return RedisStore(request.getfixturevalue("redis").url, max_age_s=MAX_AGE_S)


@pytest.fixture
def pass_time(request: pytest.FixtureRequest, store: Store, clock: Clock) -> Callable[[float], None]:
    """Lets so many seconds go by for the store at hand."""

    def wait(seconds: float) -> None:
        clock.now += seconds
        if isinstance(store, RedisStore):
            request.getfixturevalue("redis_server").pass_time(seconds)

    return wait
