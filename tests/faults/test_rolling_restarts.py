"""Gateways are restarted one after the other behind a balancer, and no request fails."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.emulator import EmulatorProcess, emulator_process
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.faults.harness import events_of, text_of, types_of
from tests.load_balancers import balancer
from tests.redis_server import RedisServer

Json = dict[str, Any]

CLIENTS = 10
ROUNDS = 2  # of restarts of both
DRAIN_S = 1.5  # three looks of the balancer's
MODEL = "gemini-3.8-flash"
HEADERS = {"x-api-key": GATEWAY_KEY, "anthropic-version": "2023-06-01"}
TOOL = {"name": "count", "input_schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}


@asynccontextmanager
async def replicas(folder: Path) -> AsyncIterator[tuple[list[Gateway], EmulatorProcess]]:
    """Two gateways, one of them with two workers, on one Redis and one strict Google that takes its time."""
    (folder / "redis").mkdir()
    state = RedisServer(folder / "redis").start()
    with emulator_process(folder, "--fault", "slow_stream=0.05") as emulator:
        settings = {"STORE_URL": state.url, "SERVER_DRAIN_S": str(DRAIN_S)}
        alone = Gateway(folder / "home1", emulator.url, **settings)
        gateways = [alone, Gateway(folder / "home2", emulator.url, SERVER_WORKERS="2", **settings)]
        try:
            await asyncio.gather(*(asyncio.to_thread(gateway.start) for gateway in gateways))
            yield gateways, emulator
        finally:
            for gateway in gateways:
                gateway.kill()
            state.stop()


class Client:
    """Has one tool conversation after the other, on connections it keeps; every answer is checked."""

    def __init__(self, url: str, number: int) -> None:
        self._url = url
        self._number = number
        self.turns = 0

    async def run(self, until: asyncio.Event) -> None:
        async with aiohttp.ClientSession(headers=HEADERS) as session:
            for number in count(self._number, CLIENTS):
                if until.is_set():
                    return
                await self._converse(session, number)

    async def _converse(self, session: aiohttp.ClientSession, number: int) -> None:
        """The client keeps no thinking: the signature must be found by whoever gets the result."""
        messages: list[Json] = [{"role": "user", "content": f'use count with {{"n": {number}}}'}]
        answer = await self._whole(session, messages)
        (call,) = [block for block in answer["content"] if block["type"] == "tool_use"]
        assert call["input"] == {"n": number}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{number} it is"}
        messages += [
            {"role": "assistant", "content": answer["content"]},
            {"role": "user", "content": [result]},
        ]
        events = await self._stream(session, messages)
        assert types_of(events)[-1] == "message_stop"
        assert text_of(events) == f"count returned: {number} it is"
        self.turns += 2

    async def _whole(self, session: aiohttp.ClientSession, messages: list[Json]) -> Json:
        async with self._post(session, messages, stream=False) as response:
            text = await response.text()
            assert response.status == 200, text
            assert response.headers["x-dragoman-notes"] == "0", "a sentinel stood in for a lost signature"
            answer: Json = json.loads(text)
            return answer

    async def _stream(self, session: aiohttp.ClientSession, messages: list[Json]) -> list[Json]:
        async with self._post(session, messages, stream=True) as response:
            assert response.status == 200, await response.text()
            assert response.headers["x-dragoman-notes"] == "0", "a sentinel stood in for a lost signature"
            return await events_of(response)

    def _post(self, session: aiohttp.ClientSession, messages: list[Json], *, stream: bool) -> Any:
        body = {"model": MODEL, "max_tokens": 500, "messages": messages, "tools": [TOOL], "stream": stream}
        return session.post(self._url + "/v1/messages", json=body)


@pytest.mark.parametrize("program", ["nginx", "haproxy"])
async def test_a_rolling_restart_fails_no_request(program: str, tmp_path: Path) -> None:
    async with replicas(tmp_path) as (gateways, emulator):
        with balancer(program, [gateway.url for gateway in gateways], tmp_path) as url:
            clients = [Client(url, number) for number in range(CLIENTS)]
            over = asyncio.Event()
            running = asyncio.gather(*(client.run(over) for client in clients))
            for gateway in gateways * ROUNDS:
                await _some_turns(clients, running)
                await asyncio.to_thread(gateway.stop)
                await asyncio.to_thread(gateway.restart)
                await _until_taken_back(gateway)
            over.set()
            await running
        turns = sum(client.turns for client in clients)
        print(f"{turns} turns through {program} during {2 * ROUNDS} restarts, none failed")
        assert len(emulator.accepted()) == turns


async def _some_turns(clients: list[Client], running: asyncio.Future[Any]) -> None:
    """The stream of requests goes on while everything is up, too."""
    before = [client.turns for client in clients]
    while not running.done() and any(
        client.turns < turns + 2 for client, turns in zip(clients, before, strict=True)
    ):
        await asyncio.sleep(0.02)
    if running.done():
        await running


async def _until_taken_back(gateway: Gateway) -> None:
    """Until the balancer sends it requests again: its connections are counted, not its words."""
    port = int(gateway.url.rpartition(":")[2])
    deadline = time.monotonic() + 10
    while not _has_connections(port):
        assert time.monotonic() < deadline, "the balancer does not use it"
        await asyncio.sleep(0.05)


def _has_connections(port: int) -> bool:
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    established = [line.split()[1] for line in lines if line.split()[3] == "01"]
    return any(place.endswith(f":{port:04X}") for place in established)
