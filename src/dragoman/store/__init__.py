"""State that outlives a process."""

from dragoman.store.base import Store, StoreUnavailable
from dragoman.store.memory import MemoryStore
from dragoman.store.sqlite import SqliteStore

__all__ = ["MemoryStore", "SqliteStore", "Store", "StoreUnavailable"]
