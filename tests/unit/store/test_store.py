"""The store keeps what it was given, across processes, within its bounds."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.store import SqliteStore, Store, StoreUnavailable
from dragoman.store.read_cache import READ_CACHE_BYTES
from dragoman.store.sqlite.connection import AUTOCHECKPOINT_PAGES, Checkpointer
from tests.unit.store.conftest import Clock


def _sqlite(path: Path, clock: Callable[[], float] | None = None, **limits: float) -> SqliteStore:
    return SqliteStore(
        path,
        max_age_s=limits.get("max_age_s", 3600),
        max_bytes=int(limits.get("max_bytes", 1 << 24)),
        now=clock or Clock(),
        cache_bytes=int(limits.get("cache_bytes", READ_CACHE_BYTES)),
    )


async def test_what_was_remembered_is_recalled(store: Store) -> None:
    await store.set_values([("a", "1"), ("b", "2")])
    await store.set_values([("b", "3")])
    assert await store.get_values(["a", "b", "c"]) == {"a": "1", "b": "3"}
    assert await store.get_values([]) == {}
    await store.close()


async def test_many_keys_are_asked_for_at_once(store: Store) -> None:
    items = [(f"k{number}", str(number)) for number in range(1_700)]
    await store.set_values(items)
    assert await store.get_values([key for key, _ in items]) == dict(items)
    await store.close()


async def test_a11_another_process_and_the_next_start_know_it_too(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    first, second = _sqlite(path), _sqlite(path)
    await first.set_values([("call", "signature")])
    assert await second.get_values(["call"]) == {"call": "signature"}
    await first.close()
    await second.close()
    third = _sqlite(path)
    assert await third.get_values(["call"]) == {"call": "signature"}
    await third.close()


async def _checkpointed(store: SqliteStore) -> None:
    while not store._checkpointer.is_done:
        await asyncio.sleep(0.001)


async def test_h_checkpoints_run_in_a_thread_and_no_request_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise every stream stands still while the disk syncs, every few hundred requests."""
    threads: list[int] = []
    work = Checkpointer._run

    def watched(checkpoint: Checkpointer) -> None:
        threads.append(threading.get_ident())
        work(checkpoint)

    store = _sqlite(tmp_path / "state.db")
    monkeypatch.setattr(Checkpointer, "_run", watched)
    log, files = tmp_path / "state.db-wal", len(os.listdir("/proc/self/fd"))
    largest = 0
    for number in range(1500):
        await store.set_values([(f"call {number}", "signature" * 100)])
        largest = max(largest, log.stat().st_size)
        if number % 400 == 399:
            await _checkpointed(store)
    assert len(os.listdir("/proc/self/fd")) == files
    await store.close()
    assert len(threads) == 3
    assert threading.get_ident() not in threads
    assert largest < AUTOCHECKPOINT_PAGES * 4096 / 4


async def test_a_failed_checkpoint_is_logged_and_nothing_else_happens(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = _sqlite(tmp_path / "state.db")
    store._checkpointer._db.close()
    store._checkpointer._run()
    assert "cannot be checkpointed now" in caplog.text
    await store.set_values([("call", "signature")])
    assert await store.get_values(["call"]) == {"call": "signature"}
    await store.close()


def test_what_was_committed_survives_kill_dash_nine(tmp_path: Path) -> None:
    script = """
import asyncio, os, signal, sys, time
from pathlib import Path
from dragoman.store import SqliteStore
store = SqliteStore(Path(sys.argv[1]), max_age_s=9e9, max_bytes=1 << 24, now=time.time)
asyncio.run(store.set_values([("call", "signature")]))
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path / "s.db")], check=False)
    assert done.returncode == -9
    with sqlite3.connect(tmp_path / "s.db") as db:
        assert db.execute("SELECT key, value FROM memory").fetchall() == [("call", "signature")]
    db.close()


async def test_what_is_too_old_is_forgotten(tmp_path: Path) -> None:
    clock = Clock()
    store = _sqlite(tmp_path / "s.db", clock, max_age_s=100)
    await store.set_values([("old", "1")])
    clock.now += 60
    await store.set_values([("new", "2")])
    clock.now += 60
    assert await store.get_values(["old", "new"]) == {"new": "2"}
    store.prune()
    clock.now -= 60
    assert await store.get_values(["old", "new"]) == {"new": "2"}
    await store.close()


async def test_all_that_is_too_old_goes_however_much_it_is_and_what_was_said_again_stays(
    tmp_path: Path,
) -> None:
    clock = Clock()
    store = _sqlite(tmp_path / "s.db", clock, max_age_s=100)
    await store.set_values([(f"k{number}", "x") for number in range(2_500)])
    clock.now += 60
    await store.set_values([("k0", "again"), ("new", "x")])
    clock.now += 60
    store.prune()
    rows = store._db.execute("SELECT key, value FROM memory ORDER BY id").fetchall()
    assert rows == [("k0", "again"), ("new", "x")]
    await store.close()


async def test_a_file_of_before_loses_the_index_that_nobody_needs(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    await _sqlite(path, Clock()).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE INDEX memory_by_age ON memory (written)")
    store = _sqlite(path, Clock())
    assert not store._db.execute("SELECT name FROM sqlite_master WHERE name = 'memory_by_age'").fetchall()
    await store.close()


async def test_when_there_is_too_much_the_oldest_goes_first(tmp_path: Path) -> None:
    clock = Clock()
    store = _sqlite(tmp_path / "s.db", clock, max_bytes=400_000)
    for number in range(1_000):
        clock.now += 1
        await store.set_values([(f"k{number}", "x" * 1_000)])
    store.prune()
    kept = await store.get_values([f"k{number}" for number in range(1_000)])
    assert 100 < len(kept) < 500
    assert "k999" in kept
    assert "k0" not in kept
    await store.close()


async def test_a_key_that_was_not_there_is_found_once_it_is_written(store: Store) -> None:
    assert await store.get_values(["later"]) == {}
    await store.set_values([("later", "x")])
    assert await store.get_values(["later"]) == {"later": "x"}
    await store.close()


async def test_many_conversations_do_not_push_each_other_out_of_one_answer(
    tmp_path: Path,
) -> None:
    store = _sqlite(tmp_path / "s.db", cache_bytes=700)
    items = [(f"k{number}", str(number)) for number in range(20)]
    await store.set_values(items)
    for size in (5, 1, 20, 7):
        assert await store.get_values([key for key, _ in items[:size]]) == dict(items[:size])
    await store.close()


async def test_a_bound_that_fits_nothing_ends(tmp_path: Path) -> None:
    store = _sqlite(tmp_path / "s.db", max_bytes=1)
    await store.set_values([("k", "v")])
    store.prune()
    assert await store.get_values(["k"]) == {}
    await store.close()


def test_a_file_that_is_no_database_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "s.db").write_bytes(b"this is not a database, it is a letter to a friend" * 50)
    with pytest.raises(ConfigError, match=r"the state file .*s\.db cannot be used"):
        _sqlite(tmp_path / "s.db")


async def test_a_file_of_a_newer_version_is_not_touched(tmp_path: Path) -> None:
    store = _sqlite(tmp_path / "s.db")
    store._db.execute("PRAGMA user_version=99")
    await store.close()
    with pytest.raises(ConfigError, match="newer Dragoman"):
        _sqlite(tmp_path / "s.db")


async def test_a_disk_that_refuses_is_said_so_without_ending_anything(tmp_path: Path) -> None:
    store = _sqlite(tmp_path / "s.db")
    await store.set_values([("k", "v")])
    store._db.execute("PRAGMA query_only=ON")
    with pytest.raises(StoreUnavailable, match="cannot be written"):
        await store.set_values([("k2", "v")])
    assert await store.get_values(["k"]) == {"k": "v"}
    await store.close()
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        await store.get_values(["unknown"])


async def test_space_that_is_freed_is_given_back(tmp_path: Path) -> None:
    clock = Clock()
    store = _sqlite(tmp_path / "s.db", clock, max_age_s=100)
    await store.set_values([(f"k{number}", "x" * 2_000) for number in range(2_000)])
    await _checkpointed(store)
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = (tmp_path / "s.db").stat().st_size
    clock.now += 1_000
    store.prune()
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert (tmp_path / "s.db").stat().st_size < before / 10
    await store.close()


async def test_answers_that_end_at_the_same_time_are_one_transaction(tmp_path: Path) -> None:
    store, reader = _sqlite(tmp_path / "s.db"), sqlite3.connect(tmp_path / "s.db")
    statements: list[str] = []
    store._db.set_trace_callback(statements.append)
    leaving, *staying = [asyncio.create_task(store.set_values([(f"k{number}", "x")])) for number in range(5)]
    await asyncio.sleep(0)
    leaving.cancel()  # a client has left meanwhile: nobody else notices
    for task in asyncio.as_completed(staying):
        await task  # whoever goes on finds its row written
        assert reader.execute("SELECT count(*) FROM memory").fetchone() == (5,)
    assert [one.split()[0] for one in statements] == ["BEGIN", *["INSERT"] * 5, "COMMIT"]
    assert leaving.cancelled()
    reader.close()
    await store.close()


async def test_what_cannot_be_written_together_is_told_to_each(tmp_path: Path) -> None:
    store = _sqlite(tmp_path / "s.db")
    store._db.execute("DROP TABLE memory")
    told = await asyncio.gather(
        *(store.set_values([(f"k{number}", "x")]) for number in range(3)), return_exceptions=True
    )
    assert [type(one) for one in told] == [StoreUnavailable] * 3
    await store.close()


async def test_running_requests_forget_in_slices(tmp_path: Path) -> None:
    clock = Clock()
    store = _sqlite(tmp_path / "s.db", clock, max_bytes=200_000)
    for number in range(1_500):
        clock.now += 1
        await store.set_values([(f"k{number}", "x" * 1_000)])
    assert store._used_bytes() < 600_000
    assert await store.get_values(["k1499"])
    await store.close()


async def test_a_lock_of_another_process_delays_briefly_and_fails_no_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = _sqlite(tmp_path / "s.db")
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="locked"):
        await store.set_values([("k", "v")])
    store._prune_some()
    assert "cannot be deleted now" in caplog.text
    other.execute("ROLLBACK")
    other.close()
    await store.set_values([("k", "v")])
    await store.close()
