"""Decode tool definitions and sort them: clients send them in a different order in every request.

The `encode` functions write tools, calls and results as a client of Amazon Q sends them, for `dragoman.tools.convert`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq.wire import (
    Specification,
    decode_schema,
    decode_tool_entries,
    decode_tool_entry,
)
from dragoman.errors import InvalidRequest
from dragoman.incremental.items import decode_items
from dragoman.incremental.lru import LruCache
from dragoman.ir import Media, Text, Tool, ToolCall, ToolChoice, ToolResult

_ABSENT = (b"", b"null")


class Entry(msgspec.Struct, frozen=True):
    """A decoded entry of the list; `tool` is None for a cache point."""

    tool: Tool | None


#: Every turn repeats the same tools in any order, so each entry is cached by itself.
_ENTRIES: LruCache[bytes, Entry] = LruCache(32 * 1024 * 1024, "amazonq tool sets")


def decode_tools(raw: bytes, where: str = "tools") -> tuple[Tool, ...]:
    """Return the tools sorted by name: with a changing order, Google's prefix cache would never match."""
    entries = jsontext.decode(decode_tool_entries, raw or b"null", where)
    read = decode_items(_ENTRIES, where, entries or (), _entry)
    tools = [entry.tool for entry in read if entry.tool is not None]
    return tuple(sorted(tools, key=lambda tool: tool.name))


def _entry(raw: bytes, where: str) -> Entry:
    wire = jsontext.decode(decode_tool_entry, raw, where)
    if wire.tool_specification is not None:
        return Entry(_tool(wire.tool_specification))
    if bytes(wire.cache_point) in _ABSENT:
        raise InvalidRequest("an entry is a toolSpecification or a cachePoint")
    return Entry(None)


def _tool(wire: Specification) -> Tool:
    where = ".toolSpecification"
    if not wire.name:
        raise InvalidRequest("a tool needs a name", where=f"{where}.name")
    schema = bytes(wire.input_schema.json) if wire.input_schema is not None else b""
    if schema in _ABSENT:
        schema = b"{}"
    try:
        jsontext.decode(decode_schema, schema, f"{where}.inputSchema.json")
    except InvalidRequest as error:
        error.code = "tool_schema"
        raise
    # Use the name as the place: with its index, the same tool would not be equal to itself in the next turn.
    place = f"tools.{wire.name}"
    return Tool(name=wire.name, description=wire.description or "", schema=schema, where=place)


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [
        {
            "toolSpecification": {
                "name": tool.name,
                "description": tool.description,
                "inputSchema": {"json": msgspec.Raw(tool.schema)},
            }
        }
        for tool in tools
    ]


def encode_tool_choice(choice: ToolChoice) -> None:
    """Raise `InvalidRequest` for any choice but the default: Amazon Q has no tool choice."""
    if choice.mode != "auto" or choice.names:
        raise InvalidRequest("Amazon Q leaves the choice of tools to the model", where="tool_choice")


def encode_calls(calls: Sequence[ToolCall], text: str) -> dict[str, Any]:
    """Encode one assistant message."""
    uses = [{"toolUseId": call.id, "name": call.name, "input": call.arguments} for call in calls]
    return {"assistantResponseMessage": {"content": text, "toolUses": uses}}


def encode_results(results: Sequence[ToolResult]) -> dict[str, Any]:
    """Encode all results of a step as one user message; JSON responses stay JSON."""
    context = {"userInputMessageContext": {"toolResults": [_result(result) for result in results]}}
    return {"userInputMessage": {"content": "", **context}}


def _result(result: ToolResult) -> dict[str, Any]:
    return {
        "toolUseId": result.call_id,
        "content": _content(result),
        "status": "error" if result.is_error else "success",
    }


def _content(result: ToolResult) -> list[dict[str, Any]]:
    """Encode the content of a result; raise `InvalidRequest` if it has files.

    Amazon Q has files only in the message's `images`, which do not say which result they belong to.
    """
    if any(isinstance(part, Media) for part in result.content):
        raise InvalidRequest("Amazon Q's tool results hold no files", where=result.name)
    text = "\n".join(part.text for part in result.content if isinstance(part, Text))
    if not result.response:
        return [{"text": text}]
    json = {"json": msgspec.json.decode(result.response)}
    return [{"text": text}, json] if text else [json]
