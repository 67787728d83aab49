"""An MCP server over HTTP that tells which header it was given: `mcp_web.py PORT sessions|stateless`."""

from __future__ import annotations

import sys
from typing import Any

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("web", log_level="ERROR")


@server.tool()
def header(ctx: Context[Any, Any]) -> str:
    request: Any = ctx.request_context.request
    return str(request.headers.get("x-key"))


@server.tool()
async def steps(ctx: Context[Any, Any]) -> str:
    await ctx.report_progress(1, None, "step")
    return "done"


if __name__ == "__main__":
    server.run(
        "streamable-http", host="127.0.0.1", port=int(sys.argv[1]), stateless_http=sys.argv[2] == "stateless"
    )
