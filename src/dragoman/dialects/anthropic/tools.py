"""Tool definitions: client tools, Anthropic's own tools, deferred ones."""

from __future__ import annotations

import re

import msgspec

from dragoman import jsontext
from dragoman.dialects.anthropic.wire import WireTool, WireToolChoice, decode_tools
from dragoman.errors import InvalidRequest
from dragoman.ir import Tool, ToolChoice
from dragoman.memo import Memo
from dragoman.notes import Note


class ToolSet(msgspec.Struct, frozen=True):
    """All tools of a request; the deferred ones wait until the conversation refers to them."""

    tools: tuple[Tool, ...] = ()
    deferred: frozenset[str] = frozenset()
    web_search: bool = False
    server_tools: frozenset[str] = frozenset()
    notes: tuple[Note, ...] = ()


#: The same tools come with every turn.
_TOOL_SETS: Memo[tuple[bytes, str], ToolSet] = Memo(max_bytes=32 * 1024 * 1024)


def decode_tool_set(raw: bytes, where: str = "tools") -> ToolSet:
    if not raw:
        return ToolSet()
    return _TOOL_SETS.get((raw, where), 3 * len(raw), lambda: _decode_tool_set(raw, where))


def extend(tool_set: ToolSet, definitions: list[bytes]) -> ToolSet:
    """The same with the tools that the conversation itself defined."""
    if not definitions:
        return tool_set
    more = decode_tool_set(b"[%b]" % b",".join(definitions), "tool_addition")
    return ToolSet(
        tool_set.tools + more.tools,
        tool_set.deferred | more.deferred,
        tool_set.web_search or more.web_search,
        tool_set.server_tools | more.server_tools,
        tool_set.notes + more.notes,
    )


def _decode_tool_set(raw: bytes, place: str) -> ToolSet:
    tools: list[Tool] = []
    deferred: set[str] = set()
    server: set[str] = set()
    notes: list[Note] = []
    web_search = searches_itself = False
    for index, wire in enumerate(jsontext.decode(decode_tools, jsontext.checked(raw, place), place) or ()):
        kind = wire.type or "custom"
        where = f"{place}[{index}]"
        tool = _decode_tool(wire, kind, where)
        if tool is not None:
            tools.append(tool)
            if wire.defer_loading:
                deferred.add(tool.name)
            continue
        server.add(wire.name)
        if kind.startswith("web_search"):
            web_search = True
        elif kind.startswith("tool_search"):
            searches_itself = True
        else:
            notes.append(Note("dropped", where, f"{kind} has no twin here"))
    if searches_itself:  # nobody on the client's side could reveal them
        deferred.clear()
    return ToolSet(tuple(tools), frozenset(deferred), web_search, frozenset(server), tuple(notes))


def _decode_tool(wire: WireTool, kind: str, where: str) -> Tool | None:
    if kind == "custom":
        if not wire.name:
            raise InvalidRequest("a tool needs a name", where=where)
        schema = bytes(wire.input_schema) or b"{}"
        jsontext.decode(msgspec.json.decode, schema, f"{where}.input_schema")
        return Tool(name=wire.name, description=wire.description or "", schema=schema, where=where)
    family = re.sub(r"_\d{8}$", "", kind)
    known = _CLIENT_TOOLS.get(family)
    if known is None:
        return None
    description, schema = known
    return Tool(name=wire.name or family, description=description, schema=schema, where=where)


def reveal(
    tool_set: ToolSet, loaded: set[str], removed: set[str]
) -> tuple[tuple[Tool, ...], tuple[Note, ...]]:
    """The tools the model may see now; the withheld ones in one note (pain F4)."""
    hidden = (tool_set.deferred - loaded) | removed
    withheld = [tool.name for tool in tool_set.tools if tool.name in hidden]
    if not withheld:
        return tool_set.tools, ()
    why = f"{len(withheld)} tool(s) wait until the conversation loads them: {', '.join(withheld[:5])}"
    shown = tuple(tool for tool in tool_set.tools if tool.name not in hidden)
    return shown, (Note("withheld", "tools", why),)


def decode_tool_choice(wire: WireToolChoice | None, tool_set: ToolSet) -> ToolChoice:
    if wire is None:
        return ToolChoice()
    parallel = not wire.disable_parallel_tool_use
    if wire.type == "tool":
        if wire.name and wire.name in tool_set.server_tools:  # forcing a server tool: it is always used
            return ToolChoice(parallel=parallel)
        return ToolChoice(mode="any", names=(wire.name,), parallel=parallel)
    match wire.type:
        case "auto" | "any" | "none":
            return ToolChoice(mode=wire.type, parallel=parallel)
    raise InvalidRequest(f"{wire.type!r} is not one of auto, any, tool, none", where="tool_choice.type")


#: Tools Anthropic defines and the client runs: the schema is implied by the type.
_CLIENT_TOOLS: dict[str, tuple[str, bytes]] = {
    "bash": (
        "Run a command in a persistent bash session.",
        b'{"type":"object","properties":{"command":{"type":"string","description":"The command to run"},'
        b'"restart":{"type":"boolean","description":"Restart the session instead"}}}',
    ),
    "text_editor": (
        "View, create and edit text files.",
        b'{"type":"object","properties":{'
        b'"command":{"type":"string","enum":["view","create","str_replace","insert"]},'
        b'"path":{"type":"string","description":"Path of the file or directory"},'
        b'"file_text":{"type":"string","description":"For create: the content"},'
        b'"old_str":{"type":"string","description":"For str_replace: the text to replace, unique in the file"},'
        b'"new_str":{"type":"string","description":"For str_replace: the new text"},'
        b'"insert_line":{"type":"integer","description":"For insert: the line to insert after"},'
        b'"insert_text":{"type":"string","description":"For insert: the text"},'
        b'"view_range":{"type":"array","items":{"type":"integer"},"description":"For view: first and last line"}},'
        b'"required":["command","path"]}',
    ),
    "memory": (
        "Keep notes in files below /memories that last between conversations.",
        b'{"type":"object","properties":{'
        b'"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},'
        b'"path":{"type":"string"},"file_text":{"type":"string"},"old_str":{"type":"string"},'
        b'"new_str":{"type":"string"},"insert_line":{"type":"integer"},"insert_text":{"type":"string"},'
        b'"old_path":{"type":"string"},"new_path":{"type":"string"},'
        b'"view_range":{"type":"array","items":{"type":"integer"}}},"required":["command"]}',
    ),
}
