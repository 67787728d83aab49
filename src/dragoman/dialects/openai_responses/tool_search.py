"""Server-side tool search: decode its items in the history, and build those of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from dragoman.dialects.openai_responses.tools import SEARCH, flat_name
from dragoman.ir import RemoteMcpServer, ServerCall, ServerResult, ServerTool, mcp_tool_name

Json = dict[str, Any]

_CALL_ID, _OUTPUT_ID = "tsc_", "tso_"
_BY_SERVICE: Json = {"execution": "server", "call_id": None}


def search_tool(where: str) -> ServerTool:
    return ServerTool(kind="tool_search", name=SEARCH, where=where, by="paths")


def read_call(identity: str | None, args: bytes) -> ServerCall:
    own = (identity or "").removeprefix(_CALL_ID)
    return ServerCall(id=own, kind="tool_search", name=SEARCH, args=args)


def read_output(identity: str | None, names: Iterable[str]) -> ServerResult:
    own = (identity or "").removeprefix(_OUTPUT_ID)
    return ServerResult(call_id=own, kind="tool_search", tools=tuple(names))


def call_item(call: ServerCall) -> Json:
    head = {"type": "tool_search_call", "id": _CALL_ID + call.id, "status": "completed"}
    return {**head, **_BY_SERVICE, "arguments": msgspec.Raw(call.args)}


def output_item(result: ServerResult, sources: Iterable[bytes]) -> Json:
    """Build the item of a result; `sources` are the client's lists of tools, as JSON.

    The item contains the definitions of the found tools as the client declared them.
    """
    return {
        "type": "tool_search_output",
        "id": _OUTPUT_ID + result.call_id,
        "status": "incomplete" if result.error else "completed",
        **_BY_SERVICE,
        "tools": _found(result.tools, sources) if result.tools else [],
    }


def _found(names: tuple[str, ...], sources: Iterable[bytes]) -> list[Json]:
    """Return the definitions of the named tools, those of one namespace together in it."""
    known: dict[str, tuple[Json, Json | None]] = {}
    for source in sources:
        for name, tool, space in _declared(msgspec.json.decode(source)):
            known.setdefault(name, (tool, space))
    found: list[Json] = []
    spaces: dict[str, Json] = {}
    for tool, space in (known[name] for name in names if name in known):
        if space is None:
            found.append(tool)
        elif space["name"] in spaces:
            spaces[space["name"]]["tools"].append(tool)
        else:
            spaces[space["name"]] = {"description": "", **space, "tools": [tool]}
            found.append(spaces[space["name"]])
    return [*found, *_found_in_servers(names, sources)]


def _found_in_servers(names: tuple[str, ...], sources: Iterable[bytes]) -> Iterator[Json]:
    """Yield the first definition of each MCP server with found tools, restricted to these tools."""
    servers: dict[str, Json] = {}
    for tool in (tool for source in sources for tool in msgspec.json.decode(source)):
        if tool.get("type") == "mcp":
            servers.setdefault(mcp_tool_name(tool["server_label"], ""), tool)
    for prefix, tool in servers.items():
        own = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
        if own:
            yield {**tool, "allowed_tools": own}


def found_remotely(remotes: Iterable[RemoteMcpServer]) -> Iterator[str]:
    """Yield the names of the MCP tools in the output of a search: the inverse of `output_item`."""
    for remote in remotes:
        yield from (mcp_tool_name(remote.label, tool) for tool in remote.allowed.names or ())


def _declared(tools: list[Json]) -> Iterator[tuple[str, Json, Json | None]]:
    for tool in tools:
        if tool.get("type") == "namespace":
            nested = (_unnested(one) for one in tool.get("tools") or ())
            yield from ((flat_name(one["name"], tool["name"]), one, tool) for one in nested)
        elif tool.get("name"):
            yield tool["name"], tool, None


def _unnested(tool: Json) -> Json:
    """Convert Chat's nested form of a tool; `flatten` does this only for tools outside of namespaces."""
    inner = tool.get("function")
    return {**{key: value for key, value in tool.items() if key != "function"}, **inner} if inner else tool
