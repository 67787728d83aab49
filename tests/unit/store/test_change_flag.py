"""Sessions' tools are rare: requests look for them only where somebody has set any, in whichever process."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.store import SqliteStore, Toolset
from dragoman.store.sqlite.sessions import ChangeFlag
from tests.unit.store.conftest import Clock

_SET = """
import asyncio, sys
from pathlib import Path
from dragoman.store import SqliteStore

store = SqliteStore(Path(sys.argv[1]), max_age_s=1000, max_bytes=1 << 20, now=lambda: 0)
asyncio.run(store.session_tools.set_tools("me", "s", b"[]"))
"""


def _store(path: Path) -> SqliteStore:
    return SqliteStore(path, max_age_s=1000, max_bytes=1 << 20, now=Clock())


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr("dragoman.store.sqlite.sessions.monotonic", lambda: clock[0])
    return clock


async def test_where_nobody_has_set_any_tools_requests_do_not_look_for_them(
    tmp_path: Path, seconds: list[float]
) -> None:
    store = _store(tmp_path / "state.db")
    statements: list[str] = []
    store._db.set_trace_callback(statements.append)
    for _ in range(5):
        assert await store.session_tools.toolset("me", "s") is None
    assert len(statements) == 1
    seconds[0] += 2
    assert await store.session_tools.toolset("me", "s") is None
    assert len(statements) == 2
    await store.close()


@pytest.mark.usefixtures("seconds")
async def test_tools_that_another_process_sets_are_there_at_once(tmp_path: Path) -> None:
    store = _store(tmp_path / "state.db")
    assert await store.session_tools.toolset("me", "s") is None
    subprocess.run([sys.executable, "-c", _SET, str(tmp_path / "state.db")], check=True)
    assert await store.session_tools.toolset("me", "s") == Toolset(tools=b"[]", config=b"")
    await store.session_tools.set_config("me", "t", b"{}")
    assert await store.session_tools.toolset("me", "t") == Toolset(tools=b"", config=b"{}")
    assert await store.session_tools.toolset("you", "s") is None
    await store.close()


async def test_a_change_whose_word_was_never_said_is_seen_a_little_later(
    tmp_path: Path, seconds: list[float]
) -> None:
    store = _store(tmp_path / "state.db")
    assert await store.session_tools.toolset("me", "s") is None
    with sqlite3.connect(tmp_path / "state.db") as killed:
        killed.execute("INSERT INTO session (scope, id, tools, used) VALUES ('me', 's', '[]', 0)")
    killed.close()
    assert await store.session_tools.toolset("me", "s") is None
    seconds[0] += 2
    assert await store.session_tools.toolset("me", "s") is not None
    await store.close()


def test_a_look_that_fails_is_repeated(tmp_path: Path) -> None:
    looks = iter([RuntimeError, False])

    def look() -> bool:
        found = next(looks)
        if found is RuntimeError:
            raise RuntimeError
        return bool(found)

    word = ChangeFlag(tmp_path / "word", look)
    with pytest.raises(RuntimeError):
        word.may_exist()
    assert not word.may_exist()
    assert not word.may_exist()
    word.close()
    assert (tmp_path / "word").stat().st_mode & 0o777 == 0o600
