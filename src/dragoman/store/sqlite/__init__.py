"""The embedded store: one SQLite file in WAL mode, shared by all workers of a machine.

With `synchronous=NORMAL` a killed process loses nothing that was committed. Calls take tens of microseconds
and wait only briefly for another worker's lock, so they run on the event loop.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Collection, Sequence
from functools import cache
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.store.base import StoreUnavailable
from dragoman.store.read_cache import READ_CACHE_BYTES, ReadCache
from dragoman.store.sqlite.connection import AUTOCHECKPOINT_PAGES, Checkpointer, ValueRow, WriteBatch
from dragoman.store.sqlite.ledger import SqliteLedger, ledger_path
from dragoman.store.sqlite.meters import SCHEMA as METERS_SCHEMA
from dragoman.store.sqlite.meters import SqliteMeters
from dragoman.store.sqlite.sessions import SCHEMA as SESSIONS_SCHEMA
from dragoman.store.sqlite.sessions import SqliteSessionTools
from dragoman.store.sqlite.turns import SCHEMA as TURNS_SCHEMA
from dragoman.store.sqlite.turns import SqliteTurns

_SCHEMA_VERSION = 3
_KEYS_PER_QUERY = 500
_ROWS_BETWEEN_PRUNES = 400
_ROWS_PER_WRITE = 4  # rows that a write of conversations or tools counts as, because it may be large
_ROWS_PER_PRUNE = 1000
_TREES_PER_PRUNE = 200
_LOCK_S = 0.2  # how long to wait for another worker's write; this blocks the event loop
_OPEN_LOCK_S = 10.0  # how long to wait for other workers that are starting
_SCHEMA = """
CREATE TABLE IF NOT EXISTS memory (
    id INTEGER PRIMARY KEY,  -- rows lie in order of age, so that deleting the oldest frees whole pages
    key TEXT NOT NULL UNIQUE,
    value TEXT NOT NULL,
    written INTEGER NOT NULL
);
DROP INDEX IF EXISTS memory_by_age;  -- in files of older versions; the rows lie in order of age anyway
"""

_SETTINGS = (
    "auto_vacuum=INCREMENTAL",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    f"wal_autocheckpoint={AUTOCHECKPOINT_PAGES}",
)
_SET_VALUE = "INSERT OR REPLACE INTO memory (key, value, written) VALUES (?, ?, ?)"
_OLDEST = "SELECT written FROM memory ORDER BY id LIMIT 1"
_DELETE_OLD = "DELETE FROM memory WHERE id IN (SELECT id FROM memory ORDER BY id LIMIT ?) AND written < ?"
_DELETE_OLDEST = "DELETE FROM memory WHERE id IN (SELECT id FROM memory ORDER BY id LIMIT ?)"
_MISSING: tuple[str | None, int] = (None, 0)
_log = logging.getLogger("dragoman")


class SqliteStore:
    """A store limited by age and size; the oldest entries are deleted first.

    `now` returns seconds since the epoch.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_age_s: float,
        max_bytes: int,
        now: Callable[[], float],
        cache_bytes: int = READ_CACHE_BYTES,
    ) -> None:
        self._max_age_s = max_age_s
        self._max_bytes = max_bytes
        self._now = now
        self._rows_since_prune = 0
        self._batch = WriteBatch(self._write)
        self._cache_bytes = cache_bytes
        self._cache = ReadCache(cache_bytes)
        self.ledger = SqliteLedger(ledger_path(path), now)
        try:
            self._db = sqlite3.connect(
                path, timeout=_OPEN_LOCK_S, isolation_level=None, check_same_thread=False
            )
            for setting in _SETTINGS:
                self._db.execute(f"PRAGMA {setting}")
            self._db.executescript(_SCHEMA + TURNS_SCHEMA + METERS_SCHEMA + SESSIONS_SCHEMA)
            self.turns = SqliteTurns(self._db, now, self._count_rows)
            self.meters = SqliteMeters(self._db, now)
            self.session_tools = SqliteSessionTools(
                self._db, now, self._count_rows, path=path, max_age_s=max_age_s
            )
            self._check_version(path)
            self.prune()
            self._checkpointer = Checkpointer(path)
            self._db.execute(f"PRAGMA busy_timeout={_LOCK_S * 1000:.0f}")
        except (sqlite3.Error, OSError) as error:
            hint = "move it away to start anew; only the signatures of past conversations are lost"
            raise ConfigError(f"the state file {path} cannot be used: {error}\n{hint}") from error

    def _check_version(self, path: Path) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _SCHEMA_VERSION:
            raise ConfigError(f"the state file {path} was written by a newer Dragoman")
        self._db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")

    async def get_values(self, keys: Collection[str]) -> dict[str, str]:
        found, missing = self._cache.find(keys)
        if missing:
            selected = self._select(missing)
            entries = {key: selected.get(key, _MISSING) for key in missing}
            self._cache.put(entries)
            found |= entries
        oldest = self._oldest_allowed_s()
        return {
            key: value for key, (value, written) in found.items() if value is not None and written >= oldest
        }

    def _select(self, keys: list[str]) -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        try:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                group = keys[start : start + _KEYS_PER_QUERY]
                for key, value, written in self._db.execute(_select_query(len(group)), group):
                    found[key] = value, written
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be read: {error}") from error
        return found

    async def set_values(self, items: Sequence[tuple[str, str]]) -> None:
        written = int(self._now())
        # Cache before writing: if the write fails, this process still knows the value.
        self._cache.put({key: (value, written) for key, value in items})
        await self._batch.write([(key, value, written) for key, value in items])

    def _write(self, rows: list[ValueRow]) -> None:
        try:
            if len(rows) == 1:  # a single statement is already a transaction
                self._db.execute(_SET_VALUE, rows[0])
            else:
                with self._db:
                    self._db.execute("BEGIN IMMEDIATE")
                    self._db.executemany(_SET_VALUE, rows)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be written: {error}") from error
        self._count_rows(len(rows))

    async def close(self) -> None:
        await self.ledger.close()
        await self._checkpointer.close()
        self.session_tools.close()
        self._db.close()

    def prune(self) -> None:
        """Delete everything that is too old, then the oldest entries until the size limit is met."""
        self._cache = ReadCache(self._cache_bytes)
        while self._prune_batch():
            pass
        self._db.executescript("PRAGMA incremental_vacuum")  # `execute` would free only one page

    def _count_rows(self, rows: int = _ROWS_PER_WRITE) -> None:
        self._rows_since_prune += rows
        if self._rows_since_prune >= _ROWS_BETWEEN_PRUNES:
            self._rows_since_prune = 0
            self._prune_some()
            self._checkpointer.start()

    def _prune_some(self) -> None:
        """Delete a limited number of rows while requests are running.

        Errors are logged; the next call tries again.
        """
        try:
            self._prune_batch()
            self._db.executescript("PRAGMA incremental_vacuum(1000)")
        except sqlite3.Error as error:
            _log.warning("old state cannot be deleted now: %s", error)

    def _prune_batch(self) -> int:
        """Return how many rows were deleted."""
        deleted = self._delete_expired_values(self._oldest_allowed_s())
        deleted += self.turns.delete_unused(self._oldest_allowed_s(), _TREES_PER_PRUNE)
        deleted += self.meters.delete_expired(_ROWS_PER_PRUNE)
        deleted += self.session_tools.delete_unused(self._oldest_allowed_s(), _TREES_PER_PRUNE)
        if self._used_bytes() > self._max_bytes:
            deleted += self._db.execute(_DELETE_OLDEST, (_ROWS_PER_PRUNE,)).rowcount
        for _ in range(_TREES_PER_PRUNE):  # one by one, because one conversation may hold most of the data
            if self._used_bytes() <= self._max_bytes:
                break
            older = self.turns.oldest() <= self.session_tools.oldest()
            deleted += (self.turns if older else self.session_tools).delete_oldest()
        return deleted

    def _delete_expired_values(self, oldest: int) -> int:
        first = self._db.execute(_OLDEST).fetchone()
        if first is None or first[0] >= oldest:  # the usual case; all other rows are newer
            return 0
        return self._db.execute(_DELETE_OLD, (_ROWS_PER_PRUNE, oldest)).rowcount

    def _oldest_allowed_s(self) -> int:
        return int(self._now() - self._max_age_s)

    def _used_bytes(self) -> int:
        pages, free, size = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)


@cache
def _select_query(keys: int) -> str:
    marks = ",".join("?" * keys)
    return f"SELECT key, value, written FROM memory WHERE key IN ({marks})"  # noqa: S608 (marks only)
