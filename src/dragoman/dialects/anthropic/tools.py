"""Decode `tools`, `tool_choice` and `mcp_servers`: client tools, Anthropic-defined and server tools, MCP toolsets.

The `encode` functions write tools, tool choice, calls and results for a program that itself calls a Messages API.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic.encode import encode_blocks
from dragoman.dialects.anthropic.tool_search import is_search, read_search
from dragoman.dialects.anthropic.wire import (
    WireEnabled,
    WireMcpServer,
    WireTool,
    WireToolChoice,
    decode_tools,
)
from dragoman.dialects.base import Answer, decode_location
from dragoman.errors import InvalidRequest
from dragoman.incremental.lru import LruCache
from dragoman.ir import (
    ANY_TOOL,
    Media,
    Part,
    RemoteMcpServer,
    ServerKind,
    ServerTool,
    Text,
    Tool,
    ToolCall,
    ToolChoice,
    ToolFilter,
    ToolResult,
    mcp_tool_name,
)
from dragoman.notes import Note

TOOLSET = "mcp_toolset"


class Toolset(msgspec.Struct, frozen=True):
    """The tools of one MCP server that may be used.

    These are the `allowed` tools without the `refused` ones. Of them, `defers` are hidden from the model until a search
    finds them, except those in `at_once`.
    """

    server: str
    where: str
    allowed: ToolFilter = ANY_TOOL
    refused: tuple[str, ...] = ()
    defers: ToolFilter | None = None
    at_once: tuple[str, ...] = ()


def read_toolset(wire: WireTool, where: str) -> Toolset:
    """Decode an `mcp_toolset`; its `configs` override its `default_config` for single tools."""
    default, configs = wire.default_config or WireEnabled(), wire.configs or {}
    on, off = _split(default.enabled is not False, {name: one.enabled for name, one in configs.items()})
    late, early = _split(
        bool(default.defer_loading), {name: one.defer_loading for name, one in configs.items()}
    )
    some = ToolFilter(names=late) if late else None
    return Toolset(
        wire.mcp_server_name or "",
        where,
        allowed=ANY_TOOL if default.enabled is not False else ToolFilter(names=on),
        refused=off if default.enabled is not False else (),
        defers=ANY_TOOL if default.defer_loading else some,
        at_once=early if default.defer_loading else (),
    )


def _split(default: bool, said: dict[str, bool | None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names whose setting is true, and those whose setting is false; None means `default`."""
    holds = {name: default if word is None else word for name, word in said.items()}
    return tuple(name for name in holds if holds[name]), tuple(name for name in holds if not holds[name])


def read_mcp_servers(
    servers: list[WireMcpServer] | None, toolsets: tuple[Toolset, ...]
) -> tuple[RemoteMcpServer, ...]:
    """Decode the MCP servers of a request; raise `InvalidRequest` for a toolset without a server.

    The Messages API has no approval requests, so every tool is trusted.
    """
    if not servers and not toolsets:
        return ()
    by_name = {toolset.server: toolset for toolset in toolsets}
    names = {server.name for server in servers or ()}
    for toolset in toolsets:
        if toolset.server not in names:
            raise InvalidRequest(f"there is no MCP server {toolset.server!r}", where=toolset.where)
    found = (_read_mcp_server(server, by_name, f"mcp_servers[{n}]") for n, server in enumerate(servers or ()))
    return tuple(remote for remote in found if remote is not None)


def _read_mcp_server(
    server: WireMcpServer, toolsets: dict[str, Toolset], where: str
) -> RemoteMcpServer | None:
    """Decode one server; None if it is disabled.

    In the older form of the API, the server itself selects its tools with `tool_configuration`.
    """
    older = server.tool_configuration
    if older is not None and older.enabled is False:
        return None
    named = ToolFilter(names=tuple(older.allowed_tools)) if older and older.allowed_tools else ANY_TOOL
    toolset = toolsets.get(server.name) or Toolset(server.name, where, allowed=named)
    token = server.authorization_token
    return RemoteMcpServer(
        label=server.name,
        url=server.url,
        where=where,
        headers=(("Authorization", f"Bearer {token}"),) if token else (),
        allowed=toolset.allowed,
        excluded=toolset.refused,
        skip_approval=ANY_TOOL,
        deferred=toolset.defers,
        not_deferred=toolset.at_once,
    )


_DATE = re.compile(r"_\d{8}$")

#: Server tools of Anthropic that have an equivalent at Google -> kind of tool.
_SERVER_TOOLS: dict[str, ServerKind] = {
    "web_search": "web_search",
    "web_fetch": "web_fetch",
    "code_execution": "code_execution",
}


class ToolSet(msgspec.Struct, frozen=True):
    """All tools of a request.

    `deferred` are the names of tools that are hidden from the model until a message refers to them. `searches` are
    the server-side searches for them, if the client does not search itself. `hosted` are the names of all tools that
    the client does not run, including those without an equivalent here.
    """

    tools: tuple[Tool, ...] = ()
    deferred: frozenset[str] = frozenset()
    server_tools: tuple[ServerTool, ...] = ()
    searches: tuple[ServerTool, ...] = ()
    hosted: frozenset[str] = frozenset()
    notes: tuple[Note, ...] = ()
    toolsets: tuple[Toolset, ...] = ()

    def may_wait(self, name: str) -> bool:
        """Return whether a tool is deferred, or may be: the tools of MCP servers are known only by their prefix."""
        servers = (toolset.server for toolset in self.toolsets if toolset.defers is not None)
        return name in self.deferred or any(name.startswith(mcp_tool_name(server, "")) for server in servers)


#: Clients send the same tools with every turn.
_TOOL_SETS: LruCache[tuple[bytes, str], ToolSet] = LruCache(32 * 1024 * 1024, "anthropic tool sets")


def decode_tool_set(raw: bytes, where: str = "tools") -> ToolSet:
    """Decode a list of tools at the path `where`; raise `InvalidRequest` if it is invalid."""
    if not raw:
        return ToolSet()
    return _TOOL_SETS.get((raw, where), 3 * len(raw), lambda: _decode_tool_set(raw, where))


def extend(tool_set: ToolSet, definitions: tuple[bytes, ...]) -> ToolSet:
    """Return the tool set with the tools that messages define."""
    if not definitions:
        return tool_set
    more = decode_tool_set(b"[%b]" % b",".join(definitions), "tool_addition")
    return ToolSet(
        tool_set.tools + more.tools,
        tool_set.deferred | more.deferred,
        tool_set.server_tools + more.server_tools,
        tool_set.searches + more.searches,
        tool_set.hosted | more.hosted,
        tool_set.notes + more.notes,
        tool_set.toolsets + more.toolsets,
    )


def _decode_tool_set(raw: bytes, place: str) -> ToolSet:
    tools: list[Tool] = []
    deferred: set[str] = set()
    server_tools: list[ServerTool] = []
    searches: list[ServerTool] = []
    hosted: set[str] = set()
    toolsets: list[Toolset] = []
    notes: list[Note] = []
    for index, wire in enumerate(
        jsontext.decode(decode_tools, jsontext.validate_text(raw, place), place) or ()
    ):
        kind = wire.type or "custom"
        where = f"{place}[{index}]"
        family = _DATE.sub("", kind)
        tool = _decode_tool(wire, family, where)
        if tool is not None:
            tools.append(tool)
            if tool.deferred:
                deferred.add(tool.name)
            continue
        hosted.add(wire.name)
        if family in _SERVER_TOOLS:
            server_tools.append(_server_tool(wire, family, where))
        elif is_search(family):
            searches.append(read_search(wire, family, where))
        elif kind == TOOLSET:
            toolsets.append(read_toolset(wire, where))
        else:
            notes.append(Note("dropped", where, f"{kind} has no twin here"))
    if searches and not deferred and not any(toolset.defers for toolset in toolsets):
        why = "no tool is deferred: all can be seen"
        notes += [Note("dropped", search.where, why) for search in searches]
        searches = []
    return ToolSet(
        tuple(tools),
        frozenset(deferred),
        tuple(server_tools),
        tuple(searches),
        frozenset(hosted),
        tuple(notes),
        tuple(toolsets),
    )


def _decode_tool(wire: WireTool, family: str, where: str) -> Tool | None:
    if family == "custom":
        if not wire.name:
            raise InvalidRequest("a tool needs a name", where=where)
        schema = bytes(wire.input_schema) or b"{}"
        jsontext.decode(msgspec.json.decode, schema, f"{where}.input_schema")
        described = wire.description or ""
        deferred = bool(wire.defer_loading)
        return Tool(name=wire.name, description=described, schema=schema, where=where, deferred=deferred)
    known = _CLIENT_TOOLS.get(family)
    if known is None:
        return None
    description, schema = known
    return Tool(
        name=wire.name or family,
        description=description,
        schema=schema,
        where=where,
        deferred=bool(wire.defer_loading),
    )


def _server_tool(wire: WireTool, family: str, where: str) -> ServerTool:
    return ServerTool(
        kind=_SERVER_TOOLS[family],
        name=wire.name or family,
        where=where,
        max_uses=wire.max_uses,
        allowed_domains=tuple(wire.allowed_domains or ()),
        blocked_domains=tuple(wire.blocked_domains or ()),
        location=decode_location(wire.user_location),
    )


def reveal(
    tool_set: ToolSet, loaded: set[str], removed: frozenset[str]
) -> tuple[tuple[Tool, ...], tuple[Note, ...]]:
    """Return the tools to show to the model, and a note about the withheld ones (known problem F4).

    If the request has a server-side search, deferred tools are returned too: the search hides them later.
    """
    hidden = removed if tool_set.searches else (tool_set.deferred - loaded) | removed
    withheld = [tool.name for tool in tool_set.tools if tool.name in hidden] if hidden else []
    if not withheld:
        return tool_set.tools, ()
    why = f"{len(withheld)} tool(s) wait until the conversation loads them: {', '.join(withheld[:5])}"
    shown = tuple(tool for tool in tool_set.tools if tool.name not in hidden)
    return shown, (Note("withheld", "tools", why),)


def decode_tool_choice(wire: WireToolChoice | None, tool_set: ToolSet) -> ToolChoice:
    """Decode the choice for function tools; for a server tool, see `server_tools_of`."""
    if wire is None:
        return ToolChoice()
    parallel = not wire.disable_parallel_tool_use
    if wire.type == "tool":
        if wire.name and wire.name in tool_set.hosted:
            return ToolChoice(parallel=parallel)
        return ToolChoice(mode="any", names=(wire.name,), parallel=parallel)
    match wire.type:
        case "auto" | "any" | "none":
            return ToolChoice(mode=wire.type, parallel=parallel)
    raise InvalidRequest(f"{wire.type!r} is not one of auto, any, tool, none", where="tool_choice.type")


def server_tools_of(tool_set: ToolSet, wire: WireToolChoice | None) -> tuple[ServerTool, ...]:
    """Return the tools to run for the client; a chosen one is marked as `forced`.

    Searches stay even if the choice is `none`: without them, deferred tools would be shown to the model.
    """
    if wire is not None and wire.type == "none":
        return tool_set.searches
    every = tool_set.server_tools + tool_set.searches
    if wire is None or wire.type != "tool":
        return every
    return tuple(msgspec.structs.replace(tool, forced=tool.name == wire.name) for tool in every)


#: Tools that Anthropic defines and the client runs; requests name only their type. -> description, schema
_CLIENT_TOOLS: dict[str, tuple[str, bytes]] = {
    "bash": (
        "Run a command in a persistent bash session.",
        b'{"type":"object","properties":{"command":{"type":"string","description":"The command to run"},'
        b'"restart":{"type":"boolean","description":"Restart the session instead"}}}',
    ),
    "text_editor": (
        "View, create and edit text files.",
        b'{"type":"object","properties":{'
        b'"command":{"type":"string","enum":["view","create","str_replace","insert"]},'
        b'"path":{"type":"string","description":"Path of the file or directory"},'
        b'"file_text":{"type":"string","description":"For create: the content"},'
        b'"old_str":{"type":"string","description":"For str_replace: the text to replace, unique in the file"},'
        b'"new_str":{"type":"string","description":"For str_replace: the new text"},'
        b'"insert_line":{"type":"integer","description":"For insert: the line to insert after"},'
        b'"insert_text":{"type":"string","description":"For insert: the text"},'
        b'"view_range":{"type":"array","items":{"type":"integer"},"description":"For view: first and last line"}},'
        b'"required":["command","path"]}',
    ),
    "memory": (
        "Keep notes in files below /memories that last between conversations.",
        b'{"type":"object","properties":{'
        b'"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},'
        b'"path":{"type":"string"},"file_text":{"type":"string"},"old_str":{"type":"string"},'
        b'"new_str":{"type":"string"},"insert_line":{"type":"integer"},"insert_text":{"type":"string"},'
        b'"old_path":{"type":"string"},"new_path":{"type":"string"},'
        b'"view_range":{"type":"array","items":{"type":"integer"}}},"required":["command"]}',
    ),
}


_TYPES = {"auto": "auto", "validated": "auto", "any": "any", "none": "none"}


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Encode declarations. Anthropic requires `type` in every `input_schema`, also in an empty one."""
    return [
        {
            "name": tool.name,
            **({"description": tool.description} if tool.description else {}),
            "input_schema": {"type": "object", **msgspec.json.decode(tool.schema)},
        }
        for tool in tools
    ]


def encode_tool_choice(choice: ToolChoice) -> dict[str, Any]:
    """Encode a choice; raise `InvalidRequest` for a selection of tools, which Anthropic cannot express."""
    wire: dict[str, Any] = {"type": _TYPES[choice.mode]}
    if choice.names and choice.mode != "none":
        if len(choice.names) > 1 or choice.mode != "any":
            why = "Anthropic lets the model be told one tool, not a selection: declare only those"
            raise InvalidRequest(why, where="tool_choice")
        wire = {"type": "tool", "name": choice.names[0]}
    if not choice.parallel and choice.mode != "none":
        wire["disable_parallel_tool_use"] = True
    return wire


def encode_calls(calls: Sequence[ToolCall], text: str, *, signatures: bool) -> dict[str, Any]:
    """Encode calls as an assistant turn.

    Set `signatures` only if the API is this gateway: Anthropic rejects sealed signatures.
    """
    parts: tuple[Part, ...] = (Text(text=text), *calls) if text else tuple(calls)
    answer = Answer(id="", model="", with_thinking=signatures)
    return {"role": "assistant", "content": encode_blocks(parts, answer)}


def encode_results(results: Sequence[ToolResult]) -> dict[str, Any]:
    """Encode all results of a step as one user turn, as Anthropic requires."""
    return {"role": "user", "content": [_result(result) for result in results]}


def _result(result: ToolResult) -> dict[str, Any]:
    block: dict[str, Any] = {
        "type": "tool_result",
        "tool_use_id": result.call_id,
        "content": [_content(part) for part in result.content],
    }
    return {**block, "is_error": True} if result.is_error else block


def _content(part: Text | Media) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    source = {"type": "base64", "media_type": part.mime, "data": part.data}
    if not part.data:
        source = {"type": "url", "url": part.uri}
    return {"type": "image" if part.mime.startswith("image/") else "document", "source": source}
