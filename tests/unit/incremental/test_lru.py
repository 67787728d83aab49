"""The bounded memory: once per key, the least used goes first, never above its weight."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator

import pytest

from dragoman.incremental.lru import (
    ENTRY_BYTES,
    SHARED_BYTES,
    LruCache,
    cache_lookups,
    set_shared_limit,
    shared_bytes,
)


def made(calls: list[str], value: str) -> Callable[[], str]:
    def make() -> str:
        calls.append(value)
        return value

    return make


def test_the_same_key_is_made_once() -> None:
    memo: LruCache[str, str] = LruCache(10)
    calls: list[str] = []
    assert [memo.get("a", 1, made(calls, "A")) for _ in range(3)] == ["A", "A", "A"]
    assert calls == ["A"]


def test_what_was_asked_for_last_stays() -> None:
    memo: LruCache[str, str] = LruCache(2)
    calls: list[str] = []
    for key in "abacab":
        memo.get(key, 1, made(calls, key))
    assert calls == ["a", "b", "c", "b"]
    assert len(memo) == 2


def test_one_heavy_value_drives_out_several() -> None:
    memo: LruCache[str, str] = LruCache(4)
    calls: list[str] = []
    for key, weight in (("a", 1), ("b", 1), ("c", 1), ("d", 3)):
        memo.get(key, weight, made(calls, key))
    assert len(memo) == 2
    memo.get("c", 1, made(calls, "again"))
    assert "again" not in calls


@pytest.mark.parametrize(("weight", "kept"), [(4, 1), (5, 0)])
def test_a_value_above_the_bound_is_made_but_not_kept(weight: int, kept: int) -> None:
    memo: LruCache[str, str] = LruCache(4)
    assert memo.get("a", weight, lambda: "A") == "A"
    assert len(memo) == kept


def test_what_another_thread_forgets_meanwhile_is_still_found() -> None:
    memo: LruCache[str, str] = LruCache(4)
    key = Fleeting("a")
    key.forget = lambda: memo._entries.clear()
    memo.put(key, 1, "A")
    memo.put("b", 1, "B")
    key.looks = 0
    assert memo.find(key) == "A"
    assert len(memo) == 0


class Fleeting(str):
    """Is forgotten while it is looked for the second time."""

    looks = -9
    forget: Callable[[], None]

    def __hash__(self) -> int:
        self.looks += 1
        if self.looks == 2:
            self.forget()
        return super().__hash__()


def test_many_are_found_as_one_by_one() -> None:
    memo: LruCache[str, str] = LruCache(10)
    for key, weight in (("a", 1), ("b", 11), ("c", 1)):
        memo.put(key, weight, key.upper())
    assert memo.find_all(("c", "b", "a")) == ["C", None, "A"]
    assert (memo.hits, memo.misses, len(memo)) == (2, 1, 2)


def test_of_many_what_another_thread_forgets_meanwhile_is_still_found() -> None:
    memo: LruCache[str, str] = LruCache(10)
    memo.put("a", 1, "A")

    class Forgetful(OrderedDict[str, tuple[str, int]]):
        def move_to_end(self, key: str, last: bool = True) -> None:
            raise KeyError(key)

    memo._entries = Forgetful(memo._entries)
    assert memo.find_all(("a",)) == ["A"]


def test_nothing_is_remembered_of_a_failure() -> None:
    memo: LruCache[str, str] = LruCache(4)

    def fail() -> str:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memo.get("a", 1, fail)
    assert memo.get("a", 1, lambda: "A") == "A"


def test_a_key_made_twice_at_once_weighs_once() -> None:
    """Two threads of a library user may both miss; the bound must not drift until nothing fits."""
    memo: LruCache[str, str] = LruCache(3)
    for turn in range(10):
        key = f"key{turn}"
        memo.get(key, 1, lambda key=key: memo.get(key, 1, lambda: "inner"))  # type: ignore[misc]
    assert len(memo) == 3


def test_a_memory_with_a_name_tells_how_well_it_remembers() -> None:
    memo: LruCache[str, int] = LruCache(10_000, "a memory of tests")
    assert [memo.get("a", 1, lambda: 1) for _ in range(3)] == [1, 1, 1]
    assert cache_lookups()["a memory of tests"] == (2, 1)


@pytest.fixture
def shared() -> Iterator[None]:
    set_shared_limit(0)  # nothing is left of earlier tests
    yield
    set_shared_limit(0)
    set_shared_limit(SHARED_BYTES)


@pytest.mark.usefixtures("shared")
def test_a_full_memory_looks_for_room_now_and_then_not_with_every_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks: list[int] = []

    def look() -> int:
        looks.append(shared_bytes())
        return looks[-1]

    monkeypatch.setattr("dragoman.incremental.lru.shared_bytes", look)
    set_shared_limit(640 * ENTRY_BYTES)
    memo: LruCache[int, int] = LruCache(SHARED_BYTES, "full, of tests")
    for number in range(2000):
        memo.put(number, 0, number)
        assert shared_bytes() <= 640 * ENTRY_BYTES
    assert 600 < len(memo) <= 640
    assert len(looks) < 400


def test_memories_with_a_name_share_what_there_is_and_the_heaviest_gives_up_its_oldest() -> None:
    entry = ENTRY_BYTES + 500
    set_shared_limit(5 * entry + 500)
    heavy: LruCache[int, int] = LruCache(100 * entry, "heavy, of tests")
    light: LruCache[int, int] = LruCache(100 * entry, "light, of tests")
    light.put(0, 500, 0)
    for number in range(10):
        heavy.put(number, 500, number)
    assert shared_bytes() == 5 * entry
    assert (len(light), [number for number in range(10) if heavy.peek(number) is not None]) == (
        1,
        [6, 7, 8, 9],
    )
    set_shared_limit(2 * entry + 500)
    assert (len(light), [number for number in range(10) if heavy.peek(number) is not None]) == (1, [9])


@pytest.mark.usefixtures("shared")
def test_a_memory_with_a_name_counts_its_entries_not_only_their_texts() -> None:
    set_shared_limit(10 * ENTRY_BYTES)
    memo: LruCache[int, int] = LruCache(SHARED_BYTES, "small things, of tests")
    for number in range(1000):
        memo.put(number, 0, number)
    assert len(memo) == 10


def test_one_without_a_name_is_its_owners_alone() -> None:
    before = shared_bytes()
    LruCache[str, str](10).put("a", 10, "A")
    assert shared_bytes() == before


def test_what_is_dropped_weighs_nothing_any_more() -> None:
    memo: LruCache[str, str] = LruCache(100)
    memo.put("a", 60, "x")
    memo.put("b", 30, "y")
    memo.drop("a")
    memo.drop("a")
    memo.put("c", 60, "z")
    assert [memo.peek(key) for key in "abc"] == [None, "y", "z"]


def test_room_that_another_thread_has_made_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    set_shared_limit(0)
    monkeypatch.setattr("dragoman.incremental.lru.shared_bytes", lambda: 1000)
    set_shared_limit(10)  # does not look for ever for something to forget
    monkeypatch.undo()
    set_shared_limit(SHARED_BYTES)
