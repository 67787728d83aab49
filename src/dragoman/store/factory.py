"""Open the store that the settings select: a SQLite file for one machine, or Redis for several."""

from __future__ import annotations

import time
from pathlib import Path

from dragoman.config import Config
from dragoman.store.base import Store
from dragoman.store.redis import RedisStore
from dragoman.store.redis.connection import check_url
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite.ledger import ledger_path

_STATE_FILE = "state.db"
# share of `cache_bytes` for signatures, which are much smaller than the parsed history
_READ_CACHE_FRACTION = 8


def ledger_is_empty(config: Config) -> bool:
    """Return whether the SQLite ledger was never written; False for Redis, without asking it."""
    return not config.store.url and not ledger_path(Path(config.home) / _STATE_FILE).exists()


def open_store(config: Config) -> Store:
    """Return the configured store; the folder `config.home` must exist for a SQLite file."""
    max_age_s = config.state_retention_minutes * 60
    cache_bytes = config.server.cache_bytes // _READ_CACHE_FRACTION
    if config.store.url:
        check_url(config.store.url)
        return RedisStore(config.store.url, max_age_s=max_age_s, cache_bytes=cache_bytes)
    path = Path(config.home) / _STATE_FILE
    store = SqliteStore(
        path,
        max_age_s=max_age_s,
        max_bytes=config.store.max_bytes,
        now=time.time,
        cache_bytes=cache_bytes,
    )
    if config.observe.ledger:
        # open the file at start, so that the number of open files does not grow with the first request
        store.ledger.open()
    return store
