"""What is special about state in Redis: it ends by itself, it may be gone, and several gateways share it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import ConfigError
from dragoman.store import Charge, Conversation, ConversationTurn, HeadMoved, RedisStore, StoreUnavailable
from dragoman.store.redis.connection import RedisConnection, _parse_sentinel_url, check_url
from tests.redis_server import RedisServer

MAX_AGE_S = 3600


def open_store(server: RedisServer) -> RedisStore:
    return RedisStore(server.url, max_age_s=MAX_AGE_S)


def turn(own: str, parent: str = "", data: bytes = b"{}", answer: bytes = b"") -> ConversationTurn:
    return ConversationTurn(id=own, scope="a", parent=parent, data=data, answer=answer)


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[RedisServer]:
    """A server for a test that harms it."""
    server = RedisServer(tmp_path).start()
    yield server
    server.stop()


async def test_a11_another_replica_knows_it_too(redis: RedisServer) -> None:
    first, second = open_store(redis), open_store(redis)
    await first.set_values([("call", "signature")])
    assert await second.get_values(["call", "other"]) == {"call": "signature"}
    await first.turns.save(turn("1", data=b"\x00raw\nlines"))
    await second.turns.save(turn("2", "1"))
    assert [item.data for item in await first.turns.chain("a", "2")] == [b"\x00raw\nlines", b"{}"]
    assert await first.turns.acquire_lease("demo", "x", 10)
    assert not await second.turns.acquire_lease("demo", "y", 10)
    await first.close()
    await second.close()


async def test_what_is_too_old_ends_by_itself(redis: RedisServer) -> None:
    store = open_store(redis)
    await store.set_values([("old", "1")])
    redis.pass_time(MAX_AGE_S + 1)
    await store.close()
    store = open_store(redis)
    assert await store.get_values(["old"]) == {}
    await store.close()


async def test_a_conversation_in_use_keeps_its_beginning_and_its_forks(redis: RedisServer) -> None:
    store = open_store(redis)
    await store.turns.put_conversation(Conversation(name="demo", scope="a"))
    await store.turns.save(turn("1", answer=b"first"), "demo")
    for number in range(2, 8):
        redis.pass_time(MAX_AGE_S * 0.6)
        _let_the_server_age(redis, MAX_AGE_S * 0.6)
        await store.turns.save(turn(str(number), str(number - 1)), "demo")
    assert [item.id for item in await store.turns.chain("a", "7")] == [str(one) for one in range(1, 8)]
    await store.turns.save(turn("fork", "1"))
    assert [item.id for item in await store.turns.chain("a", "fork")] == ["1", "fork"]
    assert await store.turns.turn("a", "1") == turn("1", answer=b"first")
    redis.pass_time(MAX_AGE_S + 1)
    assert await store.turns.chain("a", "7") == []
    assert await store.turns.turn("a", "7") is None
    assert await store.turns.conversation("a", "demo") is None
    await store.close()


def _let_the_server_age(server: RedisServer, seconds: float) -> None:
    """Its clock cannot be moved, so the time it noted is."""
    with server.client() as client:
        for key in client.scan_iter("*:t:*"):
            noted: Any = client.hget(key, "")
            client.hset(key, "", str(int(int(noted) - seconds)))


async def test_a_conversation_without_its_turns_begins_anew_instead_of_refusing_for_ever(
    redis: RedisServer,
) -> None:
    store = open_store(redis)
    await store.turns.put_conversation(Conversation(name="demo", scope="a"))
    await store.turns.save(turn("1"), "demo")
    with redis.client() as client:  # as a server that is short of memory does
        client.delete(*client.scan_iter("*:t:*"))
    assert await store.turns.conversation("a", "demo") is None
    await store.close()


async def test_news_of_a_conversation_prolong_its_turns_too(redis: RedisServer) -> None:
    store = open_store(redis)
    await store.turns.put_conversation(Conversation(name="demo", scope="a"))
    await store.turns.save(turn("1"), "demo")
    redis.pass_time(MAX_AGE_S * 0.9)
    await store.turns.put_conversation(Conversation(name="demo", scope="a", data=b"{}"))
    redis.pass_time(MAX_AGE_S * 0.5)
    assert [item.id for item in await store.turns.chain("a", "1")] == ["1"]
    await store.close()


async def test_a_server_that_is_gone_is_told_at_once_and_found_again(own_redis: RedisServer) -> None:
    clock = Clock()
    store = open_store(own_redis)
    store._connection._now = clock
    await store.set_values([("call", "signature")])
    await store.turns.save(turn("1"))
    own_redis.stop(kill=True)
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        await store.turns.chain("a", "1")
    own_redis.start()
    with pytest.raises(StoreUnavailable, match="cannot be reached"):  # not asked again by every request
        await store.turns.chain("a", "1")
    clock.now += 1
    assert [item.id for item in await store.turns.chain("a", "1")] == ["1"]
    await store.close()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_a_server_that_refuses_to_write_is_unavailable_and_still_read(own_redis: RedisServer) -> None:
    store = open_store(own_redis)
    await store.turns.save(turn("1"))
    with own_redis.client() as client:
        client.config_set("maxmemory", "1")
    with pytest.raises(StoreUnavailable, match="refuses"):
        await store.turns.save(turn("2", "1"))
    with pytest.raises(StoreUnavailable, match="refuses"):
        await store.set_values([("k", "v")])
    assert [item.id for item in await store.turns.chain("a", "1")] == ["1"]
    await store.close()


async def test_nothing_is_written_when_the_head_has_moved(redis: RedisServer) -> None:
    store = open_store(redis)
    with pytest.raises(HeadMoved):
        await store.turns.save(turn("1", answer=b"x"), "demo")
    with redis.client() as client:
        assert list(client.scan_iter()) == []
    await store.close()


async def test_closing_lets_calls_that_run_finish_and_the_next_one_opens_again(redis: RedisServer) -> None:
    link = RedisConnection(redis.url)
    begun = asyncio.Event()

    async def slowly(client: Any) -> Any:
        begun.set()
        await asyncio.sleep(0.05)
        return await client.ping()

    running = asyncio.create_task(link.call(slowly))
    await begun.wait()
    await asyncio.gather(link.close(), link.close())
    assert running.done()
    assert await running
    assert await asyncio.gather(*(link.run_script("return 1", "key") for _ in range(50)), link.close())
    await link.close()


async def test_a_store_nobody_used_closes_without_a_server() -> None:
    store = RedisStore("unix:///nowhere.sock", max_age_s=1)
    assert await store.get_values([]) == {}
    await store.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "http://x",
        "redis://",
        "redis+sentinel://h:1",
        "redis+sentinel://h:x/s",
        "redis+sentinel://h:1/s/db",
    ],
)
def test_a_wrong_address_is_told_at_start(url: str) -> None:
    with pytest.raises(ConfigError) as told:
        check_url(url)
    assert told.value.where == "store.url"


@pytest.mark.parametrize(
    "url", ["redis://h:1/0", "rediss://u:p@h", "unix:///run/redis.sock", "redis+sentinel://a,b:1/service"]
)
def test_right_addresses(url: str) -> None:
    check_url(url)


def test_sentinels_are_read_from_the_address() -> None:
    hosts, service, login = _parse_sentinel_url("rediss+sentinel://me:p%40ss@one:1,two,[::1]:3/main/2")
    assert hosts == [("one", 1), ("two", 26379), ("::1", 3)]
    assert service == "main"
    assert login == {"db": 2, "ssl": True, "username": "me", "password": "p@ss"}


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.store.redis.connection.find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"dragoman\[redis\]"):
        RedisConnection("redis://h")


@asynccontextmanager
async def losing_replies(server: RedisServer, folder: Path) -> AsyncIterator[tuple[str, Callable[[], None]]]:
    """A way to the server on which, when told so, the next reply is lost and the connection with it."""
    lose = 0

    def arm() -> None:
        nonlocal lose
        lose += 1

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal lose
        there, back = await asyncio.open_unix_connection(server.url.removeprefix("unix://"))
        while data := await reader.read(1 << 20):
            back.write(data)
            answer = await there.read(1 << 20)
            if lose and b"EVALSHA" in data and not answer.startswith(b"-"):
                lose -= 1
                break
            writer.write(answer)
            await writer.drain()
        for end in (writer, back):
            end.close()

    door = await asyncio.start_unix_server(serve, folder / "door.sock")
    try:
        yield f"unix://{folder / 'door.sock'}", arm
    finally:
        door.close()
        assert lose == 0, "no reply was lost"


async def test_p5_a_charge_whose_reply_is_lost_is_made_once(redis: RedisServer, tmp_path: Path) -> None:
    """Sent again by the library: a budget would be spent twice, and what is given back, given back twice."""
    async with losing_replies(redis, tmp_path) as (url, lose):
        store = RedisStore(url, max_age_s=MAX_AGE_S)
        ends_s = int(time.time() + 3600)
        for amount in (5, 3, -4):
            await store.meters.charge([Charge(name="warm", amount=0, ends_s=ends_s)])
            lose()
            assert (
                await store.meters.charge([Charge(name="day", amount=amount, limit=8, ends_s=ends_s)]) == ""
            )
        assert await store.meters.read(["day"]) == {"day": 4}
        assert await store.meters.charge([Charge(name="day", amount=5, limit=8, ends_s=ends_s)]) == "day"
        await store.close()


async def test_a_turn_whose_reply_is_lost_is_saved_and_no_conflict(
    redis: RedisServer, tmp_path: Path
) -> None:
    async with losing_replies(redis, tmp_path) as (url, lose):
        store = RedisStore(url, max_age_s=MAX_AGE_S)
        await store.turns.put_conversation(Conversation(name="demo", scope="a"))
        await store.turns.save(turn("1"), "demo")
        lose()
        await store.turns.save(turn("2", "1"), "demo")
        assert [item.id for item in await store.turns.chain("a", "2")] == ["1", "2"]
        with pytest.raises(HeadMoved):
            await store.turns.save(turn("3", "1"), "demo")
        await store.close()
