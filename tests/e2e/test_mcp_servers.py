"""The MCP servers people install from npm, behind the handler, the rules and the audit log, as an agent uses them."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.config.tools import McpServer
from dragoman.ir import Media, Text, ToolCall, ToolResult
from dragoman.tools.audit import AuditLog, last_entries
from dragoman.tools.definition import Context
from dragoman.tools.handler import Handler
from dragoman.tools.mcp import McpServers
from dragoman.tools.mcp.servers import McpTiming
from dragoman.tools.permissions import RuleGuard, Rules
from dragoman.tools.registry import Registry
from tests.e2e.clients import INSTALL_S, install
from tests.requirements import require_program

VERSION = "2026.8.31"
TIMING = McpTiming(start_s=90, wait_s=60, first_pause_s=0.05, longest_pause_s=0.5)
pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


def program(name: str) -> str:
    folder = install(f"mcp-{name}-{VERSION}", f"@modelcontextprotocol/server-{name}@{VERSION}")
    return str(folder / "node_modules" / ".bin" / f"mcp-server-{name}")


def words(result: ToolResult) -> str:
    return "\n".join(part.text for part in result.content if isinstance(part, Text))


async def call(handler: Handler, name: str, context: Context | None = None, **args: Any) -> ToolResult:
    request = ToolCall(id="call", name=name, args=json.dumps(args).encode())
    return await handler.execute(request, context or Context())


async def test_everything_over_pipes() -> None:
    heard: list[str] = []
    server = McpServer(command=(program("everything"), "stdio"), env={"GIVEN": "yes"})
    async with McpServers({"all": server}, timing=TIMING) as servers:
        assert servers.problems == {}
        handler = Handler(Registry(servers.definitions()))
        assert "hi there" in words(await call(handler, "mcp__all__echo", message="hi there"))
        assert "5" in words(await call(handler, "mcp__all__get-sum", a=2, b=3))
        environment = words(await call(handler, "mcp__all__get-env"))
        assert '"GIVEN": "yes"' in environment
        assert "GEMINI" not in environment
        picture = await call(handler, "mcp__all__get-tiny-image")
        assert [part.mime for part in picture.content if isinstance(part, Media)] == ["image/png"]
        weather = await call(handler, "mcp__all__get-structured-content", location="Chicago")
        assert json.loads(weather.response).keys() == {"temperature", "conditions", "humidity"}
        long = "mcp__all__trigger-long-running-operation"
        done = await call(handler, long, Context(progress=heard.append), duration=0.2, steps=2)
        assert "completed" in words(done)
        assert len(heard) == 2
        wrong = await call(handler, "mcp__all__get-sum", a="two")
        assert wrong.is_error


async def test_files_only_inside_the_folder_it_was_given(tmp_path: Path) -> None:
    root = tmp_path / "files"
    root.mkdir()
    (root / "a.txt").write_text("content of a")
    (tmp_path / "secret.txt").write_text("secret")
    log = AuditLog(tmp_path / "audit.jsonl")
    guard = RuleGuard(Rules.parse(["mcp__fs__*"], deny=["mcp__fs__move_file"]))
    async with McpServers(
        {"fs": McpServer(command=(program("filesystem"), str(root)))}, timing=TIMING
    ) as servers:
        handler = Handler(Registry(servers.definitions()), guard=guard, journal=log)
        risks = {one.name: one.risk for one in servers.definitions()}
        assert risks["mcp__fs__read_text_file"] == "read"
        assert risks["mcp__fs__write_file"] == "run"
        read = await call(handler, "mcp__fs__read_text_file", path=str(root / "a.txt"))
        assert "content of a" in words(read) + read.response.decode()
        await call(handler, "mcp__fs__write_file", path=str(root / "b.txt"), content="new")
        assert (root / "b.txt").read_text() == "new"
        outside = await call(handler, "mcp__fs__read_text_file", path=str(tmp_path / "secret.txt"))
        assert outside.is_error
        moved = await call(
            handler, "mcp__fs__move_file", source=str(root / "a.txt"), destination=str(root / "c.txt")
        )
        assert moved.is_error
        assert (root / "a.txt").exists()
    entries, _ = last_entries(log.path, lambda _: True, 10)
    assert [entry.outcome for entry in entries] == ["ok", "ok", "failed", "refused"]


@asynccontextmanager
async def serving(port: int) -> AsyncIterator[None]:
    require_program("node", package="nodejs")
    env = {"PATH": os.environ["PATH"], "PORT": str(port)}
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        program("everything"), "streamableHttp", env=env, stdout=nowhere, stderr=nowhere
    )
    try:
        while not await answers(port):
            assert process.returncode is None
            await asyncio.sleep(0.05)
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


async def answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_everything_over_http_and_after_the_server_forgot_the_session() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {"web": McpServer(url=f"http://127.0.0.1:{port}/mcp")}
    async with serving(port):
        servers = await McpServers(settings, timing=TIMING).__aenter__()
        assert servers.problems == {}
        handler = Handler(Registry(servers.definitions()))
        assert "hi" in words(await call(handler, "mcp__web__echo", message="hi"))
    try:
        assert (await call(handler, "mcp__web__echo", message="anybody?")).is_error
        async with serving(port):
            async with asyncio.timeout(60):
                while (await call(handler, "mcp__web__echo", message="again")).is_error:
                    await asyncio.sleep(0.05)
    finally:
        await servers.__aexit__()
