"""Conversations in SQLite.

Turns form trees, and old ones are deleted by whole trees, so that no conversation loses its beginning.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from dragoman.store.base import Conversation, ConversationTurn, HeadMoved
from dragoman.store.sqlite.connection import SqliteConnection

SCHEMA = """
CREATE TABLE IF NOT EXISTS turn (
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    parent TEXT NOT NULL,
    tree TEXT NOT NULL,  -- the id of the first turn
    data BLOB NOT NULL,
    PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS turn_by_tree ON turn (scope, tree);
CREATE TABLE IF NOT EXISTS answer (  -- separate: turns are read with every request, their answers rarely
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tree (
    scope TEXT NOT NULL,
    id TEXT NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (scope, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tree_by_age ON tree (used);
CREATE TABLE IF NOT EXISTS conversation (
    scope TEXT NOT NULL,
    name TEXT NOT NULL,
    head TEXT NOT NULL,
    data BLOB NOT NULL,
    created INTEGER NOT NULL,
    used INTEGER NOT NULL,
    PRIMARY KEY (scope, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS conversation_by_age ON conversation (used);
CREATE INDEX IF NOT EXISTS conversation_by_head ON conversation (scope, head);
CREATE TABLE IF NOT EXISTS lease (name TEXT PRIMARY KEY, holder TEXT NOT NULL, until REAL NOT NULL) WITHOUT ROWID;
"""

_CHAIN = """
WITH RECURSIVE line (id, parent, data, depth) AS (
    SELECT id, parent, data, 0 FROM turn WHERE scope = :scope AND id = :id
    UNION ALL
    SELECT turn.id, turn.parent, turn.data, depth + 1 FROM turn, line WHERE turn.scope = :scope AND turn.id = line.parent
)
SELECT id, parent, data FROM line ORDER BY depth DESC
"""
_TURN = """
SELECT parent, data, coalesce(body, x'') FROM turn LEFT JOIN answer USING (scope, id) WHERE scope = ? AND id = ?
"""
_MOVE_HEAD = "UPDATE conversation SET head = ?, used = ? WHERE scope = ? AND name = ? AND head = ?"
_LEASE = """
INSERT INTO lease (name, holder, until) VALUES (:name, :holder, :until)
ON CONFLICT (name) DO UPDATE SET holder = :holder, until = :until WHERE holder = :holder OR until <= :now
"""
_PUT_CONVERSATION = """
INSERT INTO conversation (scope, name, head, data, created, used) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (scope, name) DO UPDATE SET data = excluded.data, used = excluded.used
"""

#: Delete a tree with its answers and conversations: a conversation without its turns cannot be continued.
_TURNS_OF_TREE = "(SELECT id FROM turn WHERE scope = :scope AND tree = :id)"
_DROP_TREE = (
    f"DELETE FROM answer WHERE scope = :scope AND id IN {_TURNS_OF_TREE}",  # noqa: S608 (our own words only)
    f"DELETE FROM conversation WHERE scope = :scope AND head IN {_TURNS_OF_TREE}",  # noqa: S608
    "DELETE FROM turn WHERE scope = :scope AND tree = :id",
    "DELETE FROM tree WHERE scope = :scope AND id = :id",
)


class SqliteTurns:
    """Every write is a transaction; `now` returns seconds since the epoch, `after_save` may delete old state."""

    def __init__(
        self, db: sqlite3.Connection, now: Callable[[], float], after_save: Callable[[], None]
    ) -> None:
        self._db = db
        self._connection = SqliteConnection(db)
        self._now = now
        self._after_save = after_save

    async def save(self, turn: ConversationTurn, conversation: str = "") -> None:
        used = int(self._now())
        with self._connection.writing():
            row = self._db.execute(
                "SELECT tree FROM turn WHERE scope = ? AND id = ?", (turn.scope, turn.parent)
            ).fetchone()
            tree = row[0] if row else turn.id
            if conversation:
                moved = (turn.id, used, turn.scope, conversation, turn.parent)
                if not self._db.execute(_MOVE_HEAD, moved).rowcount:
                    raise HeadMoved
            values = (turn.scope, turn.id, turn.parent, tree, turn.data)
            self._db.execute("INSERT OR REPLACE INTO turn VALUES (?, ?, ?, ?, ?)", values)
            self._db.execute("INSERT OR REPLACE INTO tree VALUES (?, ?, ?)", (turn.scope, tree, used))
            if turn.answer:
                answer = (turn.scope, turn.id, turn.answer)
                self._db.execute("INSERT OR REPLACE INTO answer VALUES (?, ?, ?)", answer)
        self._after_save()

    async def chain(self, scope: str, turn_id: str) -> list[ConversationTurn]:
        with self._connection.reading():
            rows = self._db.execute(_CHAIN, {"scope": scope, "id": turn_id}).fetchall()
        if not rows or rows[0][1]:
            return []
        return [
            ConversationTurn(id=row_id, scope=scope, parent=parent, data=data)
            for row_id, parent, data in rows
        ]

    async def turn(self, scope: str, turn_id: str) -> ConversationTurn | None:
        with self._connection.reading():
            row = self._db.execute(_TURN, (scope, turn_id)).fetchone()
        if row is None:
            return None
        parent, data, answer = row
        return ConversationTurn(id=turn_id, scope=scope, parent=parent, data=data, answer=answer)

    async def delete(self, scope: str, turn_id: str, *, keep_turn: bool = False) -> bool:
        which = (scope, turn_id)
        with self._connection.writing():
            deleted = self._db.execute("DELETE FROM answer WHERE scope = ? AND id = ?", which).rowcount
            if not keep_turn:
                deleted += self._db.execute("DELETE FROM turn WHERE scope = ? AND id = ?", which).rowcount
            return deleted > 0

    async def conversation(self, scope: str, name: str) -> Conversation | None:
        query = "SELECT head, data, created FROM conversation WHERE scope = ? AND name = ?"
        with self._connection.reading():
            row = self._db.execute(query, (scope, name)).fetchone()
        if row is None:
            return None
        head, data, created = row
        return Conversation(name=name, scope=scope, head=head, data=data, created_s=created)

    async def put_conversation(self, conversation: Conversation) -> None:
        stored = (conversation.scope, conversation.name, conversation.head, conversation.data)
        values = (*stored, conversation.created_s, int(self._now()))
        with self._connection.writing():
            self._db.execute(_PUT_CONVERSATION, values)

    async def delete_conversation(self, scope: str, name: str) -> bool:
        with self._connection.writing():
            deleted = self._db.execute("DELETE FROM conversation WHERE scope = ? AND name = ?", (scope, name))
            return deleted.rowcount > 0

    async def acquire_lease(self, name: str, holder: str, seconds: float) -> bool:
        now = self._now()
        values = {"name": name, "holder": holder, "until": now + seconds, "now": now}
        with self._connection.writing():
            return self._db.execute(_LEASE, values).rowcount > 0

    async def release_lease(self, name: str, holder: str) -> None:
        with self._connection.writing():
            self._db.execute("DELETE FROM lease WHERE name = ? AND holder = ?", (name, holder))

    def delete_unused(self, oldest_s: int, most: int) -> int:
        """Delete up to `most` trees not used since `oldest_s`, and conversations and leases that are as old."""
        return self._delete_trees("WHERE used < ?", (oldest_s, most)) + self._drop_conversations(oldest_s)

    def delete_oldest(self) -> int:
        return self._delete_trees("ORDER BY used", (1,))

    def oldest(self) -> float:
        """Return when the least recently used tree was used; infinity if there is none."""
        (used,) = self._db.execute("SELECT min(used) FROM tree").fetchone()
        return float("inf") if used is None else used

    def _delete_trees(self, which: str, values: tuple[int, ...]) -> int:
        with self._connection.transaction():
            query = f"SELECT scope, id FROM tree {which} LIMIT ?"  # noqa: S608 (our own words only)
            trees = [{"scope": scope, "id": tree_id} for scope, tree_id in self._db.execute(query, values)]
            for statement in _DROP_TREE:
                self._db.executemany(statement, trees)
        return len(trees)

    def _drop_conversations(self, oldest_s: int) -> int:
        with self._connection.transaction():
            self._db.execute("DELETE FROM lease WHERE until < ?", (oldest_s,))
            return self._db.execute("DELETE FROM conversation WHERE used < ?", (oldest_s,)).rowcount
