"""Convert MCP tools to tool definitions, and MCP results to tool outputs."""

from __future__ import annotations

from typing import Any, assert_never

import mcp_types as mcp
import msgspec

from dragoman.config.tools import McpServer
from dragoman.ir import Media, Text, mcp_tool_name
from dragoman.tools.definition import Executor, ToolDefinition, ToolOutput
from dragoman.tools.errors import InvalidTool

_UNKNOWN_TYPE = "application/octet-stream"


def convert_tool(
    server: str, tool: mcp.Tool, execute: Executor, settings: McpServer
) -> ToolDefinition | None:
    """Return the definition under the tool's full name, or None if its name or schema is not usable.

    A tool with the `readOnlyHint` annotation has the risk `read`, any other tool `run`.
    """
    hints = tool.annotations
    try:
        return ToolDefinition(
            name=mcp_tool_name(server, tool.name),
            description=tool.description or tool.title or "",
            schema=msgspec.json.encode(tool.input_schema),
            execute=execute,
            timeout_s=settings.timeout_s,
            risk="read" if hints is not None and hints.read_only_hint else "run",
        )
    except InvalidTool:
        return None


def convert_result(result: mcp.CallToolResult) -> ToolOutput:
    """Convert a result without duplicates: structured content usually repeats the text content."""
    content = tuple(_convert_block(block) for block in result.content)
    structured = result.structured_content
    if structured is None:
        return ToolOutput(content=content, is_error=result.is_error)
    texts = [part.text for part in content if isinstance(part, Text)]
    repeated = all(_repeats(text, structured) for text in texts)
    if repeated and isinstance(structured, dict) and not result.is_error:
        return ToolOutput(content=content, response=msgspec.json.encode(structured))
    if not any(_repeats(text, structured) for text in texts):
        content = (*content, Text(text=msgspec.json.encode(structured).decode()))
    return ToolOutput(content=content, is_error=result.is_error)


def _convert_block(block: mcp.ContentBlock) -> Text | Media:
    match block:
        case mcp.TextContent():
            return Text(text=block.text)
        case mcp.ImageContent() | mcp.AudioContent():
            return Media(mime=block.mime_type, data=block.data)
        case mcp.ResourceLink():
            words = [f"[{block.title or block.name}]({block.uri})", block.mime_type, block.description]
            return Text(text=" ".join(word for word in words if word))
        case mcp.EmbeddedResource(resource=resource):
            if isinstance(resource, mcp.TextResourceContents):
                return Text(text=f"{resource.uri}:\n{resource.text}")
            return Media(mime=resource.mime_type or _UNKNOWN_TYPE, data=resource.blob)
        case _:
            assert_never(block)


def _repeats(text: str, structured: Any) -> bool:
    """Return whether a text repeats the structured content, literally or as JSON.

    The Python SDK for MCP wraps a value that is no object as `{"result": value}`.
    """
    values = [structured]
    if isinstance(structured, dict) and structured.keys() == {"result"}:
        values.append(structured["result"])
    try:
        return text in values or msgspec.json.decode(text) in values
    except msgspec.DecodeError:
        return False
