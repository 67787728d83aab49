"""The embedded store: one SQLite file in WAL mode, shared by all workers of a machine.

With `synchronous=NORMAL` a killed process loses nothing that was committed. Calls are short (tens of
microseconds), so they run on the event loop.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from dragoman.errors import ConfigError
from dragoman.store.base import StoreUnavailable

_SCHEMA_VERSION = 1
_KEYS_PER_QUERY = 500
_WRITES_BETWEEN_PRUNES = 500
_RECENT = 10_000
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
_FORGET_A_TENTH = "DELETE FROM memory WHERE id <= (SELECT min(id) + (max(id) - min(id)) / 10 FROM memory)"


class SqliteStore:
    """Bounded by age and by size: the oldest go first. `now` gives seconds since the epoch."""

    def __init__(self, path: Path, *, max_age_s: float, max_bytes: int, now: Callable[[], float]) -> None:
        self._max_age_s = max_age_s
        self._max_bytes = max_bytes
        self._now = now
        self._writes = 0
        self._recent: dict[str, tuple[str, int] | None] = {}
        try:
            self._db = sqlite3.connect(path, timeout=5.0, isolation_level=None, check_same_thread=False)
            for setting in ("auto_vacuum=INCREMENTAL", "journal_mode=WAL", "synchronous=NORMAL"):
                self._db.execute(f"PRAGMA {setting}")
            self._db.executescript(_SCHEMA)
            self._check_version(path)
        except sqlite3.Error as error:
            raise ConfigError(f"the state file {path} cannot be used: {error}") from error
        self.prune()

    def _check_version(self, path: Path) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > _SCHEMA_VERSION:
            raise ConfigError(f"the state file {path} was written by a newer Dragoman")
        self._db.execute(f"PRAGMA user_version={_SCHEMA_VERSION}")

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        """A key that is not found is never looked for again: what a client can bring back was written
        before the client got it."""
        recent = self._recent
        found = {key: recent[key] for key in keys if key in recent}
        unknown = [key for key in keys if key not in found]
        if unknown:
            selected = self._select(unknown)
            looked_up = {key: selected.get(key) for key in unknown}
            self._keep_recent(looked_up)
            found |= looked_up
        oldest = int(self._now() - self._max_age_s)
        return {key: kept[0] for key, kept in found.items() if kept is not None and kept[1] >= oldest}

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
        self._keep_recent({key: (value, written) for key, value in items})
        self._writes += 1
        if self._writes % _WRITES_BETWEEN_PRUNES == 0:
            self.prune()

    async def close(self) -> None:
        self._db.close()

    def _keep_recent(self, items: Mapping[str, tuple[str, int] | None]) -> None:
        if len(self._recent) > _RECENT:
            self._recent = {}
        self._recent.update(items)

    def prune(self) -> None:
        """Forget what is too old, then the oldest tenth while there is too much."""
        self._recent.clear()
        self._db.execute("DELETE FROM memory WHERE written < ?", (int(self._now() - self._max_age_s),))
        while self._used_bytes() > self._max_bytes:
            gone = self._db.execute(_FORGET_A_TENTH).rowcount
            if not gone:
                break
        self._db.execute("PRAGMA incremental_vacuum")

    def _used_bytes(self) -> int:
        pages, free, size = (
            self._db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        )
        return int((pages - free) * size)
