"""The gateway with all its caches switched off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dragoman.dialects.openai_responses.items import DecodedItem
from dragoman.incremental import fingerprint_index
from dragoman.incremental.lru import LruCache
from dragoman.ir import Message


@contextmanager
def nothing_known() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fingerprint_index.FingerprintIndex, "find", lambda *_: ())
        patch.setattr(LruCache, "find", lambda *_: None)
        patch.setattr(LruCache, "find_all", lambda _, keys: [None for _ in keys])
        patch.setattr(Message, "derived", property(lambda _: {}))
        patch.setattr(DecodedItem, "derived", property(lambda _: {}))
        yield
