"""The memory of parsed pieces: one for all emulators of a process, which run in threads of their own."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from dragoman.emulator import parsed_request
from dragoman.incremental.lru import LruCache


def test_emulators_in_several_threads_share_one_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsed_request, "FRAGMENT_CACHE", LruCache(max_bytes=8))
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def use(thread: int) -> None:
        for turn in range(4000):
            key = ("table", "message", (thread + turn) % 12)
            if parsed_request.find_fragment(key) is None:
                parsed_request.store_fragment(key, turn, 1)

    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(use, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert len(parsed_request.FRAGMENT_CACHE) == 8
