"""State that outlives a process."""

from dragoman.store.base import Conversation, HeadMoved, Store, StoreUnavailable, Turn, Turns
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore

__all__ = [
    "Conversation",
    "HeadMoved",
    "MemoryStore",
    "SqliteStore",
    "Store",
    "StoreUnavailable",
    "Turn",
    "Turns",
]
