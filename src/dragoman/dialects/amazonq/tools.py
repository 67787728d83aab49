"""Decode tool definitions and sort them: clients send them in a different order in every request."""

from __future__ import annotations

import msgspec

from dragoman import jsontext
from dragoman.dialects.amazonq.wire import (
    Specification,
    decode_schema,
    decode_tool_entries,
    decode_tool_entry,
)
from dragoman.dialects.history import decode_items
from dragoman.errors import InvalidRequest
from dragoman.ir import Tool
from dragoman.memo import LruCache

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
