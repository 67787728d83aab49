"""Tools of the gateway's own, while its process is stopped, killed and started again."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.faults.harness import HELLO, FakeGoogle, chunk, streams
from tests.unit.tools.test_mcp_servers import alive

Json = dict[str, Any]

SERVER = Path(__file__).parents[1] / "unit/tools/mcp_sample.py"
SETTINGS = """
[server]
shutdown_s = 0.5

[mcp.servers.py]
command = ["%s", "%s"]

[profiles.team]
tools = ["mcp:py"]
"""
TOOLS = [{"name": "get_weather", "input_schema": {"type": "object", "properties": {}}}]


@asynccontextmanager
async def process(home: Path, google: FakeGoogle) -> AsyncIterator[Gateway]:
    home.mkdir()
    server_program = home.with_name(
        "server.py"
    )  # of its own, to be told from others in the list of processes
    shutil.copy(SERVER, server_program)
    (home / "config.toml").write_text(SETTINGS % (sys.executable, server_program))
    server = await asyncio.start_server(google.serve, "127.0.0.1", 0)
    gateway = Gateway(home, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        await asyncio.to_thread(gateway.start)
        yield gateway
    finally:
        gateway.kill()
        server.close()


def part(name: str, identity: str, **args: Any) -> Json:
    return {"functionCall": {"name": name, "args": args, "id": identity}}


async def ask(gateway: Gateway, *messages: Json) -> Json:
    body = {"model": "gemini-3.8-flash", "max_tokens": 9000, "messages": messages, "tools": TOOLS}
    headers = {"x-api-key": GATEWAY_KEY}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            f"{gateway.url}/v1/messages", json={**body, "stream": False}, headers=headers
        ) as response,
    ):
        return dict(await response.json())


def whole(*parts: Json) -> Any:
    body = chunk(*parts, finish="STOP")[6:]

    async def act(writer: asyncio.StreamWriter) -> None:
        head = b"HTTP/1.1 200 X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        writer.write(head + body)
        await writer.drain()

    return act


async def test_a_mixed_step_survives_the_death_of_the_gateway(tmp_path: Path) -> None:
    step = [
        {**part("mcp__py__add", "g1", a=1, b=2), "thoughtSignature": "c2ln"},
        part("get_weather", "g2"),
    ]
    google = FakeGoogle(whole(*step), whole({"text": "Done."}))
    async with process(tmp_path / "home", google) as gateway:
        question = {"role": "user", "content": "hi"}
        answer = await ask(gateway, question)
        (use,) = answer["content"]
        gateway.kill()
        await asyncio.to_thread(gateway.restart)
        result = {"type": "tool_result", "tool_use_id": use["id"], "content": "rain"}
        said = await ask(
            gateway, question, {"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}
        )
    assert [block["text"] for block in said["content"]] == ["Done."]
    calls, results = google.arrived[1].body["contents"][1:]
    assert [one["functionCall"]["id"] for one in calls["parts"]] == ["g1", "g2"]
    assert calls["parts"][0]["thoughtSignature"] == "c2ln"
    assert [one["functionResponse"]["id"] for one in results["parts"]] == ["g1", "g2"]


@pytest.mark.parametrize("how", ["politely", "kill -9"])
async def test_no_server_outlives_the_gateway(tmp_path: Path, how: str) -> None:
    """Also not while one of its tools is running."""
    started, stopped = tmp_path / "started", tmp_path / "stopped"
    google = FakeGoogle(
        streams(chunk(part("mcp__py__environment", "g1"), finish="STOP")),
        streams(
            chunk(part("mcp__py__hang", "g2", started=str(started), stopped=str(stopped)), finish="STOP")
        ),
        streams(HELLO),
    )
    async with process(tmp_path / "home", google) as gateway:
        asking = asyncio.ensure_future(_try(gateway))
        async with asyncio.timeout(60):
            while not started.exists():
                await asyncio.sleep(0.05)
        servers = _running(str(tmp_path / "server.py"))
        assert servers
        if how == "politely":
            await asyncio.to_thread(gateway.stop)
        else:
            gateway.kill()
        async with asyncio.timeout(60):
            while any(map(alive, servers)):
                await asyncio.sleep(0.05)
        await asking
        assert "Traceback" not in gateway.log()
        if how == "politely":
            lines = (tmp_path / "home" / "audit.jsonl").read_text().splitlines()
            assert [json.loads(line)["outcome"] for line in lines] == ["ok", "cancelled"]


async def _try(gateway: Gateway) -> None:
    body = {"model": "m", "max_tokens": 90, "messages": [{"role": "user", "content": "q"}], "stream": True}
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{gateway.url}/v1/messages", json=body, headers={"x-api-key": GATEWAY_KEY}
            ) as response,
        ):
            await response.read()
    except aiohttp.ClientError:
        return


def _running(script: str) -> list[int]:
    """The processes of ours that run this file."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                mine = os.stat(entry).st_uid == os.getuid()
            except OSError:
                continue
            if mine and script.encode() in words:
                found.append(int(entry.name))
    return found
