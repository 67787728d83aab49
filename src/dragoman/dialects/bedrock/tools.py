"""Decode `toolConfig`: tool specifications, tools that run on Amazon's servers, and the choice."""

from __future__ import annotations

from typing import Literal

import msgspec

from dragoman import jsontext
from dragoman.dialects.bedrock.wire import (
    OneOf,
    decode_named,
    decode_object,
    decode_tool_spec,
    decode_tools,
    member,
)
from dragoman.errors import InvalidRequest
from dragoman.ir import ServerKind, ServerTool, Tool, ToolChoice
from dragoman.memo import LruCache
from dragoman.notes import Note

#: Tools that run on Amazon's servers -> the kind of server tool that replaces them.
_SYSTEM_TOOLS: dict[str, ServerKind] = {
    "nova_grounding": "web_search",
    "nova_code_interpreter": "code_execution",
}


class ToolSet(msgspec.Struct, frozen=True):
    """All tools of a request; `hosted` names those that run on Amazon's servers, even if they are dropped."""

    tools: tuple[Tool, ...] = ()
    server_tools: tuple[ServerTool, ...] = ()
    hosted: frozenset[str] = frozenset()
    notes: tuple[Note, ...] = ()


#: Every turn of a conversation repeats the same tools.
_TOOL_SETS: LruCache[bytes, ToolSet] = LruCache(32 * 1024 * 1024, "bedrock tool sets")


def decode_tool_set(raw: bytes) -> ToolSet:
    if not raw:
        return ToolSet()
    return _TOOL_SETS.get(raw, 3 * len(raw), lambda: _decode_tool_set(raw))


def _decode_tool_set(raw: bytes) -> ToolSet:
    place = "toolConfig.tools"
    tools: list[Tool] = []
    server_tools: list[ServerTool] = []
    hosted: set[str] = set()
    notes: list[Note] = []
    for index, wire in enumerate(
        jsontext.decode(decode_tools, jsontext.validate_text(raw, place), place) or ()
    ):
        where = f"{place}[{index}]"
        kind, inner = member(wire, where)
        where = f"{where}.{kind}"
        if kind == "toolSpec":
            tools.append(_tool(inner, where))
        elif kind == "systemTool":
            name = jsontext.decode(decode_named, inner, where).name
            hosted.add(name)
            if name in _SYSTEM_TOOLS:
                server_tools.append(ServerTool(kind=_SYSTEM_TOOLS[name], name=name, where=where))
            else:
                notes.append(Note("dropped", where, f"{name} runs on Amazon's servers and has no twin here"))
        elif kind != "cachePoint":  # Gemini caches implicitly
            raise InvalidRequest(f"tools of kind {kind!r} are not understood", where=where)
    return ToolSet(tuple(tools), tuple(server_tools), frozenset(hosted), tuple(notes))


def _tool(raw: msgspec.Raw, where: str) -> Tool:
    spec = jsontext.decode(decode_tool_spec, raw, where)
    if not spec.name:
        raise InvalidRequest("a tool needs a name", where=where)
    schema = bytes(spec.input_schema.get("json", b"")) or b"{}"
    jsontext.decode(decode_object, schema, f"{where}.inputSchema.json")
    return Tool(name=spec.name, description=spec.description or "", schema=schema, where=where)


class AnthropicChoice(msgspec.Struct):
    """`tool_choice` of Anthropic's API in `additionalModelRequestFields`.

    Unlike Bedrock's own choice it has `none` and `disable_parallel_tool_use`.
    """

    type: Literal["auto", "any", "none", "tool"] | None = None
    name: str = ""
    disable_parallel_tool_use: bool | None = None


class Choice(msgspec.Struct, frozen=True):
    """The choice among the client's tools, and the server tools that remain available under it."""

    tools: ToolChoice
    server_tools: tuple[ServerTool, ...]


def decode_tool_choice(wire: OneOf | None, beside: AnthropicChoice, tool_set: ToolSet) -> Choice:
    """Decode the choice: `wire` is Bedrock's, which takes precedence over Anthropic's, `beside`."""
    parallel = not beside.disable_parallel_tool_use
    where = "toolConfig.toolChoice"
    kind, raw = member(wire, where) if wire else (beside.type or "auto", msgspec.Raw(b"{}"))
    match kind:
        case "auto" | "any":
            return Choice(ToolChoice(mode=kind, parallel=parallel), tool_set.server_tools)
        case "none":
            return Choice(ToolChoice(mode=kind, parallel=parallel), ())
        case "tool":
            name = jsontext.decode(decode_named, raw, f"{where}.tool").name if wire else beside.name
            return _one_tool(name, tool_set, parallel=parallel)
    raise InvalidRequest(f"{kind!r} is not one of auto, any, tool", where=where)


def _one_tool(name: str, tool_set: ToolSet, *, parallel: bool) -> Choice:
    forced = tuple(msgspec.structs.replace(tool, forced=tool.name == name) for tool in tool_set.server_tools)
    if name in tool_set.hosted:
        return Choice(ToolChoice(parallel=parallel), forced)
    return Choice(ToolChoice(mode="any", names=(name,), parallel=parallel), forced)
