"""The search functions of tool search: their declarations and their implementation.

A declaration lists the names of the deferred tools compactly: a model that knows what exists searches better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from dragoman.ir import SearchBy, ServerResult, Tool
from dragoman.translation.tool_search.bm25 import rank
from dragoman.translation.tool_search.index import bare_name, document_of
from dragoman.translation.tool_search.linear_regex import MAX_PATTERN_CHARS, LinearRegex, PatternError

_MAX_CHARS = 6_000


def list_names(names: Sequence[str]) -> str:
    """Return the names grouped by server or namespace; only the groups if the list would be too long."""
    groups: dict[str, list[str]] = {}
    for name in names:
        own = bare_name(name)
        groups.setdefault(name.removesuffix(own), []).append(own)
    whole = _lines(_group(prefix, ", ".join(members)) for prefix, members in groups.items())
    if len(whole) <= _MAX_CHARS:
        return whole
    return _cut(_lines(_group(prefix, f"{len(members)} functions") for prefix, members in groups.items()))


def _group(prefix: str, members: str) -> str:
    return f"{prefix}{{{members}}}" if prefix else members


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARS else text[:_MAX_CHARS].rpartition("\n")[0] + "\n- and more"


#: The limits of Anthropic's tool search.
MAX_FOUND: Final = 5
MAX_QUERY_CHARS: Final = 500

#: The most tools that a search by paths returns, for example a whole namespace.
MAX_GROUP: Final = 20

_HEAD = (
    "{count} more functions exist than are declared here. Whenever none of the declared ones does what is needed,"
    " search for one with this first: what is found is declared at once and can be called in your next step."
)


class SearchKind(msgspec.Struct, frozen=True):
    """One kind of search: the text that explains it, its parameters and its implementation."""

    instructions: str
    properties: dict[str, Any]
    required: tuple[str, ...]
    find: Callable[[dict[str, Any], Sequence[Tool]], list[Tool]]

    @property
    def schema(self) -> bytes:
        schema = {"type": "object", "properties": self.properties, "required": self.required}
        return msgspec.json.encode(schema)


class SearchRefused(Exception):
    """The search cannot be run: an error code of Anthropic's tool search, and a message for the model."""

    def __init__(self, code: str, why: str) -> None:
        super().__init__(why)
        self.code = code


def declare_search(name: str, by: SearchBy, tools: Iterable[Tool]) -> Tool:
    """Return the declaration of a search function.

    Its description lists all deferred tools, whether found or not, so that it stays the same for the prompt cache.
    """
    names = sorted(tool.name for tool in tools)
    style = _KINDS[by]
    description = "\n".join((_HEAD.format(count=len(names)), style.instructions, list_names(names)))
    return Tool(name=name, description=description, schema=style.schema)


def run_search(call_id: str, by: SearchBy, args: bytes, tools: Iterable[Tool]) -> ServerResult:
    """Run a call of a search function. An invalid search is returned as a result with an error."""
    known = sorted(tools, key=lambda tool: tool.name)
    try:
        found = _KINDS[by].find(_arguments(args), known)
    except SearchRefused as refused:
        return ServerResult(call_id=call_id, kind="tool_search", error=refused.code, output=str(refused))
    return ServerResult(call_id=call_id, kind="tool_search", tools=tuple(tool.name for tool in found))


def _arguments(args: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(args)
    except (msgspec.DecodeError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {}


def _text(args: dict[str, Any], name: str, max_chars: int) -> str:
    """Return a string argument; a single argument is accepted under any name, because models mix them up.

    Raise `SearchRefused` if it is missing or too long.
    """
    value = args.get(name, next(iter(args.values()), None) if len(args) == 1 else None)
    if not isinstance(value, str) or not value.strip():
        raise SearchRefused("invalid_tool_input", f"{name} is missing: it must be text")
    if len(value) > max_chars:
        raise SearchRefused("invalid_tool_input", f"{name} is longer than {max_chars} characters")
    return value


def _by_pattern(args: dict[str, Any], tools: Sequence[Tool]) -> list[Tool]:
    """Return matching tools: by name first, then by description, then by arguments."""
    source = _text(args, "pattern", MAX_PATTERN_CHARS)
    entries = [document_of(tool) for tool in tools]
    rows = (
        [(entry.name,) for entry in entries],
        [(entry.description,) for entry in entries],
        [entry.arguments for entry in entries],
    )
    found: dict[str, Tool] = {}
    try:
        pattern = LinearRegex(source)
        for row in rows:
            for tool, lines in zip(tools, row, strict=True):
                if len(found) == MAX_FOUND:
                    break
                if tool.name not in found and any(map(pattern.matches, lines)):
                    found[tool.name] = tool
    except PatternError as error:
        if error.late:
            raise SearchRefused("execution_time_exceeded", str(error)) from None
        raise SearchRefused("invalid_tool_input", f"Invalid regular expression pattern: {error}") from None
    return list(found.values())


def _by_words(args: dict[str, Any], tools: Sequence[Tool]) -> list[Tool]:
    return _best(_text(args, "query", MAX_QUERY_CHARS), tools)


def _by_paths(args: dict[str, Any], tools: Sequence[Tool]) -> list[Tool]:
    """Look up each path as the name of a tool, then as the name of a group, then as a query."""
    given = args.get("paths", [])
    paths = [path for path in (given if isinstance(given, list) else [given]) if isinstance(path, str)]
    if "query" in args or not paths:
        paths.append(_text({"query": args.get("query")}, "query", MAX_QUERY_CHARS))
    found = {tool.name: tool for path in paths for tool in _at_path(path.strip(), tools)}
    return list(found.values())[:MAX_GROUP]


def _at_path(path: str, tools: Sequence[Tool]) -> list[Tool]:
    named = [tool for tool in tools if path in (tool.name, bare_name(tool.name))]
    group = path.rstrip("./*") + "."
    return named or [tool for tool in tools if tool.name.startswith(group)] or _best(path, tools)


def _best(query: str, tools: Sequence[Tool]) -> list[Tool]:
    return [tools[place] for place in rank(query, [document_of(tool) for tool in tools], MAX_FOUND)]


_KINDS: dict[SearchBy, SearchKind] = {
    "pattern": SearchKind(
        instructions=(
            f"At most {MAX_FOUND} are found at a time, by their names, descriptions and arguments, ignoring case."
            " Patterns are Python's: `weather`, `get_.*_data`, `issue|ticket`."
        ),
        properties={"pattern": {"type": "string", "description": "A regular expression, as for re.search"}},
        required=("pattern",),
        find=_by_pattern,
    ),
    "words": SearchKind(
        instructions=f"At most {MAX_FOUND} are found at a time, by their names, descriptions and arguments.",
        properties={
            "query": {"type": "string", "description": "What the function should do, in a few words"}
        },
        required=("query",),
        find=_by_words,
    ),
    "paths": SearchKind(
        instructions=f"A group comes whole, up to {MAX_GROUP}; words find at most {MAX_FOUND} at a time.",
        properties={
            "paths": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Names of functions, or of groups of them (what stands before the dot)",
            },
            "query": {"type": "string", "description": "Or what the function should do, in a few words"},
        },
        required=(),
        find=_by_paths,
    ),
}
