"""MCP servers from the user's settings, as a client; their tools get the name `mcp__SERVER__TOOL`."""

from dragoman.tools.mcp.servers import McpServers

__all__ = ["McpServers"]
