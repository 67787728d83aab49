"""An MCP server that a client wants the service to use; whether it may is not for the client to say."""

from __future__ import annotations

import msgspec


class ToolFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Tools by their names (none given: any), or those that only read."""

    names: tuple[str, ...] | None = None
    read_only: bool = False

    def takes(self, tool: str, *, reads: bool) -> bool:
        return (self.names is None or tool in self.names) and (reads or not self.read_only)


ANY_TOOL = ToolFilter()


class RemoteServer(msgspec.Struct, frozen=True, kw_only=True):
    """`headers` are secrets for this server alone. `asks` are tools for which the user is asked first, `trusts` those
    for which he is not; `listed` means that the client has seen the server's tools. `defers` are tools that need not be
    shown to the model before it has found them, but for those `at_once`."""

    label: str
    url: str = ""
    where: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    allowed: ToolFilter = ANY_TOOL
    refused: tuple[str, ...] = ()
    asks: ToolFilter | None = None
    trusts: ToolFilter | None = None
    listed: bool = False
    defers: ToolFilter | None = None
    at_once: tuple[str, ...] = ()

    def offers(self, tool: str, *, reads: bool) -> bool:
        return self.allowed.takes(tool, reads=reads) and tool not in self.refused

    def waits(self, tool: str, *, reads: bool) -> bool:
        return self.defers is not None and self.defers.takes(tool, reads=reads) and tool not in self.at_once

    def needs_approval(self, tool: str, *, reads: bool) -> bool:
        """What is not spoken of is asked for, unless it was said what is."""
        if self.trusts is not None and self.trusts.takes(tool, reads=reads):
            return False
        return self.asks is None or self.asks.takes(tool, reads=reads)


def remote_name(label: str, tool: str) -> str:
    """How a tool of an MCP server is called by the model; as a choice, `*` is any of them."""
    return f"mcp__{label}__{tool}"
