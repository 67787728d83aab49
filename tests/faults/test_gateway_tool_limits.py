"""What holds for the gateway's own tools, whoever offers them: budgets in every round, the operator's no, short waits."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import aiohttp
import pytest

from dragoman.config import McpConfig, McpServer, ToolsConfig
from dragoman.config.model import LimitsConfig, QuotaConfig
from dragoman.gateway.gateway_tools import client_mcp, resources
from dragoman.store import MemoryStore
from tests.faults.harness import (
    HELLO,
    FakeGoogle,
    chunk,
    events_of,
    gateway,
    refuses,
    streams,
    text_of,
    types_of,
)
from tests.faults.test_client_mcp import ADD, ask
from tests.faults.test_gateway_tools import SAMPLE, audit, calls, declared, home, responses, settings

__all__ = ["home"]  # a fixture


def round_of(number: int, tokens: int) -> bytes:
    """One call more, for which the model has read so much."""
    part = {"functionCall": {"name": "lookup", "args": {"word": str(number)}, "id": "g0"}}
    usage = {"promptTokenCount": tokens, "candidatesTokenCount": 3, "totalTokenCount": tokens + 3}
    return chunk({**part, "thoughtSignature": "c2ln"}, finish="STOP", usageMetadata=usage)


class TestFuses:
    """Every round reads the whole conversation again: a budget holds for all of them."""

    async def test_p5_a_budget_that_is_spent_ends_the_answer(self, home: Path) -> None:
        google = FakeGoogle(*(streams(round_of(number, 1000)) for number in range(20)))
        store = MemoryStore()
        limits = LimitsConfig(key={"day": QuotaConfig(tokens=5_000)})
        async with gateway(google, store=store, limits=limits, **settings(home)) as running:
            response = await running.messages()
            refused = (await response.json())["error"]["message"]
        assert "the limit of 5,000 tokens a day for this key is reached" in refused
        assert len(google.arrived) == 4  # a fifth would have come to 5,015
        assert len(audit(home)) == 4
        assert [spent for spent, _ in store.meters._values.values()] == [4_012]

    async def test_what_was_reserved_and_not_used_is_given_back(self, home: Path) -> None:
        script = [streams(round_of(0, 1000)), streams(HELLO), streams(HELLO)]
        google = FakeGoogle(*script)
        limits = LimitsConfig(key={"day": QuotaConfig(tokens=2_500)})
        async with gateway(google, limits=limits, **settings(home)) as running:
            for _ in range(2):
                assert text_of(await events_of(await running.messages())) == "Hello"
        assert len(google.arrived) == 3

    async def test_requests_are_the_clients_own(self, home: Path) -> None:
        google = FakeGoogle(*(streams(round_of(number, 10)) for number in range(5)), streams(HELLO))
        limits = LimitsConfig(key={"day": QuotaConfig(requests=1)})
        async with gateway(google, limits=limits, **settings(home)) as running:
            assert text_of(await events_of(await running.messages())) == "Hello"
            assert (await running.messages()).status == 429

    async def test_in_a_stream_that_has_begun_it_is_the_dialects_error(self, home: Path) -> None:
        google = FakeGoogle(streams(chunk({"text": "So."}) + round_of(0, 1000)), refuses(500))
        limits = LimitsConfig(key={"day": QuotaConfig(tokens=1_500)})
        async with gateway(google, limits=limits, **settings(home)) as running:
            events = await events_of(await running.messages())
        assert text_of(events) == "So."
        assert types_of(events)[-1] == "error"
        assert "limits.key.day" in events[-1]["error"]["message"]
        assert len(google.arrived) == 1


async def test_what_the_operator_denies_everywhere_no_profile_allows(home: Path) -> None:
    google = FakeGoogle(streams(calls("lookup", word="x")), streams(HELLO))
    tools = ToolsConfig(deny=("lookup",))
    async with gateway(google, tools=tools, **settings(home, allow=("lookup",))) as running:
        await events_of(await running.messages())
    assert "not allowed here" in responses(google.arrived[1].body)[0]["response"]["error"]
    assert audit(home)[0]["outcome"] == "refused"


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, McpServer]:
    """Two servers, each of which starts only if the other does."""
    monkeypatch.setattr(resources, "START_WAIT_S", 60.0)
    monkeypatch.setattr(client_mcp, "START_WAIT_S", 60.0)
    servers: dict[str, McpServer] = {}
    for own, other in (("one", "two"), ("two", "one")):
        wait = f"touch {tmp_path}/{own}; until [ -e {tmp_path}/{other} ]; do sleep 0.05; done"
        run = f"{wait}; exec {sys.executable} {SAMPLE.command[1]}"
        servers[own] = McpServer(command=("/bin/sh", "-c", run), requests=True)
    return servers


async def test_servers_of_a_profile_start_side_by_side(home: Path, pair: dict[str, McpServer]) -> None:
    google = FakeGoogle(streams(HELLO))
    top = settings(home, "mcp:one/add", "mcp:two/add", servers=pair)
    async with asyncio.timeout(50), gateway(google, **top) as running:
        await events_of(await running.messages())
    assert declared(google.arrived[0].body) == ["get_weather", "mcp__one__add", "mcp__two__add"]


async def test_servers_that_a_request_asks_for_start_side_by_side(
    home: Path, pair: dict[str, McpServer]
) -> None:
    google = FakeGoogle(refuses(400, "enough"))
    async with (
        asyncio.timeout(50),
        gateway(google, home=str(home), mcp=McpConfig(servers=pair)) as running,
    ):
        await ask(running, *({**ADD, "server_label": label} for label in pair))
    assert "mcp__two__add" in declared(google.arrived[0].body)


async def test_a_client_that_leaves_while_its_server_is_reached_leaves_no_connection(home: Path) -> None:
    reached = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        reached.set()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    tool = {**ADD, "server_label": "web", "server_url": url, "headers": {"X-Key": "k"}}
    body = {"model": "gemini-3.8-flash", "input": "q", "tools": [tool]}
    mcp = McpConfig(servers={"web": McpServer(url=url, requests=True)})
    async with gateway(FakeGoogle(streams(HELLO)), home=str(home), mcp=mcp) as running:
        async with aiohttp.ClientSession(headers=running.headers) as leaving:
            asking = asyncio.ensure_future(leaving.post(running.url + "/v1/responses", json=body))
            async with asyncio.timeout(30):
                await reached.wait()
            assert "mcp-web" in [task.get_name() for task in asyncio.all_tasks()]
            asking.cancel()
        async with asyncio.timeout(30):
            while "mcp-web" in [task.get_name() for task in asyncio.all_tasks()]:
                await asyncio.sleep(0.02)
    server.close()
