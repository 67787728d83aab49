"""An MCP server that a client asks the gateway to use (Anthropic's MCP connector, OpenAI's `mcp` tool).

Whether a client may do so is decided by the gateway's configuration, not here.
"""

from __future__ import annotations

import msgspec


class ToolFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Matches tools by name (`names=None` matches any) and, with `read_only`, those marked as read-only."""

    names: tuple[str, ...] | None = None
    read_only: bool = False

    def matches(self, tool: str, *, reads: bool) -> bool:
        return (self.names is None or tool in self.names) and (reads or not self.read_only)


ANY_TOOL = ToolFilter()


class RemoteMcpServer(msgspec.Struct, frozen=True, kw_only=True):
    """One requested MCP server.

    `headers` are sent to this server only and hold secrets. `asks` are the tools that need the user's approval,
    `trusts` those that do not. `listed` means that the client already has the list of the server's tools. `defers`
    are the tools that are declared only after a tool search found them, except those in `at_once`.
    """

    label: str
    url: str = ""
    where: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    allowed: ToolFilter = ANY_TOOL
    excluded: tuple[str, ...] = ()
    ask_approval: ToolFilter | None = None
    skip_approval: ToolFilter | None = None
    listed: bool = False
    deferred: ToolFilter | None = None
    not_deferred: tuple[str, ...] = ()

    def allows(self, tool: str, *, reads: bool) -> bool:
        return self.allowed.matches(tool, reads=reads) and tool not in self.excluded

    def is_deferred(self, tool: str, *, reads: bool) -> bool:
        """Whether the tool is deferred."""
        return (
            self.deferred is not None
            and self.deferred.matches(tool, reads=reads)
            and tool not in self.not_deferred
        )

    def needs_approval(self, tool: str, *, reads: bool) -> bool:
        """Whether the user must approve the call; a tool in neither list needs approval only if `asks` is None."""
        if self.skip_approval is not None and self.skip_approval.matches(tool, reads=reads):
            return False
        return self.ask_approval is None or self.ask_approval.matches(tool, reads=reads)


def mcp_tool_name(label: str, tool: str) -> str:
    """Return the function name of an MCP server's tool; in a tool choice, `*` as tool means any of the server's."""
    return f"mcp__{label}__{tool}"
