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
from dragoman.store.recent import RECENT_BYTES, Recent
from dragoman.store.sqlite_checkpoint import LAST_RESORT, Checkpoint
from dragoman.store.sqlite_ledger import SqliteLedger, ledger_path
from dragoman.store.sqlite_meters import SCHEMA as METERS_SCHEMA
from dragoman.store.sqlite_meters import SqliteMeters
from dragoman.store.sqlite_sessions import SCHEMA as SESSIONS_SCHEMA
from dragoman.store.sqlite_sessions import SqliteSessionTools
from dragoman.store.sqlite_together import Row, Together
from dragoman.store.sqlite_turns import SCHEMA as TURNS_SCHEMA
from dragoman.store.sqlite_turns import SqliteTurns

_SCHEMA_VERSION = 3
_KEYS_PER_QUERY = 500
_ROWS_BETWEEN_PRUNES = 400
_ROWS_OF_A_WRITE = 4  # how many rows a write of conversations or tools counts as: they may be large
_ROWS_PER_PRUNE = 1000
_TREES_PER_PRUNE = 200
_LOCK_S = 0.2  # how long to wait for another worker's write; this blocks the event loop
_OPEN_LOCK_S = 10.0  # how long to wait for other workers that are starting
_SCHEMA = """
CREATE TABLE IF NOT EXISTS memory (
    id INTEGER PRIMARY KEY,  -- rows lie in order of age, so that forgetting the oldest frees whole pages
    key TEXT NOT NULL UNIQUE,
    value TEXT NOT NULL,
    written INTEGER NOT NULL
);
DROP INDEX IF EXISTS memory_by_age;  -- of older files: every write paid for it, and the order of the rows says the same
"""

_SETTINGS = (
    "auto_vacuum=INCREMENTAL",
    "journal_mode=WAL",
    "synchronous=NORMAL",
    f"wal_autocheckpoint={LAST_RESORT}",
)
_REMEMBER = "INSERT OR REPLACE INTO memory (key, value, written) VALUES (?, ?, ?)"
_OLDEST = "SELECT written FROM memory ORDER BY id LIMIT 1"
_FORGET_OLD = "DELETE FROM memory WHERE id IN (SELECT id FROM memory ORDER BY id LIMIT ?) AND written < ?"
_FORGET_OLDEST = "DELETE FROM memory WHERE id IN (SELECT id FROM memory ORDER BY id LIMIT ?)"
_NEVER_WRITTEN: tuple[str | None, int] = (None, 0)
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
        recent_bytes: int = RECENT_BYTES,
    ) -> None:
        self._max_age_s = max_age_s
        self._max_bytes = max_bytes
        self._now = now
        self._rows_since_prune = 0
        self._together = Together(self._write)
        self._recent_bytes = recent_bytes
        self._recent = Recent(recent_bytes)
        self.ledger = SqliteLedger(ledger_path(path), now)
        try:
            self._db = sqlite3.connect(
                path, timeout=_OPEN_LOCK_S, isolation_level=None, check_same_thread=False
            )
            for setting in _SETTINGS:
                self._db.execute(f"PRAGMA {setting}")
            self._db.executescript(_SCHEMA + TURNS_SCHEMA + METERS_SCHEMA + SESSIONS_SCHEMA)
            self.turns = SqliteTurns(self._db, now, self._wrote)
            self.meters = SqliteMeters(self._db, now)
            self.session_tools = SqliteSessionTools(
                self._db, now, self._wrote, path=path, max_age_s=max_age_s
            )
            self._check_version(path)
            self.prune()
            self._checkpoint = Checkpoint(path)
            self._db.execute(f"PRAGMA busy_timeout={_LOCK_S * 1000:.0f}")
        except (sqlite3.Error, OSError) as error:
            hint = "move it away to start anew; only the signatures of past conversations are lost"
            raise ConfigError(f"the state file {path} cannot be used: {error}\n{hint}") from error

    def _check_version(self, path: Path) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _SCHEMA_VERSION:
            raise ConfigError(f"the state file {path} was written by a newer Dragoman")
        self._db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        found, unknown = self._recent.find(keys)
        if unknown:
            selected = self._select(unknown)
            asked = {key: selected.get(key, _NEVER_WRITTEN) for key in unknown}
            self._recent.keep(asked)
            found |= asked
        oldest = self._oldest()
        return {
            key: value for key, (value, written) in found.items() if value is not None and written >= oldest
        }

    def _select(self, keys: list[str]) -> dict[str, tuple[str, int]]:
        found: dict[str, tuple[str, int]] = {}
        try:
            for start in range(0, len(keys), _KEYS_PER_QUERY):
                group = keys[start : start + _KEYS_PER_QUERY]
                for key, value, written in self._db.execute(_recall_query(len(group)), group):
                    found[key] = value, written
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be read: {error}") from error
        return found

    async def remember(self, items: Sequence[tuple[str, str]]) -> None:
        written = int(self._now())
        # Cache before writing: if the write fails, this process still knows the value.
        self._recent.keep({key: (value, written) for key, value in items})
        await self._together.write([(key, value, written) for key, value in items])

    def _write(self, rows: list[Row]) -> None:
        try:
            if len(rows) == 1:  # a single statement is already a transaction
                self._db.execute(_REMEMBER, rows[0])
            else:
                with self._db:
                    self._db.execute("BEGIN IMMEDIATE")
                    self._db.executemany(_REMEMBER, rows)
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be written: {error}") from error
        self._wrote(len(rows))

    async def close(self) -> None:
        await self.ledger.close()
        await self._checkpoint.close()
        self.session_tools.close()
        self._db.close()

    def prune(self) -> None:
        """Delete everything that is too old, then the oldest entries until the size limit is met."""
        self._recent = Recent(self._recent_bytes)
        while self._forget():
            pass
        self._db.executescript("PRAGMA incremental_vacuum")  # `execute` would free only one page

    def _wrote(self, rows: int = _ROWS_OF_A_WRITE) -> None:
        self._rows_since_prune += rows
        if self._rows_since_prune >= _ROWS_BETWEEN_PRUNES:
            self._rows_since_prune = 0
            self._forget_some()
            self._checkpoint.begin()

    def _forget_some(self) -> None:
        """Delete a limited number of rows while requests are running.

        Errors are logged; the next call tries again.
        """
        try:
            self._forget()
            self._db.executescript("PRAGMA incremental_vacuum(1000)")
        except sqlite3.Error as error:
            _log.warning("old state cannot be forgotten now: %s", error)

    def _forget(self) -> int:
        """Return how many rows were deleted."""
        gone = self._forget_old(self._oldest())
        gone += self.turns.forget(self._oldest(), _TREES_PER_PRUNE)
        gone += self.meters.forget(_ROWS_PER_PRUNE)
        gone += self.session_tools.forget(self._oldest(), _TREES_PER_PRUNE)
        if self._used_bytes() > self._max_bytes:
            gone += self._db.execute(_FORGET_OLDEST, (_ROWS_PER_PRUNE,)).rowcount
        for _ in range(_TREES_PER_PRUNE):  # one by one, because one conversation may hold most of the data
            if self._used_bytes() <= self._max_bytes:
                break
            older = self.turns.oldest() <= self.session_tools.oldest()
            gone += (self.turns if older else self.session_tools).forget_oldest()
        return gone

    def _forget_old(self, oldest: int) -> int:
        first = self._db.execute(_OLDEST).fetchone()
        if first is None or first[0] >= oldest:  # the usual case; all other rows are newer
            return 0
        return self._db.execute(_FORGET_OLD, (_ROWS_PER_PRUNE, oldest)).rowcount

    def _oldest(self) -> int:
        return int(self._now() - self._max_age_s)

    def _used_bytes(self) -> int:
        pages, free, size = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)


@cache
def _recall_query(keys: int) -> str:
    marks = ",".join("?" * keys)
    return f"SELECT key, value, written FROM memory WHERE key IN ({marks})"  # noqa: S608 (marks only)
