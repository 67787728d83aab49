"""MCP over streamable HTTP: the headers of the settings, progress, and a server that was restarted."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman.config.tools import McpServer
from dragoman.ir import Text
from dragoman.tools.definition import Context, ToolOutput
from dragoman.tools.errors import ToolFailed
from dragoman.tools.mcp import McpServers
from dragoman.tools.mcp.servers import McpTiming

PROGRAM = Path(__file__).parent / "mcp_web.py"
QUICK = McpTiming(start_s=60, wait_s=60, first_pause_s=0.05, longest_pause_s=0.2)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@asynccontextmanager
async def serving(port: int, era: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), str(port), era)
    try:
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                assert process.returncode is None
                await asyncio.sleep(0.05)
            else:
                writer.close()
                await writer.wait_closed()
                break
        yield
    finally:
        process.send_signal(signal.SIGKILL)
        await process.wait()


async def call(servers: McpServers, name: str, context: Context | None = None) -> str:
    definition = next(one for one in servers.definitions() if one.name == name)
    assert definition.execute is not None
    output = await definition.execute({}, context or Context())
    assert isinstance(output, ToolOutput)
    return "\n".join(part.text for part in output.content if isinstance(part, Text))


@pytest.mark.parametrize("era", ["sessions", "stateless"])
async def test_a_server_on_the_web_is_used_with_its_headers_and_found_again_after_a_restart(era: str) -> None:
    port = free_port()
    server = McpServer(url=f"http://127.0.0.1:{port}/mcp", headers={"X-Key": "open sesame"})
    heard: list[str] = []
    async with serving(port, era):
        servers = await McpServers({"web": server}, timing=QUICK).__aenter__()
        assert servers.problems == {}
        assert await call(servers, "mcp__web__header") == "open sesame"
        await call(servers, "mcp__web__steps", Context(progress=heard.append))
        assert heard == ["step (1)"]
    with pytest.raises(ToolFailed, match="web"):
        await call(servers, "mcp__web__header")
    async with serving(port, era):
        for _ in range(100):
            try:
                said = await call(servers, "mcp__web__header")
                break
            except ToolFailed:
                await asyncio.sleep(0.05)
        assert said == "open sesame"
        await servers.__aexit__()
