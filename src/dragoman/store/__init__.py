"""State that outlives a process: the `Store` protocol and its implementations."""

from dragoman.store.base import (
    LEDGER_DAYS,
    MAX_SESSION_CALLS,
    OTHER_LABEL,
    CallData,
    Charge,
    Conversation,
    ConversationTurn,
    HeadMoved,
    Ledger,
    LedgerEntry,
    Meters,
    SessionToolStore,
    Store,
    StoreUnavailable,
    Tally,
    Toolset,
    Turns,
)
from dragoman.store.factory import open_store
from dragoman.store.memory import MemoryStore
from dragoman.store.redis import RedisStore
from dragoman.store.sqlite import SqliteStore

__all__ = [
    "LEDGER_DAYS",
    "MAX_SESSION_CALLS",
    "OTHER_LABEL",
    "CallData",
    "Charge",
    "Conversation",
    "ConversationTurn",
    "HeadMoved",
    "Ledger",
    "LedgerEntry",
    "MemoryStore",
    "Meters",
    "RedisStore",
    "SessionToolStore",
    "SqliteStore",
    "Store",
    "StoreUnavailable",
    "Tally",
    "Toolset",
    "Turns",
    "open_store",
]
