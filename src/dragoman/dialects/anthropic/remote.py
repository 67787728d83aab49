"""Decode `mcp_servers` and the `mcp_toolset` entries of `tools`, which select and configure the tools of a server."""

from __future__ import annotations

import msgspec

from dragoman.dialects.anthropic.wire import WireEnabled, WireMcpServer, WireTool
from dragoman.errors import InvalidRequest
from dragoman.ir import ANY_TOOL, RemoteMcpServer, ToolFilter

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
