"""Sessions' tools: every operation, on every store; nobody finds another's, and what is taken is taken once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.store import MAX_SESSION_CALLS, RedisStore, SqliteStore, Store, StoreUnavailable, Toolset
from tests.redis_server import RedisServer
from tests.unit.store.conftest import MAX_AGE_S, Clock


def sqlite(path: Path, clock: Clock, max_bytes: int = 1 << 24) -> SqliteStore:
    return SqliteStore(path, max_age_s=MAX_AGE_S, max_bytes=max_bytes, now=clock)


async def test_tools_and_their_config_are_set_found_and_cleared(store: Store) -> None:
    kept = store.session_tools
    assert await kept.toolset("a", "s") is None
    assert not await kept.clear("a", "s")
    await kept.set_tools("a", "s", b"[1]")
    assert await kept.toolset("a", "s") == Toolset(tools=b"[1]")
    await kept.set_config("a", "s", b"{}")
    await kept.set_tools("a", "s", b"[2]")
    assert await kept.toolset("a", "s") == Toolset(tools=b"[2]", config=b"{}")
    assert await kept.clear("a", "s")
    assert await kept.toolset("a", "s") is None
    await store.close()


async def test_a_config_alone_is_something_and_calls_alone_are_no_tools(store: Store) -> None:
    kept = store.session_tools
    await kept.set_config("a", "config", b"{}")
    assert await kept.toolset("a", "config") == Toolset(config=b"{}")
    await kept.register_calls("a", "calls", [("1", b"x")])
    assert await kept.toolset("a", "calls") is None
    await store.close()


async def test_calls_are_registered_looked_up_and_the_last_ones_known(store: Store) -> None:
    kept = store.session_tools
    assert await kept.last_calls("a", "s") == []
    await kept.register_calls("a", "s", [("2", b"two"), ("1", b"one")])
    await kept.register_calls("a", "s", [("4", b"four"), ("3", b"three")])
    assert await kept.call("a", "s", "1") == b"one"
    assert await kept.call("a", "s", "5") is None
    assert await kept.calls("a", "s") == [("2", b"two"), ("1", b"one"), ("4", b"four"), ("3", b"three")]
    assert await kept.last_calls("a", "s") == [("4", b"four"), ("3", b"three")]
    await kept.register_calls("a", "s", [("2", b"TWO")])
    assert [own for own, _ in await kept.calls("a", "s")] == ["2", "1", "4", "3"]
    assert await kept.last_calls("a", "s") == [("2", b"TWO")]
    await kept.register_calls("a", "s", [("3", b"three"), ("1", b"one")])
    assert [own for own, _ in await kept.last_calls("a", "s")] == ["3", "1"]
    await kept.register_calls("a", "s", [("2", b"deux"), ("1", b"un")], last=False)
    assert await kept.last_calls("a", "s") == [("3", b"three"), ("1", b"un")]
    assert await kept.call("a", "s", "2") == b"deux"
    await store.close()


async def test_results_are_added_and_taken_once(store: Store) -> None:
    kept = store.session_tools
    assert await kept.take_results("a", "s") == {}
    await kept.add_results("a", "s", [("1", b"one"), ("2", b"two"), ("3", b"\x00")])
    assert await kept.results("a", "s") == {"1": b"one", "2": b"two", "3": b"\x00"}
    assert await kept.take_results("a", "s", ["2", "unknown"]) == {"2": b"two"}
    assert await kept.take_results("a", "s", []) == {}
    assert await kept.take_results("a", "s") == {"1": b"one", "3": b"\x00"}
    assert await kept.take_results("a", "s") == {}
    assert await kept.results("a", "s") == {}
    await store.close()


async def test_nothing_of_one_caller_or_session_is_anothers(store: Store) -> None:
    kept = store.session_tools
    places = [("a", "s"), ("b", "s"), ("a", "t"), ("a/s", ""), ("", "a/s")]
    for scope, session in places:
        own = f"{scope}|{session}".encode()
        await kept.set_tools(scope, session, own)
        await kept.register_calls(scope, session, [("1", own)])
        await kept.add_results(scope, session, [("1", own)])
    assert await kept.clear("a", "s")
    for scope, session in places[1:]:
        own = f"{scope}|{session}".encode()
        assert await kept.toolset(scope, session) == Toolset(tools=own)
        assert await kept.call(scope, session, "1") == own
        assert await kept.take_results(scope, session) == {"1": own}
    assert await kept.calls("a", "s") == []
    assert await kept.last_calls("a", "s") == []
    assert await kept.results("a", "s") == {}
    await store.close()


async def test_only_so_many_calls_of_a_session_are_kept_the_newest(store: Store) -> None:
    kept = store.session_tools
    await kept.register_calls("a", "s", [(f"c{number}", b"x") for number in range(MAX_SESSION_CALLS)])
    await kept.register_calls("a", "s", [("new", b"y"), ("newer", b"y")])
    calls = await kept.calls("a", "s")
    assert len(calls) == MAX_SESSION_CALLS
    assert [calls[0][0], calls[-1][0]] == ["c2", "newer"]
    assert await kept.call("a", "s", "c1") is None
    await store.close()


async def test_a_session_that_is_used_lives_on_and_another_goes_whole(
    store: Store, pass_time: Callable[[float], None]
) -> None:
    if not isinstance(store, SqliteStore | RedisStore):
        await store.close()
        return  # memory ends with the process
    kept = store.session_tools
    for session in ("used", "idle"):
        await kept.set_tools("a", session, b"[]")
        await kept.register_calls("a", session, [("1", b"x")])
        await kept.add_results("a", session, [("1", b"x")])
    for _ in range(3):
        pass_time(MAX_AGE_S * 0.6)
        assert await kept.toolset("a", "used") is not None
    if isinstance(store, SqliteStore):
        store.prune()
    assert await kept.toolset("a", "idle") is None
    assert await kept.calls("a", "idle") == []
    assert await kept.results("a", "idle") == {}
    assert await kept.calls("a", "used") == [("1", b"x")]
    await store.close()


async def test_sessions_are_bounded_in_bytes_and_the_one_unused_for_longest_goes_first(
    tmp_path: Path, clock: Clock
) -> None:
    store = sqlite(tmp_path / "state.db", clock, max_bytes=1 << 20)
    for number in range(300):
        clock.now += 1
        await store.session_tools.set_tools("a", f"s{number}", b"x" * 10_000)
    assert store._used_bytes() < 3 << 20
    assert await store.session_tools.toolset("a", "s0") is None
    assert await store.session_tools.toolset("a", "s299") is not None
    await store.close()


async def test_another_process_finds_the_tools_and_the_next_start_too(tmp_path: Path, clock: Clock) -> None:
    first, second = sqlite(tmp_path / "state.db", clock), sqlite(tmp_path / "state.db", clock)
    await first.session_tools.set_tools("a", "s", b"[]")
    await second.session_tools.add_results("a", "s", [("1", b"x")])
    assert await second.session_tools.toolset("a", "s") == Toolset(tools=b"[]")
    assert await first.session_tools.take_results("a", "s") == {"1": b"x"}
    assert await second.session_tools.take_results("a", "s") == {}
    await first.close()
    await second.close()


TAKER = """
import asyncio, sys
from pathlib import Path
from dragoman.store import RedisStore, SqliteStore, StoreUnavailable
place = sys.argv[1]
if "://" in place:
    store = RedisStore(place, max_age_s=3600)
else:
    store = SqliteStore(Path(place), max_age_s=3600, max_bytes=1 << 24, now=lambda: 1_000_000.0)

async def take(own):
    while True:
        try:
            return await store.session_tools.take_results("a", "s", [own])
        except StoreUnavailable:  # another one has the lock
            await asyncio.sleep(0.001)

async def main():
    for number in range(300):
        print(*await take(f"r{number}"))
    await store.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_several_processes_take_each_result_once(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, kind: str
) -> None:
    store: Store
    if kind == "sqlite":
        place = str(tmp_path / "state.db")
        store = sqlite(tmp_path / "state.db", clock)
    else:
        server: RedisServer = request.getfixturevalue("redis")
        place = server.url
        store = RedisStore(place, max_age_s=MAX_AGE_S)
    results = [(f"r{number}", b"x") for number in range(300)]
    await store.session_tools.add_results("a", "s", results)
    await store.close()
    command = [sys.executable, "-c", TAKER, place]
    takers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    taken = [own for taker in takers for own in taker.communicate(timeout=60)[0].split()]
    assert sorted(taken) == sorted(own for own, _ in results)


async def test_a_locked_or_broken_file_is_told_as_unavailable(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "state.db"
    store = sqlite(path, clock)
    await store.session_tools.set_tools("a", "s", b"[]")
    clock.now += MAX_AGE_S * 0.9
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="written"):
        await store.session_tools.set_tools("a", "s", b"[]")
    assert await store.session_tools.toolset("a", "s") == Toolset(tools=b"[]")  # only its age stays
    blocker.execute("ROLLBACK")
    blocker.execute("DROP TABLE session_result")
    blocker.close()
    with pytest.raises(StoreUnavailable, match="read"):
        await store.session_tools.take_results("a", "s")
    await store.close()
