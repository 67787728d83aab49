"""The embedded store: one SQLite file in WAL mode, shared by all workers of a machine.

With `synchronous=NORMAL` a killed process loses nothing that was committed. Calls take tens of
microseconds and wait for another worker's lock only briefly, so they run on the event loop.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.memo import Memo
from dragoman.store.base import StoreUnavailable
from dragoman.store.sqlite_turns import SCHEMA as TURNS_SCHEMA
from dragoman.store.sqlite_turns import SqliteTurns

_SCHEMA_VERSION = 2
_KEYS_PER_QUERY = 500
_WRITES_BETWEEN_PRUNES = 100
_ROWS_PER_PRUNE = 10 * _WRITES_BETWEEN_PRUNES
_TREES_PER_PRUNE = 2 * _WRITES_BETWEEN_PRUNES
_RECENT_BYTES = 32 * 1024 * 1024
_LOCK_S = 0.2  # another worker's write; the event loop waits with us
_SCHEMA = """
CREATE TABLE IF NOT EXISTS memory (
    id INTEGER PRIMARY KEY,  -- rows lie in order of age, so that forgetting the oldest frees whole pages
    key TEXT NOT NULL UNIQUE,
    value TEXT NOT NULL,
    written INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS memory_by_age ON memory (written);
"""

_REMEMBER = "INSERT OR REPLACE INTO memory (key, value, written) VALUES (?, ?, ?)"
_FORGET_OLD = "DELETE FROM memory WHERE id IN (SELECT id FROM memory WHERE written < ? LIMIT ?)"
_FORGET_OLDEST = "DELETE FROM memory WHERE id IN (SELECT id FROM memory ORDER BY id LIMIT ?)"
_ENTRY_BYTES = 200
_log = logging.getLogger("dragoman")


class SqliteStore:
    """Bounded by age and by size: the oldest go first. `now` gives seconds since the epoch."""

    def __init__(self, path: Path, *, max_age_s: float, max_bytes: int, now: Callable[[], float]) -> None:
        self._max_age_s = max_age_s
        self._max_bytes = max_bytes
        self._now = now
        self._writes = 0
        self._recent: Memo[str, tuple[str | None, int]] = Memo(_RECENT_BYTES)
        try:
            self._db = sqlite3.connect(path, timeout=_LOCK_S, isolation_level=None, check_same_thread=False)
            for setting in ("auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=NORMAL"):
                self._db.execute(f"PRAGMA {setting}")
            self._db.executescript(_SCHEMA + TURNS_SCHEMA)
            self.turns = SqliteTurns(self._db, now, self._wrote)
            self._check_version(path)
            self.prune()
        except sqlite3.Error as error:
            hint = "move it away to start anew; only the signatures of past conversations are lost"
            raise ConfigError(f"the state file {path} cannot be used: {error}\n{hint}") from error

    def _check_version(self, path: Path) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _SCHEMA_VERSION:
            raise ConfigError(f"the state file {path} was written by a newer Dragoman")
        self._db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        """A key that is not found is never looked for again: what a client can bring back was written
        before the client got it."""
        found: dict[str, tuple[str | None, int]] = {}
        unknown: list[str] = []
        for key in keys:
            kept = self._recent.find(key)
            if kept is None:
                unknown.append(key)
            else:
                found[key] = kept
        if unknown:
            selected = self._select(unknown)
            for key in unknown:
                found[key] = selected.get(key, (None, 0))
                self._keep(key, *found[key])
        oldest = self._oldest()
        return {
            key: value for key, (value, written) in found.items() if value is not None and written >= oldest
        }

    def _select(self, keys: list[str]) -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        for start in range(0, len(keys), _KEYS_PER_QUERY):
            group = keys[start : start + _KEYS_PER_QUERY]
            marks = ",".join("?" * len(group))
            query = f"SELECT key, value, written FROM memory WHERE key IN ({marks})"  # noqa: S608 (marks only)
            try:
                rows = self._db.execute(query, group).fetchall()
            except sqlite3.Error as error:
                raise StoreUnavailable(f"state cannot be read: {error}") from error
            found.update((key, (value, written)) for key, value, written in rows)
        return found

    async def remember(self, items: Sequence[tuple[str, str]]) -> None:
        written = int(self._now())
        rows = [(key, value, written) for key, value in items]
        try:
            if len(rows) == 1:  # a statement alone is a transaction of its own
                self._db.execute(_REMEMBER, rows[0])
            else:
                with self._db:
                    self._db.execute("BEGIN IMMEDIATE")
                    self._db.executemany(_REMEMBER, rows)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be written: {error}") from error
        for key, value in items:
            self._keep(key, value, written)
        self._wrote()

    async def close(self) -> None:
        self._db.close()

    def _keep(self, key: str, value: str | None, written: int) -> None:
        self._recent.put(key, _ENTRY_BYTES + len(key) + len(value or ""), (value, written))

    def prune(self) -> None:
        """Forget all that is too old, then the oldest while there is too much."""
        self._recent = Memo(_RECENT_BYTES)
        while self._forget():
            pass
        self._db.executescript("PRAGMA incremental_vacuum")  # a script, because `execute` frees one page only

    def _wrote(self) -> None:
        self._writes += 1
        if self._writes % _WRITES_BETWEEN_PRUNES == 0:
            self._forget_some()

    def _forget_some(self) -> None:
        """A slice of the same while requests are running; what cannot be done now is done later."""
        try:
            self._forget()
            self._db.executescript("PRAGMA incremental_vacuum(1000)")
        except sqlite3.Error as error:
            _log.warning("old state cannot be forgotten now: %s", error)

    def _forget(self) -> int:
        """How many rows went."""
        gone = self._db.execute(_FORGET_OLD, (self._oldest(), _ROWS_PER_PRUNE)).rowcount
        gone += self.turns.forget(self._oldest(), _TREES_PER_PRUNE)
        if self._used_bytes() > self._max_bytes:
            gone += self._db.execute(_FORGET_OLDEST, (_ROWS_PER_PRUNE,)).rowcount
        for _ in range(_TREES_PER_PRUNE):  # one by one: a conversation may be as large as all the rest
            if self._used_bytes() <= self._max_bytes:
                break
            gone += self.turns.forget_oldest()
        return gone

    def _oldest(self) -> int:
        return int(self._now() - self._max_age_s)

    def _used_bytes(self) -> int:
        pages, free, size = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)
