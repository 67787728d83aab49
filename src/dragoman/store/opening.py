"""Which store the settings ask for: a file for one machine, Redis for many."""

from __future__ import annotations

import time
from pathlib import Path

from dragoman.config import Config
from dragoman.store.base import Store
from dragoman.store.redis import RedisStore
from dragoman.store.redis_link import check_url
from dragoman.store.sqlite import SqliteStore
from dragoman.store.sqlite_ledger import ledger_path

_STATE_FILE = "state.db"
_RECENT_SHARE = 8  # one part of so many: signatures are small beside what they sign


def ledger_is_empty(config: Config) -> bool:
    """Whether nobody has noted anything in the file; of a Redis only itself knows."""
    return not config.store.url and not ledger_path(Path(config.home) / _STATE_FILE).exists()


def open_store(config: Config) -> Store:
    """State in a file lies in `config.home`, which must exist."""
    max_age_s = config.state_retention_minutes * 60
    recent_bytes = config.server.cache_bytes // _RECENT_SHARE
    if config.store.url:
        check_url(config.store.url)
        return RedisStore(config.store.url, max_age_s=max_age_s, recent_bytes=recent_bytes)
    path = Path(config.home) / _STATE_FILE
    store = SqliteStore(
        path,
        max_age_s=max_age_s,
        max_bytes=config.store.max_bytes,
        now=time.time,
        recent_bytes=recent_bytes,
    )
    if config.observe.ledger:
        store.ledger.open()  # a process shall not have more files open after its first request than before
    return store
