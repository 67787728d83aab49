"""Transactions on a SQLite connection; SQLite errors become `StoreUnavailable`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from dragoman.store.base import StoreUnavailable


class SqliteConnection:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @contextmanager
    def reading(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be read: {error}") from error

    @contextmanager
    def writing(self) -> Iterator[None]:
        try:
            with self.transaction():
                yield
        except sqlite3.Error as error:
            raise StoreUnavailable(f"state cannot be written: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with self._db:
            self._db.execute("BEGIN IMMEDIATE")
            yield
