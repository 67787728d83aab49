"""Decode `tools`: functions, custom tools, namespaces, tools that OpenAI defines, server tools, MCP servers.

Tools that OpenAI defines and the client runs are only named by their type in a request, so their descriptions and
schemas are here. Credentials of MCP servers are removed before a tool is stored or repeated.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import decode_location
from dragoman.dialects.openai_responses.wire import (
    Approval,
    Filter,
    Filters,
    WireChoice,
    WireTool,
    decode_tools,
)
from dragoman.errors import InvalidRequest
from dragoman.incremental.lru import LruCache
from dragoman.ir import (
    ANY_TOOL,
    RemoteMcpServer,
    ServerKind,
    ServerTool,
    Text,
    Tool,
    ToolFilter,
    mcp_tool_name,
)
from dragoman.notes import Note

SEARCH: Final = "tool_search"


class BuiltIn(msgspec.Struct, frozen=True):
    item: str  # type of the output item that calls the tool
    description: str
    schema: bytes


#: The schema of custom tools, which take free text. Gemini has only functions, so the text is the one argument of a
#: function (known problem G1).
INPUT_SCHEMA: Final = (
    b'{"type":"object","properties":{"input":{"type":"string","description":'
    b'"The raw text for this tool, exactly as it should arrive: no JSON and no code fence around it."}},'
    b'"required":["input"]}'
)
GRAMMAR_HINT: Final = "The argument `input` must match this grammar ({syntax}):\n{definition}"

BUILT_IN: Final[dict[str, BuiltIn]] = {
    SEARCH: BuiltIn(
        "tool_search_call",
        "Search for further tools by what they do; the ones found can be called afterwards.",
        b'{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do"},'
        b'"limit":{"type":"integer","description":"How many tools to load at most"}},"required":["query"]}',
    ),
    "local_shell": BuiltIn(
        "local_shell_call",
        "Run one command on the user's machine and read its output.",
        b'{"type":"object","properties":{'
        b'"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments"},'
        b'"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"},'
        b'"env":{"type":"object","additionalProperties":{"type":"string"}}},"required":["command"]}',
    ),
    "shell": BuiltIn(
        "shell_call",
        "Run shell commands on the user's machine and read their output.",
        b'{"type":"object","properties":{'
        b'"commands":{"type":"array","items":{"type":"string"},"description":"Command lines, run one by one"},'
        b'"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer"}},"required":["commands"]}',
    ),
    "apply_patch": BuiltIn(
        "apply_patch_call",
        "Create, change or delete one file.",
        b'{"type":"object","properties":{'
        b'"type":{"type":"string","enum":["create_file","update_file","delete_file"]},'
        b'"path":{"type":"string","description":"Path of the file"},'
        b'"diff":{"type":"string","description":"The new content or the change, in V4A diff format; '
        b'not for delete_file"}},"required":["type","path"]}',
    ),
}


#: Prefix of a tool type -> kind of tool.
_KINDS: dict[str, ServerKind] = {"web_search": "web_search", "code_interpreter": "code_execution"}


def is_hosted(kind: str) -> bool:
    return kind.startswith(tuple(_KINDS))


def read_hosted(wire: WireTool, kind: str, where: str, notes: list[Note]) -> ServerTool:
    """Decode a tool of the type `kind`; add a note for each setting that Google does not have."""
    filters = wire.filters or Filters()
    dropped_fields = {
        "search_context_size": wire.search_context_size not in (None, "medium"),
        "external_web_access": wire.external_web_access is False,
        "container": b"file_ids" in bytes(wire.container),
    }
    notes += [
        Note("dropped", f"{where}.{field}", _DROP_REASONS[field])
        for field, given in dropped_fields.items()
        if given
    ]
    return ServerTool(
        kind=_kind(kind),
        name=kind,
        where=where,
        allowed_domains=tuple(filters.allowed_domains or ()),
        blocked_domains=tuple(filters.blocked_domains or ()),
        location=decode_location(wire.user_location),
    )


_DROP_REASONS = {
    "search_context_size": "Google decides by itself how much it reads",
    "external_web_access": "Google Search has no offline mode; its index is searched",
    "container": "Google's sandbox takes no files of OpenAI's",
}


def force_chosen(tools: tuple[ServerTool, ...], choice: str | WireChoice | None) -> tuple[ServerTool, ...]:
    """Return the tools that the choice allows; a chosen one is marked as `forced`."""
    if choice == "none":
        return ()
    if not isinstance(choice, WireChoice):
        return tools
    if choice.type == "allowed_tools":
        allowed = {
            _kind(tool.type) for tool in (choice.allowed_tools or choice).tools or () if is_hosted(tool.type)
        }
        return tuple(tool for tool in tools if tool.kind in allowed)
    chosen = _kind(choice.type) if is_hosted(choice.type) else None
    return tuple(msgspec.structs.replace(tool, forced=tool.kind == chosen) for tool in tools)


def _kind(word: str) -> ServerKind:
    return next(kind for start, kind in _KINDS.items() if word.startswith(start))


#: Prefix of the ids of approval requests.
APPROVAL = "mcpr_"

_REDACTED = "<redacted>"


def read_remote(wire: WireTool, where: str) -> RemoteMcpServer:
    """Decode an MCP server; raise `InvalidRequest` for OpenAI's connectors and tunnels."""
    if not wire.server_label:
        raise InvalidRequest("an MCP server needs a server_label", where=where)
    if wire.connector_id or wire.tunnel_id:
        raise InvalidRequest("connectors and tunnels are OpenAI's own: use a server_url", where=where)
    headers = dict(wire.headers or {})
    if wire.authorization:
        headers["Authorization"] = f"Bearer {wire.authorization}"
    asks, trusts = _approval(wire.require_approval, f"{where}.require_approval")
    return RemoteMcpServer(
        label=wire.server_label,
        url=wire.server_url or "",
        where=where,
        headers=tuple(headers.items()),
        allowed=_filter(wire.allowed_tools) or ANY_TOOL,
        ask_approval=asks,
        skip_approval=trusts,
        deferred=ANY_TOOL if wire.defer_loading else None,
    )


def _approval(wire: str | Approval | None, where: str) -> tuple[ToolFilter | None, ToolFilter | None]:
    """Return the tools that need approval and those that do not; by default, all need it."""
    match wire:
        case None | "always":
            return ANY_TOOL, None
        case "never":
            return None, ANY_TOOL
        case Approval():
            return _filter(wire.always), _filter(wire.never)
    raise InvalidRequest(f"{wire!r} is not one of always, never", where=where)


def _filter(wire: list[str] | Filter | None) -> ToolFilter | None:
    if wire is None:
        return None
    if isinstance(wire, list):
        return ToolFilter(names=tuple(wire))
    names = None if wire.tool_names is None else tuple(wire.tool_names)
    return ToolFilter(names=names, read_only=bool(wire.read_only))


def bare_id(identity: str | None) -> str:
    """Return the call id in the id of an approval request."""
    return (identity or "").removeprefix(APPROVAL)


def without_credentials(tool: Any) -> Any:
    """Return a tool definition as it may be stored with a session: without credentials."""
    if not isinstance(tool, dict) or tool.get("type") != "mcp":
        return tool
    return {name: value for name, value in tool.items() if name not in ("authorization", "headers")}


def without_secrets(tool: dict[str, Any]) -> dict[str, Any]:
    """Return a tool definition as the answer repeats it: without `authorization`, with redacted headers."""
    shown = {name: value for name, value in tool.items() if name != "authorization"}
    if isinstance(shown.get("headers"), dict):
        shown["headers"] = dict.fromkeys(shown["headers"], _REDACTED)
    return shown


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
