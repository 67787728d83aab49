"""Several gateways that share nothing but a Redis: no conversation notices which of them answers, or dies."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis

from dragoman.store import RedisStore, StoreUnavailable
from tests.e2e.emulator import EmulatorProcess, emulator_process
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.redis_server import RedisServer, require_redis

Json = dict[str, Any]

MODEL = "gemini-3.8-flash"
TURNS = 40
CROWD = 500
AT_ONCE = 24
HEADERS = {"x-api-key": GATEWAY_KEY, "anthropic-version": "2023-06-01"}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}


@pytest.fixture
def state(tmp_path: Path) -> Iterator[RedisServer]:
    folder = tmp_path / "redis"
    folder.mkdir()
    server = RedisServer(folder).start()
    yield server
    server.stop()


@asynccontextmanager
async def replicas(
    folder: Path, store_url: str, number: int = 2, **settings: str
) -> AsyncIterator[tuple[list[Gateway], EmulatorProcess]]:
    """So many gateways, each with a folder of its own, on one strict Google."""
    with emulator_process(folder) as emulator:
        gateways = [
            Gateway(folder / f"home{one}", emulator.url, STORE_URL=store_url, **settings)
            for one in range(number)
        ]
        try:
            await asyncio.gather(*(asyncio.to_thread(gateway.start) for gateway in gateways))
            yield gateways, emulator
        finally:
            for gateway in gateways:
                gateway.kill()


async def post(gateway: Gateway, path: str, body: Json) -> tuple[int, Any, Any]:
    async with (
        aiohttp.ClientSession(headers=HEADERS) as session,
        session.post(gateway.url + path, json=body) as response,
    ):
        return response.status, json.loads(await response.text()), response.headers


async def test_forty_tool_turns_alternate_between_replicas_that_are_killed(
    tmp_path: Path, state: RedisServer
) -> None:
    """The client keeps no thinking, so every signature must be found by the other replica."""
    tools = [{"name": "count", "input_schema": SCHEMA}]
    messages: list[Json] = []
    async with replicas(tmp_path, state.url) as (gateways, emulator):
        for turn in range(TURNS):
            messages.append({"role": "user", "content": f'use count with {{"n": {turn}}}'})
            for step in range(2):
                gateway = gateways[(turn + step) % 2]
                body = {"model": MODEL, "max_tokens": 500, "messages": messages, "tools": tools}
                status, answer, headers = await post(gateway, "/v1/messages", body)
                assert status == 200, answer
                assert headers["x-dragoman-notes"] == "0", "a sentinel stood in for a lost signature"
                messages.append({"role": "assistant", "content": answer["content"]})
                if step == 0:
                    (call,) = [block for block in answer["content"] if block["type"] == "tool_use"]
                    assert call["input"] == {"n": turn}
                    result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{turn} it is"}
                    messages.append({"role": "user", "content": [result]})
                if (turn + step) % 7 == 3:
                    gateway.kill()
                    await asyncio.to_thread(gateway.restart)
        assert len(emulator.accepted()) == 2 * TURNS
    assert answer["content"][-1]["text"] == f"count returned: {TURNS - 1} it is"


async def test_five_hundred_conversations_at_once_go_to_whoever_answers(
    tmp_path: Path, state: RedisServer
) -> None:
    """All are open before the first is over; it is requests that wait for each other."""
    most = asyncio.Semaphore(AT_ONCE)

    async def ask(gateway: Gateway, body: Json) -> Any:
        async with most:
            return (await post(gateway, "/v1/responses", body))[1]

    async def converse(number: int, gateways: list[Gateway]) -> None:
        name = f"tool_{number}"
        kept: Json = {"model": MODEL, "conversation": f"c{number}"}
        wish = f'use {name} with {{"n": {number}}}'
        tool = {"type": "function", "name": name, "parameters": SCHEMA}
        first = await ask(gateways[number % 2], {**kept, "input": wish, "tools": [tool]})
        (call,) = [item for item in first["output"] if item["type"] == "function_call"]
        assert (call["name"], json.loads(call["arguments"])) == (name, {"n": number})
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"result_{number}"}
        second = await ask(gateways[(number + 1) % 2], {**kept, "input": [result]})
        assert second["output"][-1]["content"][0]["text"] == f"{name} returned: result_{number}"

    async with replicas(tmp_path, state.url) as (gateways, emulator):
        await asyncio.gather(*(converse(number, gateways) for number in range(CROWD)))
        assert len(emulator.accepted()) == 2 * CROWD


class Crowd:
    """Conversations whose clients keep no thinking, each step at the other gateway; who finds nobody asks again."""

    def __init__(self, session: aiohttp.ClientSession, gateways: list[Gateway]) -> None:
        self._session = session
        self._gateways = gateways
        self.answers = 0
        self.unanswered = 0

    async def converse(self, number: int, turns: int) -> None:
        tool = {"name": f"count_{number}", "input_schema": SCHEMA}
        body: Json = {"model": MODEL, "max_tokens": 500, "messages": [], "tools": [tool]}
        for turn in range(turns):
            wish = f'use count_{number} with {{"n": {turn}}}'
            body["messages"].append({"role": "user", "content": wish})
            content = await self._step(number + turn, body)
            (call,) = [block for block in content if block["type"] == "tool_use"]
            assert (call["name"], call["input"]) == (f"count_{number}", {"n": turn})
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{number}-{turn}"}
            body["messages"].append({"role": "user", "content": [result]})
            content = await self._step(number + turn + 1, body)
            assert content[-1]["text"] == f"count_{number} returned: {number}-{turn}"

    async def _step(self, place: int, body: Json) -> list[Json]:
        while True:
            url = self._gateways[place % 2].url + "/v1/messages"
            try:
                async with self._session.post(url, json=body) as response:
                    answer = await response.json()
            except (aiohttp.ClientError, ConnectionError):
                self.unanswered += 1
                await asyncio.sleep(0.1)
                continue
            assert response.status == 200, answer
            assert response.headers["x-dragoman-notes"] == "0", "a sentinel stood in for a lost signature"
            self.answers += 1
            content: list[Json] = answer["content"]
            body["messages"].append({"role": "assistant", "content": content})
            return content

    async def kill_now_and_then(self, times: int, every: int) -> None:
        for turn in range(times):
            while self.answers < (turn + 1) * every:
                await asyncio.sleep(0.02)
            victim = self._gateways[turn % 2]
            victim.kill()
            await asyncio.to_thread(victim.restart)


async def test_five_hundred_conversations_at_once_outlive_the_replicas_that_are_killed(
    tmp_path: Path, state: RedisServer
) -> None:
    """`DRAGOMAN_CROWD_TURNS=40` plays them as long as the one above."""
    turns = int(os.environ.get("DRAGOMAN_CROWD_TURNS", "2"))
    kills = 2 * turns
    async with (
        replicas(tmp_path, state.url) as (gateways, emulator),
        aiohttp.ClientSession(headers=HEADERS, connector=aiohttp.TCPConnector(limit=AT_ONCE)) as session,
    ):
        crowd = Crowd(session, gateways)
        talks = (crowd.converse(number, turns) for number in range(CROWD))
        await asyncio.gather(*talks, crowd.kill_now_and_then(kills, 2 * turns * CROWD // (kills + 1)))
        assert crowd.answers == 2 * turns * CROWD
        assert crowd.unanswered >= kills, "nobody was being answered when they were killed"
        print(f"{crowd.answers} answers, {kills} times -9, {crowd.unanswered} times asked again")
        assert len(emulator.accepted()) >= crowd.answers


async def test_without_redis_what_needs_no_state_goes_on_and_what_does_is_told_to_come_again(
    tmp_path: Path, state: RedisServer
) -> None:
    say: Json = {"model": MODEL, "input": "Please say Good morning"}
    async with replicas(tmp_path, state.url, number=1) as ((gateway,), _):
        status, _, _ = await post(gateway, "/v1/responses", {**say, "conversation": "demo"})
        assert status == 200
        state.stop(kill=True)
        status, answer, _ = await post(gateway, "/v1/messages", _anthropic("Please say Good morning"))
        assert (status, answer["content"][0]["text"]) == (200, "Good morning")
        status, answer, headers = await post(gateway, "/v1/responses", {**say, "conversation": "demo"})
        assert (status, headers["retry-after"]) == (503, "2"), answer
        state.start()
        await _until(lambda: _is_answered(gateway, {**say, "conversation": "demo"}))
        _, answer, _ = await post(
            gateway, "/v1/responses", {"model": MODEL, "input": "what did I say?", "conversation": "demo"}
        )
        assert answer["usage"]["input_tokens"] > 10, "the conversation was still there"


def _anthropic(text: str) -> Json:
    return {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": text}]}


async def _is_answered(gateway: Gateway, body: Json) -> bool:
    status, _, _ = await post(gateway, "/v1/responses", body)
    return status == 200


async def _until(check: Callable[[], Awaitable[bool]], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not await check():
        assert time.monotonic() < deadline, "it never came back"
        await asyncio.sleep(0.2)


@contextmanager
def sentinels(folder: Path) -> Iterator[tuple[str, Callable[[], None]]]:
    """A primary, its replica and three sentinels; and a way to kill the primary."""
    processes: list[subprocess.Popen[bytes]] = []

    def start(name: str, settings: str, *flags: str) -> None:
        place = folder / name
        place.mkdir()
        (place / "redis.conf").write_text(f"dir {place}\nbind 127.0.0.1\nsave ''\n{settings}\n")
        command = [require_redis(), str(place / "redis.conf"), *flags]
        processes.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))

    ports = _free_ports(5)
    primary, copy, *watching = ports
    try:
        start("primary", f"port {primary}")
        start("copy", f"port {copy}\nreplicaof 127.0.0.1 {primary}")
        for port in watching:
            watch = (
                f"sentinel monitor main 127.0.0.1 {primary} 2",
                "sentinel down-after-milliseconds main 400",
                "sentinel failover-timeout main 2000",
            )
            start(f"sentinel{port}", "\n".join((f"port {port}", *watch)), "--sentinel")
        _await_sentinels(watching, copy)
        yield (
            "redis+sentinel://" + ",".join(f"127.0.0.1:{port}" for port in watching) + "/main",
            processes[0].kill,
        )
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _free_ports(number: int) -> list[int]:
    import socket

    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [int(probe.getsockname()[1]) for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def _await_sentinels(watching: list[int], copy: int) -> None:
    """Until each knows the others and the copy, and the copy follows."""
    deadline = time.monotonic() + 30.0
    while time.monotonic() < deadline:
        try:
            known = [_known(port) for port in watching]
            with redis.Redis(port=copy) as client:
                info: Any = client.info("replication")
            if all(known) and info["master_link_status"] == "up":
                return
        except (redis.RedisError, KeyError):
            pass
        time.sleep(0.1)
    raise RuntimeError("the sentinels never met")


def _known(port: int) -> bool:
    with redis.Redis(port=port) as client:
        state: Any = client.sentinel_master("main")
    return bool(state["num-other-sentinels"] == 2 and state["num-slaves"] == 1)


async def test_a_failover_by_sentinels_loses_nothing_that_was_copied(tmp_path: Path) -> None:
    with sentinels(tmp_path) as (url, kill_primary):
        first, second = (RedisStore(url, max_age_s=600) for _ in range(2))
        await first.set_values([("call", "signature")])
        await _until(lambda: _is_copied(second))
        kill_primary()

        async def takes_writes() -> bool:
            try:
                await first.set_values([("later", "one")])
            except StoreUnavailable:
                return False
            return True

        await _until(takes_writes)
        third = RedisStore(url, max_age_s=600)
        assert await third.get_values(["call", "later"]) == {"call": "signature", "later": "one"}
        for store in (first, second, third):
            await store.close()


async def _is_copied(store: RedisStore) -> bool:
    copied: int = await store._connection.call(lambda client: client.wait(1, 100))
    return copied == 1


async def test_p5_a_budget_of_a_hundred_requests_lets_exactly_a_hundred_through_two_replicas(
    tmp_path: Path, state: RedisServer
) -> None:
    limits = json.dumps({"month": {"requests": 100}})
    async with replicas(tmp_path, state.url, LIMITS_KEY=limits) as (gateways, emulator):
        most = asyncio.Semaphore(50)

        async def ask(number: int) -> int:
            async with most:
                status, _, _ = await post(gateways[number % 2], "/v1/messages", _anthropic("Please say hi"))
            return status

        statuses = await asyncio.gather(*(ask(number) for number in range(160)))
        assert len(emulator.accepted()) == 100
    assert sorted(set(statuses)) == [200, 429]
    assert statuses.count(200) == 100


async def test_a_sessions_tools_calls_and_results_are_every_replicas(
    tmp_path: Path, state: RedisServer
) -> None:
    async with (
        replicas(tmp_path, state.url) as (gateways, emulator),
        aiohttp.ClientSession(headers=HEADERS) as admin,
    ):
        first, second = gateways
        tools = {"tools": [{"name": "count", "input_schema": SCHEMA}]}
        async with admin.put(f"{first.url}/v1/sessions/shared/tools", json=tools) as answer:
            assert answer.status == 200
        kept: Json = {"model": MODEL, "conversation": "shared"}
        _, asked, _ = await post(second, "/v1/responses", {**kept, "input": 'use count with {"n": 7}'})
        assert "[waiting for count" in json.dumps(asked, ensure_ascii=False)
        async with admin.get(f"{first.url}/v1/sessions/shared/calls?status=open") as answer:
            (call,) = (await answer.json())["calls"]
        waiting = asyncio.ensure_future(post(second, "/v1/responses", {**kept, "input": "go on"}))
        await asyncio.sleep(0.2)
        assert not waiting.done()
        results = {"results": [{"call_id": call["id"], "output": "seven it is"}]}
        assert (await post(first, "/v1/sessions/shared/results", results))[0] == 200
        assert (await waiting)[0] == 200
        async with admin.get(f"{second.url}/v1/sessions/shared/calls") as answer:
            assert [one["status"] for one in (await answer.json())["calls"]] == ["delivered"]
        assert len(emulator.accepted()) == 2


async def test_a_failover_by_sentinels_costs_no_request_without_state_and_no_conversation(
    tmp_path: Path,
) -> None:
    """Meanwhile a conversation is told to come again; nothing wrong is answered, and afterwards it goes on."""
    say: Json = {"model": MODEL, "input": "Please say Good morning", "conversation": "demo"}
    (tmp_path / "state").mkdir()
    with sentinels(tmp_path / "state") as (url, kill_primary):
        async with replicas(tmp_path, url, number=1) as ((gateway,), _):
            assert (await post(gateway, "/v1/responses", say))[0] == 200
            watching = RedisStore(url, max_age_s=600)
            await watching.set_values([("written", "after the conversation")])
            await _until(lambda: _is_copied(watching))
            await watching.close()
            kill_primary()

            async def goes_on() -> bool:
                status, answer, _ = await post(gateway, "/v1/messages", _anthropic("Please say Good morning"))
                assert (status, answer["content"][0]["text"]) == (200, "Good morning")
                status, answer, headers = await post(gateway, "/v1/responses", say)
                assert status == 200 or (status == 503 and headers["retry-after"]), answer
                return status == 200

            await _until(goes_on, seconds=60.0)
            _, answer, _ = await post(gateway, "/v1/responses", {**say, "input": "what did I say?"})
            assert answer["usage"]["input_tokens"] > 15, "the conversation was still there"
