"""Meters in SQLite: one row per meter, charged in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Sequence

from dragoman.store.base import Charge
from dragoman.store.sqlite.connection import SqliteConnection

SCHEMA = """
CREATE TABLE IF NOT EXISTS meter (name TEXT PRIMARY KEY, amount INTEGER NOT NULL, ends INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS meter_by_end ON meter (ends);
"""
_READ = "SELECT amount FROM meter WHERE name = ? AND ends > ?"
_ADD = """
INSERT INTO meter (name, amount, ends) VALUES (:name, :amount, :ends)
ON CONFLICT (name) DO UPDATE SET amount = iif(ends > :now, amount, 0) + excluded.amount, ends = excluded.ends
"""


class SqliteMeters:
    def __init__(self, db: sqlite3.Connection, now: Callable[[], float]) -> None:
        self._db = db
        self._connection = SqliteConnection(db)
        self._now = now

    async def charge(self, charges: Sequence[Charge]) -> str:
        now = int(self._now())
        with self._connection.writing():
            for one in charges:
                if one.limit and self._amount(one.name, now) + one.amount > one.limit:
                    return one.name
            rows = [
                {"name": one.name, "amount": one.amount, "ends": one.ends_s, "now": now} for one in charges
            ]
            self._db.executemany(_ADD, rows)
        return ""

    async def read(self, names: Collection[str]) -> dict[str, int]:
        now = int(self._now())
        with self._connection.reading():
            return {name: self._amount(name, now) for name in names}

    def delete_expired(self, most: int) -> int:
        which = "SELECT name FROM meter WHERE ends <= ? LIMIT ?"
        query = f"DELETE FROM meter WHERE name IN ({which})"  # noqa: S608 (constants only)
        return self._db.execute(query, (int(self._now()), most)).rowcount

    def _amount(self, name: str, now: int) -> int:
        row = self._db.execute(_READ, (name, now)).fetchone()
        return int(row[0]) if row else 0
