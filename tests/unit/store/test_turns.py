"""Conversations: what one caller kept only that caller finds, whole, and nobody adds to it behind another's back."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.store import Conversation, ConversationTurn, HeadMoved, SqliteStore, Store, StoreUnavailable
from tests.unit.store.conftest import Clock


def sqlite(path: Path, clock: Clock, max_bytes: int = 1 << 24) -> SqliteStore:
    return SqliteStore(path, max_age_s=3600, max_bytes=max_bytes, now=clock)


def turn(own: str, parent: str = "", scope: str = "a", data: bytes = b"{}") -> ConversationTurn:
    return ConversationTurn(id=own, scope=scope, parent=parent, data=data)


async def test_a_chain_comes_oldest_first_and_forks_do_not_mix(store: Store) -> None:
    for item in (turn("1"), turn("2", "1"), turn("3", "2"), turn("3b", "2")):
        await store.turns.save(item)
    assert [item.id for item in await store.turns.chain("a", "3")] == ["1", "2", "3"]
    assert [item.id for item in await store.turns.chain("a", "3b")] == ["1", "2", "3b"]
    assert await store.turns.chain("a", "nowhere") == []
    await store.close()


async def test_nobody_finds_the_turns_of_another_caller(store: Store) -> None:
    await store.turns.save(turn("1", scope="a", data=b"mine"))
    await store.turns.save(turn("1", scope="b", data=b"yours"))
    assert [item.data for item in await store.turns.chain("a", "1")] == [b"mine"]
    assert not await store.turns.delete("c", "1")
    assert await store.turns.delete("b", "1")
    assert [item.data for item in await store.turns.chain("a", "1")] == [b"mine"]
    await store.close()


async def test_a_line_with_a_hole_is_no_history(store: Store) -> None:
    for item in (turn("1"), turn("2", "1"), turn("3", "2")):
        await store.turns.save(item)
    await store.turns.delete("a", "2")
    assert await store.turns.chain("a", "3") == []
    await store.close()


async def test_a_conversation_moves_its_head_only_from_where_the_turn_began(store: Store) -> None:
    await store.turns.put_conversation(Conversation(name="demo", scope="a", created_s=7))
    await store.turns.save(turn("1"), "demo")
    with pytest.raises(HeadMoved):
        await store.turns.save(turn("2"), "demo")
    assert await store.turns.chain("a", "2") == []
    await store.turns.save(turn("2", "1"), "demo")
    found = await store.turns.conversation("a", "demo")
    assert found == Conversation(name="demo", scope="a", head="2", created_s=7)
    with pytest.raises(HeadMoved):
        await store.turns.save(turn("1", scope="b"), "demo")
    await store.close()


async def test_new_data_of_a_conversation_leaves_its_head_alone(store: Store) -> None:
    await store.turns.put_conversation(Conversation(name="demo", scope="a"))
    await store.turns.save(turn("1"), "demo")
    await store.turns.put_conversation(Conversation(name="demo", scope="a", data=b'{"x":1}', created_s=9))
    found = await store.turns.conversation("a", "demo")
    assert found is not None
    assert (found.head, found.data, found.created_s) == ("1", b'{"x":1}', 0)
    assert await store.turns.conversation("b", "demo") is None
    assert not await store.turns.delete_conversation("b", "demo")
    assert await store.turns.delete_conversation("a", "demo")
    assert await store.turns.conversation("a", "demo") is None
    await store.close()


async def test_a_lease_is_one_holders_until_it_ends_or_is_given_back(
    store: Store, pass_time: Callable[[float], None]
) -> None:
    turns = store.turns
    assert await turns.acquire_lease("demo", "first", 10)
    assert not await turns.acquire_lease("demo", "second", 10)
    assert await turns.acquire_lease("demo", "first", 10)
    await turns.release_lease("demo", "second")
    assert not await turns.acquire_lease("demo", "second", 10)
    await turns.release_lease("demo", "first")
    assert await turns.acquire_lease("demo", "second", 10)
    pass_time(11)
    assert await turns.acquire_lease("demo", "third", 10)
    await store.close()


async def test_a_conversation_in_use_keeps_its_beginning_and_an_old_one_goes_whole(
    tmp_path: Path, clock: Clock
) -> None:
    store = sqlite(tmp_path / "state.db", clock)
    await store.turns.save(turn("old"))
    await store.turns.save(turn("1"))
    await store.turns.put_conversation(Conversation(name="idle", scope="a"))
    clock.now += 3000
    await store.turns.save(turn("2", "1"))
    clock.now += 3000
    store.prune()
    assert [item.id for item in await store.turns.chain("a", "2")] == ["1", "2"]
    assert await store.turns.chain("a", "old") == []
    assert await store.turns.conversation("a", "idle") is None
    await store.close()


async def test_turns_are_bounded_in_bytes_and_the_oldest_line_goes_first(
    tmp_path: Path, clock: Clock
) -> None:
    store = sqlite(tmp_path / "state.db", clock, max_bytes=1 << 20)
    for number in range(600):
        clock.now += 1
        await store.turns.save(turn(f"t{number}", data=b"x" * 10_000))
    assert store._used_bytes() < 3 << 20
    assert await store.turns.chain("a", "t0") == []
    assert len(await store.turns.chain("a", "t599")) == 1
    await store.close()


async def test_another_process_continues_the_line(tmp_path: Path, clock: Clock) -> None:
    first, second = sqlite(tmp_path / "state.db", clock), sqlite(tmp_path / "state.db", clock)
    await first.turns.save(turn("1", data=b"\x00raw"))
    await second.turns.save(turn("2", "1"))
    assert [item.data for item in await first.turns.chain("a", "2")] == [b"\x00raw", b"{}"]
    assert await first.turns.acquire_lease("demo", "x", 10)
    assert not await second.turns.acquire_lease("demo", "y", 10)
    await first.close()
    await second.close()


async def test_a_locked_or_broken_file_is_told_as_unavailable(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "state.db"
    store = sqlite(path, clock)
    blocker = sqlite3.connect(path, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="written"):
        await store.turns.save(turn("1"))
    blocker.execute("ROLLBACK")
    blocker.execute("DROP TABLE turn")
    blocker.close()
    with pytest.raises(StoreUnavailable, match="read"):
        await store.turns.chain("a", "1")
    await store.close()


async def test_an_answer_is_found_by_its_turn_and_never_with_the_line(store: Store) -> None:
    first = ConversationTurn(id="1", scope="a", data=b"one", answer=b"whole")
    await store.turns.save(first)
    await store.turns.save(turn("2", "1"))
    assert await store.turns.turn("a", "1") == first
    assert await store.turns.turn("b", "1") is None
    assert await store.turns.turn("a", "2") == turn("2", "1")
    assert [item.answer for item in await store.turns.chain("a", "2")] == [b"", b""]
    await store.close()


async def test_an_answer_alone_may_be_forgotten_and_the_line_goes_on(store: Store) -> None:
    await store.turns.save(ConversationTurn(id="1", scope="a", data=b"one", answer=b"whole"))
    await store.turns.save(turn("2", "1"))
    assert await store.turns.delete("a", "1", keep_turn=True)
    assert not await store.turns.delete("a", "1", keep_turn=True)
    assert not await store.turns.delete("a", "nowhere", keep_turn=True)
    assert [item.id for item in await store.turns.chain("a", "2")] == ["1", "2"]
    assert await store.turns.turn("a", "1") == turn("1", data=b"one")
    await store.close()


@pytest.mark.parametrize("by", ["age", "size"])
async def test_a_conversation_goes_with_its_turns_instead_of_refusing_for_ever(
    tmp_path: Path, clock: Clock, by: str
) -> None:
    store = sqlite(tmp_path / "state.db", clock, max_bytes=1 << 20)
    await store.turns.put_conversation(Conversation(name="demo", scope="a"))
    await store.turns.save(ConversationTurn(id="1", scope="a", data=b"{}", answer=b"x" * 10_000), "demo")
    if by == "age":
        clock.now += 3000
        await store.turns.put_conversation(Conversation(name="demo", scope="a", data=b'{"still":"here"}'))
        clock.now += 1000
        store.prune()
    else:
        for number in range(300):
            clock.now += 1
            await store.turns.save(turn(f"t{number}", data=b"x" * 10_000))
    assert await store.turns.chain("a", "1") == []
    assert await store.turns.conversation("a", "demo") is None
    (answers,) = store._db.execute("SELECT count(*) FROM answer").fetchone()
    assert answers == 0
    await store.close()
