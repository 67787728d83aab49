"""Decode `tools` and `tool_choice`, and the deprecated `functions` and `function_call`.

The `encode` functions write tools, tool choice, calls and results for a program that itself calls a Chat API.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import decode_location
from dragoman.dialects.openai_chat import custom_tools
from dragoman.dialects.openai_chat.encode import Echo, encode_call
from dragoman.dialects.openai_chat.wire import (
    AllowedTools,
    CustomFormat,
    Named,
    NamedTool,
    SearchOptions,
    WireCustom,
    WireFunction,
    WireTool,
    WireToolChoice,
    decode_schema,
    decode_tools,
)
from dragoman.errors import InvalidRequest
from dragoman.incremental.lru import LruCache
from dragoman.ir import Media, ServerTool, Text, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.notes import Note

Mode = Literal["auto", "any", "none", "validated"]

#: Copilot sends `validated` for Gemini models; `any` is the name of `required` in other APIs.
_MODES: dict[str, Mode] = {
    "none": "none",
    "auto": "auto",
    "required": "any",
    "any": "any",
    "validated": "validated",
}


class ToolSet(msgspec.Struct, frozen=True):
    """All tools of a request; `custom` are the names of custom tools, which take plain text instead of JSON."""

    tools: tuple[Tool, ...] = ()
    custom: frozenset[str] = frozenset()
    server_tools: tuple[ServerTool, ...] = ()
    notes: tuple[Note, ...] = ()


#: Clients send the same tools with every turn.
_TOOL_SETS: LruCache[tuple[bytes, str], ToolSet] = LruCache(32 * 1024 * 1024, "chat tool sets")


def decode_tool_set(raw: bytes, place: str) -> ToolSet:
    """Decode the list of tools in the field `place`; raise `InvalidRequest` if it is invalid."""
    if not raw:
        return ToolSet()
    return _TOOL_SETS.get((raw, place), 3 * len(raw), lambda: _decode_tool_set(raw, place))


def _decode_tool_set(raw: bytes, place: str) -> ToolSet:
    tools: list[Tool] = []
    freeform: set[str] = set()
    notes: list[Note] = []
    server_tools: list[ServerTool] = []
    for index, wire in enumerate(
        jsontext.decode(decode_tools, jsontext.validate_text(raw, place), place) or ()
    ):
        kind = wire.type or "function"
        where = f"{place}[{index}]"
        if kind == "function":
            tools.append(_function(wire, where))
        elif kind == "custom":
            tools.append(_custom(wire, where, notes))
            freeform.add(tools[-1].name)
        elif kind.startswith("web_search"):
            server_tools.append(ServerTool(kind="web_search", name=kind, where=where))
        else:
            why = f"tools of type {kind!r} run on OpenAI's servers and have no twin here"
            raise InvalidRequest(why, where=where)
    return ToolSet(tuple(tools), frozenset(freeform), tuple(server_tools), tuple(notes))


def _function(wire: WireTool, where: str) -> Tool:
    definition: WireFunction = wire
    if wire.function is not None:
        definition, where = wire.function, f"{where}.function"
    if not definition.name:
        raise InvalidRequest("a function needs a name", where=where)
    schema = bytes(definition.parameters)
    if schema in (b"", b"null"):
        schema = b"{}"
    jsontext.decode(decode_schema, schema, f"{where}.parameters")
    return Tool(name=definition.name, description=definition.description or "", schema=schema, where=where)


def _custom(wire: WireTool, where: str, notes: list[Note]) -> Tool:
    definition = wire.custom or WireCustom(name=wire.name, description=wire.description)
    where = f"{where}.custom"
    if not definition.name:
        raise InvalidRequest("a custom tool needs a name", where=where)
    grammar = (definition.format or CustomFormat()).grammar
    if grammar is not None:
        why = "Gemini enforces no grammar; it is told of it in the description"
        notes.append(Note("moved", f"{where}.format.grammar", why))
    description = custom_tools.describe(definition.description or "", grammar)
    return Tool(name=definition.name, description=description, schema=custom_tools.INPUT_SCHEMA, where=where)


def decode_search(options: SearchOptions | None) -> tuple[ServerTool, ...]:
    """Decode `web_search_options`, which asks for a web search."""
    if options is None:
        return ()
    location = decode_location(options.user_location.approximate) if options.user_location else None
    return (ServerTool(kind="web_search", where="web_search_options", location=location),)


def decode_tool_choice(choice: str | WireToolChoice | None, *, parallel: bool) -> ToolChoice:
    """Decode a choice; raise `InvalidRequest` if it is not understood."""
    if choice is None:
        return ToolChoice(parallel=parallel)
    if isinstance(choice, str):
        return ToolChoice(mode=_mode(choice, "tool_choice"), parallel=parallel)
    if choice.type == "allowed_tools":
        allowed = choice.allowed_tools or AllowedTools()
        mode = _mode(allowed.mode, "tool_choice.allowed_tools.mode")
        names = tuple(
            _name(tool, f"tool_choice.allowed_tools.tools[{i}]") for i, tool in enumerate(allowed.tools)
        )
        if not names:
            raise InvalidRequest("at least one tool must be allowed", where="tool_choice.allowed_tools.tools")
        return ToolChoice(mode=mode, names=names, parallel=parallel)
    if choice.type in ("function", "custom"):
        return ToolChoice(mode="any", names=(_name(choice, "tool_choice"),), parallel=parallel)
    raise InvalidRequest(
        f"{choice.type!r} is not one of function, custom, allowed_tools", where="tool_choice.type"
    )


def decode_legacy_choice(choice: str | Named | None) -> ToolChoice:
    """Decode the deprecated `function_call`, with which an answer can have only one call."""
    if isinstance(choice, Named):
        return ToolChoice(mode="any", names=(choice.name,), parallel=False)
    return ToolChoice(mode=_mode(choice or "auto", "function_call"), parallel=False)


def _mode(word: str, where: str) -> Mode:
    mode = _MODES.get(word)
    if mode is None:
        raise InvalidRequest(f"{word!r} is not one of {', '.join(_MODES)}", where=where)
    return mode


def _name(tool: NamedTool, where: str) -> str:
    name = (tool.function or tool.custom or tool).name
    if not name:
        raise InvalidRequest("a tool is chosen by its name", where=where)
    return name


_CHOICES = {"auto": "auto", "validated": "auto", "any": "required", "none": "none"}
_NO_ECHO = Echo()


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    return [{"type": "function", "function": _encode_function(tool)} for tool in tools]


def encode_tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    word = _CHOICES[choice.mode]
    if not choice.names or choice.mode == "none":
        return word
    named = [{"type": "function", "function": {"name": name}} for name in choice.names]
    if choice.mode == "any" and len(named) == 1:
        return named[0]
    return {"type": "allowed_tools", "allowed_tools": {"mode": word, "tools": named}}


def encode_calls(calls: Sequence[ToolCall], text: str) -> dict[str, Any]:
    wires = [encode_call(call, _NO_ECHO) for call in calls]
    return {"role": "assistant", "content": text or None, "tool_calls": wires}


def encode_result(result: ToolResult) -> dict[str, Any]:
    """Encode a result; as a string if it is only text, because older services accept nothing else.

    The API has no error flag, so the text of an error must say that it is one.
    """
    content: str | list[dict[str, Any]] = [_content(part) for part in result.content]
    if not any(isinstance(part, Media) for part in result.content):
        content = "\n".join(part.text for part in result.content if isinstance(part, Text))
    return {"role": "tool", "tool_call_id": result.call_id, "content": content}


def _encode_function(tool: Tool) -> dict[str, Any]:
    described = {"description": tool.description} if tool.description else {}
    return {"name": tool.name, **described, "parameters": msgspec.Raw(tool.schema)}


def _content(part: Text | Media) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text}
    url = f"data:{part.mime};base64,{part.data}" if part.data else part.uri
    if part.mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "file", "file": {"file_data": url}}
