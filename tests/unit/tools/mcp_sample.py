"""An MCP server for tests: tools that answer, report, hang, crash, change and misbehave on request."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import mcp_types
from mcp.server.mcpserver import Context, Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("sample")
PIXEL = b"\x89PNG\r\n\x1a\n"


@server.tool(annotations=mcp_types.ToolAnnotations(read_only_hint=True))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(why: str) -> str:
    raise ToolError(why)


@server.tool()
def picture() -> Image:
    return Image(data=PIXEL, format="png")


@server.tool()
def environment() -> str:
    return json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd())})


@server.tool()
async def steps(ctx: Context[Any, Any]) -> str:
    for number in (1, 2):
        await ctx.report_progress(number, 2, f"step {number}")
    return "done"


@server.tool()
async def hang(started: str, stopped: str) -> str:
    """Says in files when it began and when it was told to stop."""
    Path(started).touch()
    try:
        await asyncio.sleep(60)
    finally:
        Path(stopped).touch()
    return "never"


@server.tool()
def crash(flag: str = "") -> str:
    """Dies; with a flag file, also at every start while the file is there."""
    if flag:
        Path(flag).touch()
    print("the last straw", file=sys.stderr, flush=True)
    os._exit(7)


@server.tool()
def spawn() -> str:
    """Starts a child that outlives its parent, unless somebody ends it."""
    child = subprocess.Popen(["sleep", "300"], stdin=subprocess.DEVNULL)
    return str(child.pid)


@server.tool()
async def grow(ctx: Context[Any, Any]) -> str:
    """One more tool, and the news of it."""

    def grown() -> str:
        return "new"

    server.add_tool(grown)
    await ctx.notify_tools_changed()
    return "grown"


if __name__ == "__main__":
    if len(sys.argv) > 1 and Path(sys.argv[1]).exists():
        sys.exit("not today")
    server.run()
