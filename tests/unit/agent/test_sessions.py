"""Sessions: whatever ends the process, what was said is there again."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dragoman.agent.events import Save
from dragoman.agent.history import LOST
from dragoman.agent.limits import Spent
from dragoman.agent.sessions import Sessions
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Message, Text, Thought, ToolResult
from dragoman.store import MemoryStore, SqliteStore
from tests.unit.agent.playbook import call, model, result, results, user


def sqlite(path: Path) -> SqliteStore:
    return SqliteStore(path / "sessions.db", max_age_s=1e9, max_bytes=10**9, now=time.time)


@pytest.fixture
def sessions() -> Sessions:
    return Sessions(MemoryStore().turns, now=lambda: 1_000.0)


async def test_everything_comes_back_signatures_included(tmp_path: Path) -> None:
    said = (
        user("hello"),
        model(Thought(text="hm"), Text(text="hi"), call()),
        results(
            ToolResult(call_id="c1", response=b'{"a":1}', content=(Media(mime="image/png", data="AA=="),))
        ),
    )
    store = sqlite(tmp_path)
    session = await Sessions(store.turns).open("work")
    for message in said:
        await session.keep(Save((message,)))
    await session.note(Spent(requests=3, cost_usd=None), "gemini-x", "/project")
    await store.close()

    again = await Sessions(sqlite(tmp_path).turns).open("work")
    assert again.history == said
    assert again.spent == Spent(requests=3, cost_usd=None)
    assert (again.model, again.root) == ("gemini-x", "/project")


async def test_what_takes_the_place_of_the_history_does_so_on_disk(sessions: Sessions) -> None:
    session = await sessions.open("work")
    await session.keep(Save((user("one"), model(Text(text="1")))))
    await session.keep(Save((user("summary"),), instead=True))
    await session.keep(Save((model(Text(text="2")),)))
    assert (await sessions.open("work")).history == (user("summary"), model(Text(text="2")))
    assert session.history == (user("summary"), model(Text(text="2")))


async def test_calls_that_died_with_their_process_are_answered_once(sessions: Sessions) -> None:
    session = await sessions.open("work")
    await session.keep(Save((user("go"), model(call("a")))))
    for _ in range(2):
        history = (await sessions.open("work")).history
        assert len(history) == 3
        lost = history[-1].parts[0]
        assert isinstance(lost, ToolResult)
        assert lost.content == (Text(text=LOST),)


async def test_two_who_go_on_with_one_session_are_not_mixed(sessions: Sessions) -> None:
    first = await sessions.open("work")
    await first.keep(Save((user("start"),)))
    second = await sessions.open("work")
    await first.keep(Save((model(Text(text="first")),)))
    await second.keep(Save((model(Text(text="second")),)))
    assert second.name.startswith("work-")
    assert (await sessions.open("work")).history[-1] == model(Text(text="first"))
    assert (await sessions.open(second.name)).history == (user("start"), model(Text(text="second")))
    await second.keep(Save((user("more"),)))
    assert (await sessions.open(second.name)).history[-1] == user("more")


async def test_sessions_are_listed_last_used_first() -> None:
    now = [1_000.0]
    sessions = Sessions(MemoryStore().turns, now=lambda: now[0])
    assert await sessions.list() == []
    for name in ("old", "new"):
        now[0] += 60
        session = await sessions.open(name)
        await sessions.enlist(session)  # nothing was said: nothing to list
        await session.keep(Save((user(f"{name} " * 40), model(Text(text="ok")))))
        await sessions.enlist(session)
    listed = await sessions.list()
    assert [entry.name for entry in listed] == ["new", "old"]
    assert listed[0].messages == 2
    assert listed[0].title.startswith("new new")
    assert listed[0].title.endswith("…")
    assert await sessions.exists("old")
    assert not await sessions.exists("other")


async def test_a_list_somebody_else_writes_is_left_alone() -> None:
    store = MemoryStore()
    sessions = Sessions(store.turns)
    session = await sessions.open("work")
    await session.keep(Save((user("short"),)))
    assert await store.turns.lease("agent-index", "somebody", 60)
    await sessions.enlist(session)
    assert await sessions.list() == []
    await store.turns.release("agent-index", "somebody")
    await sessions.enlist(session)
    assert [entry.title for entry in await sessions.list()] == ["short"]


async def test_a_session_that_begins_with_a_result_has_a_title_too(sessions: Sessions) -> None:
    session = await sessions.open("odd")
    await session.keep(Save((Message(role="user", parts=(result(),)),)))
    await sessions.enlist(session)
    assert (await sessions.list())[0].title == ""


@pytest.mark.parametrize("name", ["", "  ", "*index", "a\nb", "x" * 101])
async def test_a_name_that_could_be_mistaken_is_refused(sessions: Sessions, name: str) -> None:
    with pytest.raises(InvalidRequest, match="printable"):
        await sessions.open(name)
