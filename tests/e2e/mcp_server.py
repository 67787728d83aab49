"""An MCP server over stdio: the hostile tools, each answering with the arguments it was given."""

from __future__ import annotations

import json
import sys
from typing import Any

from tests.e2e.hard_schemas import HOSTILE

SERVER = "hostile"


def mcp_name(name: str) -> str:
    """The tool's name without what Claude Code puts in front of it."""
    return name.removeprefix(f"mcp__{SERVER}__")


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": SERVER, "version": "1"},
        }
    if method == "tools/list":
        tools = [
            {"name": mcp_name(name), "description": "hostile", "inputSchema": {"type": "object", **row[0]}}
            for name, row in HOSTILE.items()
        ]
        return {"tools": tools}
    if method == "tools/call":
        said = json.dumps(params.get("arguments"), sort_keys=True, ensure_ascii=False)
        return {"content": [{"type": "text", "text": f"{params['name']} got {said}"}]}
    return {}


def main() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request and "method" in request:
            result = answer(request["method"], request.get("params") or {})
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)


if __name__ == "__main__":
    main()
