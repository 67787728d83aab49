"""A hand-written MCP server of the old protocol, which also says things no package would let it say."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS: list[dict[str, Any]] = [
    {"name": "odd name with spaces", "inputSchema": {"type": "object"}},
    {"name": "twice", "description": "first", "inputSchema": {"type": "object"}},
    {"name": "answer", "title": "A title", "inputSchema": {"type": "object"}},
    {"name": "grow", "inputSchema": {"type": "object"}},
    {
        "name": "lie",
        "inputSchema": {"type": "object"},
        "outputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    },
]


def say(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def list_tools(cursor: str | None) -> dict[str, Any]:
    """One tool per page."""
    index = int(cursor or 0)
    more = {"nextCursor": str(index + 1)} if index + 1 < len(TOOLS) else {}
    return {"tools": [TOOLS[index]], **more}


def call(name: str, args: dict[str, Any]) -> dict[str, Any]:
    if name == "grow":
        TOOLS.append({"name": "grown", "inputSchema": {"type": "object"}})
        say({"method": "notifications/tools/list_changed"})
        say({"method": "notifications/message", "params": {"level": "info", "data": "hello"}})
    if name == "lie":
        return {"content": [], "structuredContent": {"a": "no integer"}}
    result: dict[str, Any] = args.get("result", {"content": []})
    return result


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        params = request.get("params") or {}
        match request.get("method"):
            case "initialize":
                info = {"name": "legacy", "version": "1"}
                capabilities = {"tools": {"listChanged": True}}
                result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": info}
            case "tools/list":
                result = list_tools(params.get("cursor"))
            case "tools/call":
                if params["arguments"].get("refuse"):
                    say({"id": request["id"], "error": {"code": -32600, "message": "not like this"}})
                    continue
                result = call(params["name"], params["arguments"])
            case _:
                if "id" in request:
                    say({"id": request["id"], "error": {"code": -32601, "message": "unknown method"}})
                continue
        say({"id": request["id"], "result": result})


if __name__ == "__main__":
    main()
