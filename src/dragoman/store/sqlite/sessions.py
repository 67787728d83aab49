"""Tools of sessions in SQLite: one row per session, per call and per result that was not taken yet.

Every request asks for session tools, which few sessions have. `ChangeFlag`, in memory shared by all processes, tells
a process that has found none to query the database again.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

import msgspec

from dragoman.store.base import MAX_SESSION_CALLS, CallData, StoreUnavailable, Toolset
from dragoman.store.sqlite.connection import SqliteConnection

_BYTES = 8
# query again after this time: a process may be killed between its write and the change of the flag
_MAX_AGE_S = 1.0


class ChangeFlag:
    """Cache whether anything exists.

    `may_exist` returns what `query` returned for the current value of the flag.
    """

    def __init__(self, path: Path, query: Callable[[], bool]) -> None:
        self._query = query
        self._seen = b""
        self._found = True
        self._until_s = 0.0
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(file).st_size < _BYTES:
                os.ftruncate(file, _BYTES)
            self._memory = mmap.mmap(file, _BYTES)
        finally:
            os.close(file)

    def mark_changed(self) -> None:
        """Tell all processes to query again; call it after the write."""
        # random, because two concurrent increments could yield the same number
        self._memory[:] = os.urandom(_BYTES)

    def may_exist(self) -> bool:
        value = self._memory[:]
        now_s = monotonic()
        if value != self._seen or now_s > self._until_s:
            self._found = self._query()
            self._seen, self._until_s = value, now_s + _MAX_AGE_S
        return self._found

    def close(self) -> None:
        self._memory.close()


SCHEMA = """
CREATE TABLE IF NOT EXISTS session (
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    tools BLOB,  -- both null: the session has only calls
    config BLOB,
    last TEXT NOT NULL DEFAULT '[]',  -- ids
    used INTEGER NOT NULL,
    PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS session_by_age ON session (used);
CREATE TABLE IF NOT EXISTS session_call (
    number INTEGER PRIMARY KEY,
    scope TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    data BLOB NOT NULL,
    UNIQUE (scope, session, id)
);
CREATE TABLE IF NOT EXISTS session_result (
    scope TEXT NOT NULL,
    session TEXT NOT NULL,
    id TEXT NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (scope, session, id)
) WITHOUT ROWID;
"""

_TOUCH = """
INSERT INTO session (scope, id, used) VALUES (?, ?, ?) ON CONFLICT (scope, id) DO UPDATE SET used = excluded.used
"""
_REGISTER = """
INSERT INTO session_call (scope, session, id, data) VALUES (?, ?, ?, ?)
ON CONFLICT (scope, session, id) DO UPDATE SET data = excluded.data
"""
_TRIM = f"""
DELETE FROM session_call WHERE number IN (
    SELECT number FROM session_call WHERE scope = ? AND session = ?
    ORDER BY number DESC LIMIT -1 OFFSET {MAX_SESSION_CALLS}
)
"""  # noqa: S608 (a number of ours)
_TOOLSET = "SELECT tools, config, used FROM session WHERE scope = ? AND id = ?"
_DROP = (
    "DELETE FROM session_result WHERE scope = ? AND session = ?",
    "DELETE FROM session_call WHERE scope = ? AND session = ?",
    "DELETE FROM session WHERE scope = ? AND id = ?",
)


class SqliteSessionTools:
    """`after_write` may delete old state. Reading the tools of a session also renews it, from time to time."""

    def __init__(
        self,
        db: sqlite3.Connection,
        now: Callable[[], float],
        after_write: Callable[[], None],
        *,
        path: Path,
        max_age_s: float,
    ) -> None:
        self._db = db
        self._flag = ChangeFlag(path.with_name(f"{path.stem}-sessions"), self._has_sessions)
        self._connection = SqliteConnection(db)
        self._now = now
        self._after_write = after_write
        self._max_age_s = max_age_s

    async def set_tools(self, scope: str, session: str, tools: bytes) -> None:
        self._write(scope, session, [("UPDATE session SET tools = ? WHERE scope = ? AND id = ?", tools)])
        self._flag.mark_changed()

    async def set_config(self, scope: str, session: str, config: bytes) -> None:
        self._write(scope, session, [("UPDATE session SET config = ? WHERE scope = ? AND id = ?", config)])
        self._flag.mark_changed()

    async def toolset(self, scope: str, session: str) -> Toolset | None:
        found = self._read(_TOOLSET, scope, session) if self._flag.may_exist() else ()
        if not found:
            return None
        ((tools, config, used),) = found
        if used < self._now() - self._max_age_s / 2:
            with suppress(StoreUnavailable):
                self._write(scope, session)
        return None if tools is None and config is None else Toolset(tools=tools or b"", config=config or b"")

    async def clear(self, scope: str, session: str) -> bool:
        with self._connection.writing():
            return any([self._db.execute(query, (scope, session)).rowcount for query in _DROP])  # noqa: C419 (all)

    async def register_calls(
        self, scope: str, session: str, calls: Sequence[CallData], *, last: bool = True
    ) -> None:
        ids = msgspec.json.encode([call_id for call_id, _ in calls]).decode()
        with self._connection.writing():
            self._touch(scope, session)
            self._db.executemany(_REGISTER, [(scope, session, *entry) for entry in calls])
            self._db.execute(_TRIM, (scope, session))
            if last:
                self._db.execute(
                    "UPDATE session SET last = ? WHERE scope = ? AND id = ?", (ids, scope, session)
                )
        self._after_write()

    async def call(self, scope: str, session: str, call_id: str) -> bytes | None:
        query = "SELECT data FROM session_call WHERE scope = ? AND session = ? AND id = ?"
        found = self._read(query, scope, session, call_id)
        return found[0][0] if found else None

    async def calls(self, scope: str, session: str) -> list[CallData]:
        query = "SELECT id, data FROM session_call WHERE scope = ? AND session = ? ORDER BY number"
        return self._read(query, scope, session)

    async def last_calls(self, scope: str, session: str) -> list[CallData]:
        query = (
            "SELECT c.id, c.data FROM session AS s, json_each(s.last) AS l, session_call AS c "
            "WHERE s.scope = ? AND s.id = ? AND c.scope = s.scope AND c.session = s.id AND c.id = l.value "
            "ORDER BY l.key"
        )
        return self._read(query, scope, session)

    async def add_results(self, scope: str, session: str, results: Sequence[CallData]) -> None:
        with self._connection.writing():
            self._touch(scope, session)
            rows = [(scope, session, *entry) for entry in results]
            self._db.executemany("INSERT OR REPLACE INTO session_result VALUES (?, ?, ?, ?)", rows)
        self._after_write()

    async def results(self, scope: str, session: str) -> dict[str, bytes]:
        query = "SELECT id, data FROM session_result WHERE scope = ? AND session = ?"
        return dict(self._read(query, scope, session))

    async def take_results(
        self, scope: str, session: str, call_ids: Collection[str] | None = None
    ) -> dict[str, bytes]:
        waiting = await self.results(scope, session)
        wanted = [call_id for call_id in waiting if call_ids is None or call_id in call_ids]
        query = "DELETE FROM session_result WHERE scope = ? AND session = ? AND id = ? RETURNING id, data"
        if not wanted:  # the usual case
            return {}
        with self._connection.writing():
            rows = [self._db.execute(query, (scope, session, call_id)).fetchall() for call_id in wanted]
        return {call_id: data for found in rows for call_id, data in found}

    def delete_unused(self, oldest_s: int, most: int) -> int:
        return self._delete_sessions("SELECT scope, id FROM session WHERE used < ? LIMIT ?", (oldest_s, most))

    def delete_oldest(self) -> int:
        return self._delete_sessions("SELECT scope, id FROM session ORDER BY used LIMIT 1", ())

    def oldest(self) -> float:
        """Return when the least recently used session was used; infinity if there is none."""
        (used,) = self._db.execute("SELECT min(used) FROM session").fetchone()
        return float("inf") if used is None else used

    def _delete_sessions(self, query: str, values: tuple[int, ...]) -> int:
        with self._connection.transaction():
            deleted = self._db.execute(query, values).fetchall()
            for statement in _DROP:
                self._db.executemany(statement, deleted)
        return len(deleted)

    def _write(self, scope: str, session: str, changes: Sequence[tuple[str, bytes]] = ()) -> None:
        with self._connection.writing():
            self._touch(scope, session)
            for query, value in changes:
                self._db.execute(query, (value, scope, session))
        self._after_write()

    def _touch(self, scope: str, session: str) -> None:
        self._db.execute(_TOUCH, (scope, session, int(self._now())))

    def _has_sessions(self) -> bool:
        return bool(self._read("SELECT 1 FROM session LIMIT 1"))

    def close(self) -> None:
        self._flag.close()

    def _read(self, query: str, *values: str) -> list[Any]:
        try:  # `reading()` would cost more, and every request comes here
            return self._db.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be read: {error}") from error
