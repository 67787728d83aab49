"""MCP servers from the user's settings: their tools become tools of ours, `mcp__SERVER__TOOL`."""

from dragoman.tools.mcp.servers import McpServers

__all__ = ["McpServers"]
