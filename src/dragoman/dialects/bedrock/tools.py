"""Decode `toolConfig`: tool specifications, tools that run on Amazon's servers, and the choice.

The `encode` functions write tools, tool choice, calls and results as a client of Converse sends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Answer
from dragoman.dialects.bedrock.blocks import MIMES
from dragoman.dialects.bedrock.encode import encode_blocks
from dragoman.dialects.bedrock.wire import (
    OneOf,
    decode_named,
    decode_object,
    decode_tool_spec,
    decode_tools,
    member,
)
from dragoman.errors import InvalidRequest
from dragoman.incremental.lru import LruCache
from dragoman.ir import Media, Part, ServerKind, ServerTool, Text, Tool, ToolCall, ToolChoice, ToolResult
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


_CHOICES = {"auto": "auto", "validated": "auto", "any": "any"}
#: Media type -> kind of block and Bedrock's format; if several formats match, the first one in `MIMES`.
_FORMATS = {
    mime: (kind, name)
    for kind in ("video", "document", "image")
    for name, mime in reversed(MIMES[kind].items())
}


def encode_tools(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Encode tools as `toolSpec`s; Bedrock requires `type` in every schema."""
    return [
        {
            "toolSpec": {
                "name": tool.name,
                **({"description": tool.description} if tool.description else {}),
                "inputSchema": {"json": {"type": "object", **msgspec.json.decode(tool.schema)}},
            }
        }
        for tool in tools
    ]


def encode_tool_choice(choice: ToolChoice) -> dict[str, Any]:
    """Encode a choice; raise `InvalidRequest` for one that Converse cannot express."""
    word = _CHOICES.get(choice.mode)
    if word is None or not choice.parallel:
        why = "Converse can ask for some tool or one tool, not for none or one at a time"
        raise InvalidRequest(why, where="tool_choice")
    if not choice.names:
        return {word: {}}
    if len(choice.names) > 1 or word != "any":
        why = "Converse lets the model be told one tool, not a selection: declare only those"
        raise InvalidRequest(why, where="tool_choice")
    return {"tool": {"name": choice.names[0]}}


def encode_calls(calls: Sequence[ToolCall], text: str, *, signatures: bool) -> dict[str, Any]:
    """Encode one assistant message; `signatures` adds sealed signatures, which Bedrock itself rejects."""
    parts: tuple[Part, ...] = (Text(text=text), *calls) if text else tuple(calls)
    answer = Answer(id="", model="", with_thinking=signatures)
    return {"role": "assistant", "content": encode_blocks(parts, answer)}


def encode_results(results: Sequence[ToolResult]) -> dict[str, Any]:
    """Encode all results of a step as one user message."""
    return {"role": "user", "content": [{"toolResult": _result(result)} for result in results]}


def _result(result: ToolResult) -> dict[str, Any]:
    content = [_content(part, index + 1) for index, part in enumerate(result.content)]
    if result.response:
        content.insert(0, {"json": msgspec.json.decode(result.response)})
    block: dict[str, Any] = {"toolUseId": result.call_id, "content": content}
    return {**block, "status": "error"} if result.is_error else block


def _content(part: Text | Media, number: int) -> dict[str, Any]:
    if isinstance(part, Text):
        return {"text": part.text}
    found = _FORMATS.get(part.mime)
    if found is None or not part.data:
        what = part.mime if part.data else "files by address"
        raise InvalidRequest(f"Bedrock's tool results hold no {what}", where="results")
    kind, name = found
    named = {"name": f"file-{number}"} if kind == "document" else {}
    return {kind: {**named, "format": name, "source": {"bytes": part.data}}}
