"""What conversations cost in the store: operations of Redis for each request, bytes for each conversation."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import aiohttp
import msgspec

from tests.e2e.emulator import emulator_process
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.redis_server import RedisServer

Json = dict[str, Any]
Kind = Literal["stateless", "stateful"]

KINDS: dict[Kind, str] = {
    "stateless": "the client sends the whole history and keeps no thinking (/v1/messages)",
    "stateful": "the gateway keeps the history (/v1/responses with a conversation)",
}
_MODEL = "gemini-3.8-flash"
_HEADERS = {"x-api-key": GATEWAY_KEY, "anthropic-version": "2023-06-01"}
_SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
#: Commands of connecting and of this measurement itself.
_NOT_OURS = frozenset({"hello", "client", "ping", "info", "config", "script", "flushall", "auth", "select"})


class RedisCost(msgspec.Struct, frozen=True, kw_only=True):
    """The use of Redis by tool turns whose two requests go to different gateways."""

    kind: Kind
    requests: int
    round_trips: int  # a script is one round trip
    commands: dict[str, int]
    bytes_per_turn: int

    @property
    def per_request(self) -> float:
        return self.round_trips / self.requests


class ConversationClient:
    """One conversation of tool turns; each request goes to the next gateway."""

    def __init__(self, session: aiohttp.ClientSession, gateways: Sequence[Gateway], name: str) -> None:
        self._session = session
        self._gateways = gateways
        self._name = name
        self._messages: list[Json] = []
        self._requests = 0

    async def stateless(self, turn: int) -> None:
        self._messages.append({"role": "user", "content": f'use count with {{"n": {turn}}}'})
        tools = [{"name": "count", "input_schema": _SCHEMA}]
        for step in range(2):
            body = {"model": _MODEL, "max_tokens": 500, "messages": self._messages, "tools": tools}
            answer = await self._ask("/v1/messages", body)
            self._messages.append({"role": "assistant", "content": answer["content"]})
            if step == 0:
                (call,) = [block for block in answer["content"] if block["type"] == "tool_use"]
                result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{turn} it is"}
                self._messages.append({"role": "user", "content": [result]})

    async def stateful(self, turn: int) -> None:
        common: Json = {"model": _MODEL, "conversation": self._name}
        tool = {"type": "function", "name": "count", "parameters": _SCHEMA}
        prompt = f'use count with {{"n": {turn}}}'
        first = await self._ask("/v1/responses", {**common, "input": prompt, "tools": [tool]})
        (call,) = [item for item in first["output"] if item["type"] == "function_call"]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": f"{turn} it is"}
        await self._ask("/v1/responses", {**common, "input": [result]})

    async def _ask(self, path: str, body: Json) -> Json:
        gateway = self._gateways[self._requests % len(self._gateways)]
        self._requests += 1
        async with self._session.post(gateway.url + path, json=body) as response:
            text = await response.text()
            if response.status != 200 or response.headers["x-dragoman-notes"] != "0":
                raise RuntimeError(f"{response.status} {response.headers} {text}")
            answer: Json = json.loads(text)
            return answer


async def measure_redis(kind: Kind, *, conversations: int, turns: int) -> RedisCost:
    """Measure two gateways on one Redis, with the counters of Redis."""
    with tempfile.TemporaryDirectory(prefix="dragoman-state-") as name:
        folder = Path(name)
        redis = RedisServer(folder).start()
        try:
            async with _gateways(folder, 2, STORE_URL=redis.url) as gateways:
                await _converse(kind, gateways, "warm", 2, 1)  # scripts are loaded, connections made
                redis.clear()
                with redis.client() as client:
                    client.config_resetstat()
                    await _converse(kind, gateways, "c", conversations, turns)
                    info: Any = client.info("everything")
                    stored_bytes = sum(_weigh(client, key) for key in client.scan_iter())
        finally:
            redis.stop()
    counted = {
        key.removeprefix("cmdstat_"): one["calls"] for key, one in info.items() if key.startswith("cmdstat_")
    }
    ours = {key: number for key, number in counted.items() if key.partition("|")[0] not in _NOT_OURS}
    return RedisCost(
        kind=kind,
        requests=2 * conversations * turns,
        round_trips=info["total_reads_processed"] - sum(counted.values()) + sum(ours.values()),
        commands=ours,
        bytes_per_turn=stored_bytes // (conversations * turns),
    )


def _weigh(client: Any, key: bytes) -> int:
    return int(client.memory_usage(key, samples=0))


async def measure_sqlite(kind: Kind, *, conversations: int, turns: int) -> int:
    """Return the bytes of the state file per tool turn."""
    with tempfile.TemporaryDirectory(prefix="dragoman-state-") as name:
        folder = Path(name)
        async with _gateways(folder, 1) as gateways:
            await _converse(kind, gateways, "warm", 2, 1)
            file = folder / "home0" / "state.db"
            empty = _used_bytes(file)
            await _converse(kind, gateways, "c", conversations, turns)
            return (_used_bytes(file) - empty) // (conversations * turns)


def _used_bytes(file: Path) -> int:
    with sqlite3.connect(file) as db:
        values = [
            db.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("page_count", "freelist_count", "page_size")
        ]
    db.close()
    pages, free, size = values
    return int((pages - free) * size)


async def _converse(
    kind: Kind, gateways: Sequence[Gateway], name: str, conversations: int, turns: int
) -> None:
    async with aiohttp.ClientSession(headers=_HEADERS) as session:
        clients = [
            ConversationClient(session, gateways, f"{name}{number}") for number in range(conversations)
        ]
        for turn in range(turns):
            for client in clients:
                await (client.stateless if kind == "stateless" else client.stateful)(turn)


@asynccontextmanager
async def _gateways(folder: Path, number: int, **settings: str) -> AsyncIterator[list[Gateway]]:
    settings |= {"OBSERVE_LEDGER": "false"}  # written in the background, in batches, and bounded
    with emulator_process(folder) as emulator:
        gateways = [Gateway(folder / f"home{one}", emulator.url, **settings) for one in range(number)]
        try:
            await asyncio.gather(*(asyncio.to_thread(gateway.start) for gateway in gateways))
            yield gateways
        finally:
            for gateway in gateways:
                gateway.stop()
