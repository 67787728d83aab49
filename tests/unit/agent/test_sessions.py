"""Sessions: whatever ends the process, what was said is there again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dragoman.agent.events import SaveHistory
from dragoman.agent.history import RESULT_LOST
from dragoman.agent.limits import SessionUsage
from dragoman.agent.sessions import SessionStore
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Message, Text, Thought, ToolResult
from dragoman.store import MemoryStore, SqliteStore
from tests.unit.agent.builders import call, model, result, results, user


def sqlite(path: Path) -> SqliteStore:
    return SqliteStore(path / "sessions.db", max_age_s=1e9, max_bytes=10**9, now=time.time)


@pytest.fixture
def sessions() -> SessionStore:
    return SessionStore(MemoryStore().turns, now=lambda: 1_000.0)


async def test_everything_comes_back_signatures_included(tmp_path: Path) -> None:
    said = (
        user("hello"),
        model(Thought(text="hm"), Text(text="hi"), call()),
        results(
            ToolResult(call_id="c1", response=b'{"a":1}', content=(Media(mime="image/png", data="AA=="),))
        ),
    )
    store = sqlite(tmp_path)
    session = await SessionStore(store.turns).open("work")
    for message in said:
        await session.save(SaveHistory((message,)))
    await session.save_metadata(SessionUsage(requests=3, cost_usd=None), "gemini-x", "/project")
    await store.close()

    again = await SessionStore(sqlite(tmp_path).turns).open("work")
    assert again.history == said
    assert again.usage == SessionUsage(requests=3, cost_usd=None)
    assert (again.model, again.root) == ("gemini-x", "/project")


async def test_what_takes_the_place_of_the_history_does_so_on_disk(sessions: SessionStore) -> None:
    session = await sessions.open("work")
    await session.save(SaveHistory((user("one"), model(Text(text="1")))))
    await session.save(SaveHistory((user("summary"),), replace=True))
    await session.save(SaveHistory((model(Text(text="2")),)))
    assert (await sessions.open("work")).history == (user("summary"), model(Text(text="2")))
    assert session.history == (user("summary"), model(Text(text="2")))


async def test_calls_that_died_with_their_process_are_answered_once(sessions: SessionStore) -> None:
    session = await sessions.open("work")
    await session.save(SaveHistory((user("go"), model(call("a")))))
    for _ in range(2):
        history = (await sessions.open("work")).history
        assert len(history) == 3
        lost = history[-1].parts[0]
        assert isinstance(lost, ToolResult)
        assert lost.content == (Text(text=RESULT_LOST),)


async def test_two_who_go_on_with_one_session_are_not_mixed(sessions: SessionStore) -> None:
    first = await sessions.open("work")
    await first.save(SaveHistory((user("start"),)))
    second = await sessions.open("work")
    await first.save(SaveHistory((model(Text(text="first")),)))
    await second.save(SaveHistory((model(Text(text="second")),)))
    assert second.name.startswith("work-")
    assert (await sessions.open("work")).history[-1] == model(Text(text="first"))
    assert (await sessions.open(second.name)).history == (user("start"), model(Text(text="second")))
    await second.save(SaveHistory((user("more"),)))
    assert (await sessions.open(second.name)).history[-1] == user("more")


async def test_sessions_are_listed_last_used_first() -> None:
    now = [1_000.0]
    sessions = SessionStore(MemoryStore().turns, now=lambda: now[0])
    assert await sessions.list() == []
    for name in ("old", "new"):
        now[0] += 60
        session = await sessions.open(name)
        await sessions.update_index(session)  # nothing was said: nothing to list
        await session.save(SaveHistory((user(f"{name} " * 40), model(Text(text="ok")))))
        await sessions.update_index(session)
    listed = await sessions.list()
    assert [entry.name for entry in listed] == ["new", "old"]
    assert listed[0].messages == 2
    assert listed[0].title.startswith("new new")
    assert listed[0].title.endswith("…")
    assert await sessions.exists("old")
    assert not await sessions.exists("other")


async def test_a_list_somebody_else_writes_is_left_alone() -> None:
    store = MemoryStore()
    sessions = SessionStore(store.turns)
    session = await sessions.open("work")
    await session.save(SaveHistory((user("short"),)))
    assert await store.turns.acquire_lease("agent-index", "somebody", 60)
    await sessions.update_index(session)
    assert await sessions.list() == []
    await store.turns.release_lease("agent-index", "somebody")
    await sessions.update_index(session)
    assert [entry.title for entry in await sessions.list()] == ["short"]


async def test_a_session_that_begins_with_a_result_has_a_title_too(sessions: SessionStore) -> None:
    session = await sessions.open("odd")
    await session.save(SaveHistory((Message(role="user", parts=(result(),)),)))
    await sessions.update_index(session)
    assert (await sessions.list())[0].title == ""


@pytest.mark.parametrize("name", ["", "  ", "*index", "a\nb", "x" * 101])
async def test_a_name_that_could_be_mistaken_is_refused(sessions: SessionStore, name: str) -> None:
    with pytest.raises(InvalidRequest, match="printable"):
        await sessions.open(name)
