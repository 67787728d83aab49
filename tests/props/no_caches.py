"""The gateway with all its caches switched off: the naive twins of `decode_incrementally` and `fold` do the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dragoman.incremental import lru
from dragoman.incremental.lru import LruCache


@contextmanager
def nothing_known() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lru._SharedBudget, "max_bytes", 0)
        patch.setattr(LruCache, "find", lambda *_: None)
        patch.setattr(LruCache, "find_all", lambda _, keys: [None for _ in keys])
        yield
