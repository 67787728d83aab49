"""The ledger in its own SQLite file, so that no request waits for its writes.

Every call runs in a thread. The first call opens the file unless `open` did.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from dragoman.store.base import (
    LEDGER_ENTRY_MAX_AGE_S,
    MAX_LEDGER_ENTRIES,
    MAX_LEDGER_LABELS,
    LedgerEntry,
    StoreUnavailable,
    Tally,
    first_retained_day,
    other_labels,
)
from dragoman.store.sqlite.connection import SqliteConnection

T = TypeVar("T")

_VERSION = 1
_LOCK_S = 5.0  # how long to wait for another worker's write; no request waits for this
_WRITES_BETWEEN_PRUNES = 20
# with four values per row this stays below 999, SQLite's lowest limit of parameters
_ROWS_PER_STATEMENT = 200
_SCHEMA = """
CREATE TABLE IF NOT EXISTS line (
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL,
    session TEXT NOT NULL,
    data BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS line_by_time ON line (at, id);
CREATE INDEX IF NOT EXISTS line_by_session ON line (session, at, id);
CREATE TABLE IF NOT EXISTS tally (
    kind TEXT NOT NULL,
    day TEXT NOT NULL,
    labels TEXT NOT NULL,
    sums BLOB NOT NULL,
    PRIMARY KEY (kind, day, labels)
) WITHOUT ROWID;
"""
_ADD_ENTRIES = "INSERT OR IGNORE INTO line (id, at, session, data) VALUES {rows}"
_ENTRIES = """
SELECT id, at, session, data FROM line
WHERE (at, id) < (:at, :id) {only} ORDER BY at DESC, id DESC LIMIT :limit
"""
_ENTRY = "SELECT id, at, session, data FROM line WHERE id = ?"
_SUMS = "SELECT kind, day, labels, sums FROM tally WHERE (kind, day, labels) IN (VALUES {rows})"
_COUNT = "SELECT count(*) FROM tally WHERE kind = ? AND day = ?"
_SET_SUMS = "INSERT OR REPLACE INTO tally (kind, day, labels, sums) VALUES {rows}"
_TALLIES = "SELECT day, labels, sums FROM tally WHERE kind = ? AND day BETWEEN ? AND ?"
_DELETE_OLD = "DELETE FROM line WHERE at < ?"
_DELETE_EXCESS = (
    "DELETE FROM line WHERE rowid IN (SELECT rowid FROM line ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?)"
)
_DELETE_DAYS = "DELETE FROM tally WHERE day < ?"
_MAX_AT_MS = 1 << 62

_decode_labels = msgspec.json.Decoder(tuple[str, ...]).decode
_decode_sums = msgspec.json.Decoder(dict[str, int]).decode


def ledger_path(state: Path) -> Path:
    """Return the path of the ledger for a state file: `state.db` has `state-ledger.db`."""
    return state.with_name(f"{state.stem}-ledger{state.suffix}")


class SqliteLedger:
    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now
        self._db: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        self._writes = 0

    async def add(self, entries: Sequence[LedgerEntry], tallies: Sequence[Tally]) -> None:
        def work(db: sqlite3.Connection) -> None:
            with SqliteConnection(db).transaction():
                _execute_many(
                    db, _ADD_ENTRIES, [(one.id, one.at_ms, one.session, one.data) for one in entries]
                )
                _add(db, tallies)
                if self._writes % _WRITES_BETWEEN_PRUNES == 0:
                    self._prune(db)
            self._writes += 1

        await self._run("written", work)

    async def entries(
        self, *, limit: int, before: tuple[int, str] | None = None, session: str = ""
    ) -> list[LedgerEntry]:
        at, entry_id = before or (_MAX_AT_MS, "")
        query = _ENTRIES.format(only="AND session = :session" if session else "")
        parameters = {"at": at, "id": entry_id, "limit": limit, "session": session}
        rows = await self._run("read", lambda db: db.execute(query, parameters).fetchall())
        return [_entry_of_row(row) for row in rows]

    async def entry(self, entry_id: str) -> LedgerEntry | None:
        row = await self._run("read", lambda db: db.execute(_ENTRY, (entry_id,)).fetchone())
        return None if row is None else _entry_of_row(row)

    async def tallies(self, kind: str, first_day: str, last_day: str) -> list[Tally]:
        rows = await self._run(
            "read", lambda db: db.execute(_TALLIES, (kind, first_day, last_day)).fetchall()
        )
        found = [
            Tally(day=day, kind=kind, labels=_decode_labels(labels), sums=_decode_sums(sums))
            for day, labels, sums in rows
        ]
        return sorted(found, key=lambda tally: (tally.day, tally.labels))

    def open(self) -> None:
        """Open the file before the first call; an error is ignored here and reported by that call."""
        with self._lock, contextlib.suppress(sqlite3.Error):
            self._db = self._db or _open_database(self._path)

    async def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None

    async def _run(self, action: str, work: Callable[[sqlite3.Connection], T]) -> T:
        def locked() -> T:
            with self._lock:
                if self._db is None:
                    self._db = _open_database(self._path)
                return work(self._db)

        try:
            return await asyncio.to_thread(locked)
        except (sqlite3.Error, OSError, msgspec.DecodeError) as error:
            raise StoreUnavailable(f"the ledger cannot be {action}: {error}") from error

    def _prune(self, db: sqlite3.Connection) -> None:
        now_s = self._now()
        db.execute(_DELETE_OLD, (int((now_s - LEDGER_ENTRY_MAX_AGE_S) * 1000),))
        db.execute(_DELETE_EXCESS, (MAX_LEDGER_ENTRIES,))
        db.execute(_DELETE_DAYS, (first_retained_day(now_s),))


def _open_database(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=_LOCK_S, isolation_level=None, check_same_thread=False)
    try:
        for setting in ("journal_mode=WAL", "synchronous=NORMAL"):
            db.execute(f"PRAGMA {setting}")
        with contextlib.closing(db.execute("PRAGMA user_version")) as found:
            (version,) = found.fetchone()
        if version > _VERSION:
            raise sqlite3.DatabaseError(f"{path} was written by a newer Dragoman")
        db.executescript(_SCHEMA)
        db.execute(f"PRAGMA user_version={_VERSION}")
    except sqlite3.Error:
        db.close()
        raise
    return db


#: The kind, the day and the encoded labels of a tally.
_Key = tuple[str, str, str]


def _add(db: sqlite3.Connection, tallies: Sequence[Tally]) -> None:
    """Add the sums to the stored ones; labels beyond the limit are added to `OTHER_LABEL`."""
    keys = [(one.kind, one.day, _encode_labels(one.labels)) for one in tallies]
    stored = _stored_sums(db, keys)
    free: dict[tuple[str, str], int] = {}  # how many more labels fit
    for key, tally in zip(keys, tallies, strict=True):
        if key not in stored:
            group = tally.kind, tally.day
            if group not in free:
                free[group] = MAX_LEDGER_LABELS - int(db.execute(_COUNT, group).fetchone()[0])
            if free[group] <= 0:
                key = (*group, _encode_labels(other_labels(tally.labels)))
                stored = stored if key in stored else {**_stored_sums(db, [key]), **stored}
            free[group] -= key not in stored
        sums = stored.setdefault(key, {})
        for name, amount in tally.sums.items():
            sums[name] = sums.get(name, 0) + amount
    _execute_many(db, _SET_SUMS, [(*key, msgspec.json.encode(sums)) for key, sums in stored.items()])


def _stored_sums(db: sqlite3.Connection, keys: Sequence[_Key]) -> dict[_Key, dict[str, int]]:
    rows = _execute_many(db, _SUMS, keys)
    return {(kind, day, labels): _decode_sums(sums) for kind, day, labels, sums in rows}


def _encode_labels(labels: tuple[str, ...]) -> str:
    return msgspec.json.encode(labels).decode()


def _execute_many(db: sqlite3.Connection, query: str, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """Execute the query with many rows per statement, as each one competes with the event loop for the GIL."""
    found: list[Any] = []
    for start in range(0, len(rows), _ROWS_PER_STATEMENT):
        some = rows[start : start + _ROWS_PER_STATEMENT]
        marks = f"({','.join('?' * len(some[0]))})"
        statement = query.format(rows=",".join([marks] * len(some)))
        found += db.execute(statement, [value for row in some for value in row]).fetchall()
    return found


def _entry_of_row(row: tuple[str, int, str, bytes]) -> LedgerEntry:
    entry_id, at_ms, session, data = row
    return LedgerEntry(id=entry_id, at_ms=at_ms, session=session, data=data)
