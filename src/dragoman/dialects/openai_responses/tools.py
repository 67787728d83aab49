"""Decode `tools`: functions, custom tools, namespaces, tools that OpenAI defines, MCP servers."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.openai_responses.builtin import BUILT_IN, GRAMMAR_HINT, INPUT_SCHEMA, SEARCH
from dragoman.dialects.openai_responses.hosted import is_hosted, read_hosted
from dragoman.dialects.openai_responses.remote import read_remote, without_secrets
from dragoman.dialects.openai_responses.wire import WireTool, decode_tools
from dragoman.errors import InvalidRequest
from dragoman.ir import RemoteMcpServer, ServerTool, Text, Tool, mcp_tool_name
from dragoman.memo import LruCache
from dragoman.notes import Note


class ClientTool(msgspec.Struct, frozen=True):
    """A tool as the client knows it: the type of the item that calls it, its name and its namespace."""

    item: str = "function_call"
    name: str = ""
    namespace: str = ""


class ToolSet(msgspec.Struct, frozen=True, kw_only=True):
    """All tools of a request.

    `raw` is the JSON of the client's tools as the answer repeats it: compact, in the flat form of this API, without
    credentials. `sources` are all such lists, also those in input items. `faces` maps the function names that Gemini
    gets to the client's tools. `deferred` are the names of tools that are hidden from the model until they are loaded.
    `guides` are descriptions of namespaces, for the system prompt.
    """

    raw: bytes = b"[]"
    sources: tuple[bytes, ...] = ()
    tools: tuple[Tool, ...] = ()
    client_tools: dict[str, ClientTool] = {}
    deferred: frozenset[str] = frozenset()
    server_tools: tuple[ServerTool, ...] = ()
    remotes: tuple[RemoteMcpServer, ...] = ()
    searchable: bool = False  # the client itself searches for deferred tools
    searched: str = ""  # path of the tool that asks for a server-side search, or empty
    guides: tuple[Text, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def has_deferred(self) -> bool:
        return bool(self.deferred) or any(remote.deferred is not None for remote in self.remotes)

    def may_wait(self, name: str) -> bool:
        """Return whether a tool is deferred, or may be: the tools of MCP servers are known only by their prefix."""
        labels = (remote.label for remote in self.remotes if remote.deferred is not None)
        return name in self.deferred or any(name.startswith(mcp_tool_name(label, "")) for label in labels)


#: Clients send the same tools with every turn.
_TOOL_SETS: LruCache[tuple[bytes, str], ToolSet] = LruCache(32 * 1024 * 1024, "responses tool sets")


def flat_name(name: str, namespace: str | None) -> str:
    """Return the function name for Gemini. OpenAI's names contain no dots, so it is unambiguous."""
    return f"{namespace}.{name}" if namespace else name


def flatten(raw: bytes, where: str) -> bytes:
    """Return a tool, a choice or a list of them as the answer repeats it.

    The JSON is compact, the nested form of Chat becomes the flat form of this API, and credentials are removed.
    """
    value = jsontext.decode(msgspec.json.decode, raw, where)
    return msgspec.json.encode([_flat(item) for item in value] if isinstance(value, list) else _flat(value))


def _flat(value: Any) -> Any:
    if isinstance(value, dict) and value.get("type") == "mcp":
        return without_secrets(value)
    nested = value.get("function") or value.get("allowed_tools") if isinstance(value, dict) else None
    if not isinstance(nested, dict):
        return value
    return {**{key: item for key, item in value.items() if item is not nested}, **nested}


def decode_tool_set(raw: bytes, where: str = "tools") -> ToolSet:
    """Decode a list of tools; raise `InvalidRequest` if it is invalid."""
    if raw in (b"", b"null"):
        return ToolSet()
    return _TOOL_SETS.get((raw, where), 4 * len(raw), lambda: _Reader(where).read(raw))


def combine(first: ToolSet, more: ToolSet) -> ToolSet:
    """Return the tools of both sets; those of `first` win, because a search may find a tool again."""
    return ToolSet(
        raw=first.raw,
        sources=first.sources + more.sources,
        tools=first.tools + tuple(tool for tool in more.tools if tool.name not in first.client_tools),
        client_tools={**more.client_tools, **first.client_tools},
        deferred=first.deferred | more.deferred,
        server_tools=first.server_tools + more.server_tools,
        remotes=first.remotes + more.remotes,
        searchable=first.searchable or more.searchable,
        searched=first.searched or more.searched,
        guides=first.guides + tuple(guide for guide in more.guides if guide not in first.guides),
        notes=first.notes + more.notes,
    )


def reveal(tool_set: ToolSet, loaded: set[str]) -> tuple[tuple[Tool, ...], tuple[Note, ...]]:
    """Return the tools to show to the model, and a note about the withheld ones.

    Tools are withheld only if the client can search for them. If the request has a server-side search, deferred tools
    are returned too: the search hides them later.
    """
    if tool_set.searched and not tool_set.has_deferred:
        why = "tool_search has nothing to find: no tool is deferred"
        return tool_set.tools, (Note("dropped", tool_set.searched, why),)
    hidden = tool_set.deferred - loaded if tool_set.searchable else frozenset()
    withheld = [tool.name for tool in tool_set.tools if tool.name in hidden]
    if not withheld:
        return tool_set.tools, ()
    why = f"{len(withheld)} tool(s) wait until the conversation loads them: {', '.join(withheld[:5])}"
    shown = tuple(tool for tool in tool_set.tools if tool.name not in hidden)
    return shown, (Note("withheld", "tools", why),)


class _Reader:
    """Decode one list of tools at the path `place`."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._tools: list[Tool] = []
        self._faces: dict[str, ClientTool] = {}
        self._deferred: set[str] = set()
        self._guides: list[Text] = []
        self._notes: list[Note] = []
        self._server_tools: list[ServerTool] = []
        self._remotes: list[RemoteMcpServer] = []
        self._searchable = False
        self._searched = ""

    def read(self, raw: bytes) -> ToolSet:
        raw = jsontext.validate_text(raw, self._place)
        for index, wire in enumerate(jsontext.decode(decode_tools, raw, self._place) or ()):
            self._tool(wire, f"{self._place}[{index}]")
        flat = flatten(raw, self._place)
        return ToolSet(
            raw=flat,
            sources=(flat,),
            tools=tuple(self._tools),
            client_tools=self._faces,
            deferred=frozenset(self._deferred),
            server_tools=tuple(self._server_tools),
            remotes=tuple(self._remotes),
            searchable=self._searchable,
            searched=self._searched,
            guides=tuple(self._guides),
            notes=tuple(self._notes),
        )

    def _tool(self, wire: WireTool, where: str) -> None:
        kind = wire.type or "function"
        if kind in ("function", "custom"):
            self._named(wire, kind, "", where)
        elif kind == "namespace":
            self._namespace(wire, where)
        elif kind in BUILT_IN:
            self._built_in(wire, kind, where)
        elif is_hosted(kind):
            self._server_tools.append(read_hosted(wire, kind, where, self._notes))
        elif kind == "mcp":
            self._remotes.append(read_remote(wire, where))
        else:
            self._notes.append(Note("dropped", where, f"{kind} has no twin here"))

    def _named(self, wire: WireTool, kind: str, namespace: str, where: str) -> None:
        inner = wire.function or wire
        if not inner.name:
            raise InvalidRequest("a tool needs a name", where=where)
        if kind == "custom":
            schema, description = INPUT_SCHEMA, _with_grammar(inner)
        else:
            schema, description = _schema(inner, where), inner.description or ""
        item = "custom_tool_call" if kind == "custom" else "function_call"
        face = ClientTool(item, inner.name, namespace)
        name = flat_name(inner.name, namespace)
        deferred = bool(wire.defer_loading or inner.defer_loading)
        self._add(name, face, description, schema, where, deferred=deferred)
        if deferred:
            self._deferred.add(name)

    def _namespace(self, wire: WireTool, where: str) -> None:
        if not wire.name:
            raise InvalidRequest("a namespace needs a name", where=where)
        for index, nested in enumerate(wire.tools or ()):
            kind = nested.type or "function"
            place = f"{where}.tools[{index}]"
            if kind not in ("function", "custom"):
                raise InvalidRequest(f"{kind!r} cannot stand in a namespace", where=place)
            self._named(nested, kind, wire.name, place)
        if wire.description:
            words = f"The tools whose names begin with `{wire.name}.`: {wire.description}"
            self._guides.append(Text(text=words))

    def _built_in(self, wire: WireTool, kind: str, where: str) -> None:
        if kind == SEARCH and wire.execution != "client":
            self._searched = where
            return
        runs_there = wire.environment is not None and wire.environment.type.startswith("container")
        if runs_there:
            self._notes.append(Note("dropped", where, f"{kind} on OpenAI's side has no twin here"))
            return
        known = BUILT_IN[kind]
        schema = _schema(wire, where) if bytes(wire.parameters) else known.schema
        self._add(kind, ClientTool(known.item, kind), wire.description or known.description, schema, where)
        self._searchable = self._searchable or kind == SEARCH

    def _add(
        self,
        name: str,
        face: ClientTool,
        description: str,
        schema: bytes,
        where: str,
        *,
        deferred: bool = False,
    ) -> None:
        self._faces.setdefault(name, face)
        self._tools.append(
            Tool(name=name, description=description, schema=schema, where=where, deferred=deferred)
        )


def _schema(wire: WireTool, where: str) -> bytes:
    schema = bytes(wire.parameters)
    if schema in (b"", b"null"):
        return b"{}"
    jsontext.decode(msgspec.json.decode, schema, f"{where}.parameters")
    return schema


def _with_grammar(wire: WireTool) -> str:
    words = [wire.description or ""]
    if wire.format is not None and wire.format.definition:
        words.append(GRAMMAR_HINT.format(syntax=wire.format.syntax, definition=wire.format.definition))
    return "\n\n".join(filter(None, words))


def names_in(tool_set: ToolSet, namespace: str) -> tuple[str, ...]:
    return tuple(name for name, face in tool_set.client_tools.items() if face.namespace == namespace)


def find_name(tool_set: ToolSet, name: str, namespace: str | None) -> str:
    """Return the function name of a chosen tool; a name without namespace also matches inside namespaces."""
    flat = flat_name(name, namespace)
    if flat in tool_set.client_tools or namespace:
        return flat
    return next((known for known, face in tool_set.client_tools.items() if face.name == name), flat)
