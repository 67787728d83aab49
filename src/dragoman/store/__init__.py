"""State that outlives a process: the `Store` protocol and its implementations."""

from dragoman.store.base import (
    LEDGER_DAYS,
    MAX_CALLS,
    OTHER_LABEL,
    Charge,
    Conversation,
    Entry,
    HeadMoved,
    Ledger,
    Line,
    Meters,
    SessionTools,
    Store,
    StoreUnavailable,
    Tally,
    Toolset,
    Turn,
    Turns,
)
from dragoman.store.memory import MemoryStore
from dragoman.store.opening import open_store
from dragoman.store.redis import RedisStore
from dragoman.store.sqlite import SqliteStore

__all__ = [
    "LEDGER_DAYS",
    "MAX_CALLS",
    "OTHER_LABEL",
    "Charge",
    "Conversation",
    "Entry",
    "HeadMoved",
    "Ledger",
    "Line",
    "MemoryStore",
    "Meters",
    "RedisStore",
    "SessionTools",
    "SqliteStore",
    "Store",
    "StoreUnavailable",
    "Tally",
    "Toolset",
    "Turn",
    "Turns",
    "open_store",
]
