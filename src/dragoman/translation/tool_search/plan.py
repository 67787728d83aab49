"""Decide which tools of a request are deferred, which search functions the model gets, and which deferred tools must be
declared because they were found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from dragoman.incremental.lru import LruCache
from dragoman.ir import Request, SearchBy, ServerResult, ServerTool, Tool, ToolCall, ToolChoice
from dragoman.notes import Note
from dragoman.translation.repair import HiddenPlaces, known_tools
from dragoman.translation.tool_search.search import declare_search, run_search


class DeferredTools:
    """`tools` are the deferred tools; `found` names those that the client's request marks as found."""

    def __init__(self, tools: Iterable[Tool] = (), found: Iterable[str] = ()) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._found = tuple(found)

    def not_deferred(self, tools: Iterable[Tool]) -> tuple[Tool, ...]:
        """Return those of these tools that are not deferred."""
        return tuple(tool for tool in tools if tool.name not in self._tools)

    def known_tools(self, request: Request, places: HiddenPlaces, records: Mapping[str, str]) -> list[Tool]:
        """Return the deferred tools that the conversation has found or called, and those that the model must call now.

        The order is stable and new tools are appended, so that Google's prompt cache still matches the beginning.
        """
        if not self._tools:
            return []
        conversation = known_tools(request.messages, places, records)
        return self.with_names((*self._found, *conversation, *request.tool_choice.names))

    def with_names(self, names: Iterable[str]) -> list[Tool]:
        """Return the deferred tools with these names."""
        return [self._tools[name] for name in names if name in self._tools]

    def names(self, tools: Iterable[Tool]) -> tuple[str, ...]:
        """Return the names of those of these tools that are deferred."""
        return tuple(tool.name for tool in tools if tool.name in self._tools)

    def undeclared_tool(self, name: str, tools: Iterable[Tool]) -> Tool | None:
        """Return the deferred tool of this name, unless it is among `tools`, which are declared already."""
        return None if any(tool.name == name for tool in tools) else self._tools.get(name)


#: Name of the search function that the gateway adds if the client requested none.
GATEWAY_SEARCH: Final = "find_tools"


class SearchFunction(msgspec.Struct, frozen=True, kw_only=True):
    """One search function; `shown` if the client requested it and therefore sees its calls and results."""

    tool: Tool
    by: SearchBy
    shown: bool

    def run(self, call: ToolCall, deferred: Iterable[Tool]) -> ServerResult:
        return run_search(call.id, self.by, call.args, deferred)


class SearchPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The search functions and the `deferred` tools; `found` names those that the conversation has found already."""

    searches: tuple[SearchFunction, ...]
    deferred: tuple[Tool, ...]
    found: tuple[str, ...] = ()
    choice: ToolChoice | None = None  # replaces the client's tool choice, if the client forces a search

    @property
    def note(self) -> Note:
        names = [tool.name for tool in self.deferred if tool.name not in self.found]
        why = f"{len(names)} tool(s) wait until the model finds them: {', '.join(names[:5])}"
        return Note("withheld", "tools", why)


def plan_search(request: Request, above: int, own: int = 0) -> SearchPlan | None:
    """Return the plan that the client requests, or one of the gateway's if there are more than `above` tools.

    `above=0` disables the latter. The last `own` tools of the request are the gateway's; they are counted separately.
    Return None if all tools are declared at once.
    """
    wanted = [tool for tool in request.server_tools if tool.kind == "tool_search"]
    if wanted:
        return _client_plan(request, wanted)
    theirs = len(request.tools) - own
    return _gateway_plan(request.tools[:theirs], request.tools[theirs:], above) if above else None


def _client_plan(request: Request, wanted: list[ServerTool]) -> SearchPlan | None:
    deferred = tuple(tool for tool in _first_of_each(request.tools) if tool.deferred)
    if not deferred:  # for example because the MCP server has no such tools
        return None
    return SearchPlan(
        searches=tuple(_search(tool.name, tool.by, deferred, shown=True) for tool in wanted),
        deferred=deferred,
        found=request.found,
        choice=_forced(wanted, request.tool_choice),
    )


def _gateway_plan(theirs: tuple[Tool, ...], ours: tuple[Tool, ...], above: int) -> SearchPlan | None:
    """Defer all but the first `above` tools: clients list their own tools first, then those of MCP servers."""
    if max(len(theirs), len(ours)) <= above:
        return None
    theirs = _first_of_each(theirs)
    names = {tool.name for tool in theirs}
    ours = tuple(tool for tool in _first_of_each(ours) if tool.name not in names)  # `Claims` renames these
    deferred = (*theirs[above:], *ours[above:])
    if not deferred:
        return None
    return SearchPlan(searches=(_search(GATEWAY_SEARCH, "words", deferred, shown=False),), deferred=deferred)


def _first_of_each(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """Drop tools whose name is declared twice, except the first."""
    first: dict[str, Tool] = {}
    for tool in tools:
        first.setdefault(tool.name, tool)
    return tuple(first.values())


def _forced(wanted: Iterable[ServerTool], choice: ToolChoice) -> ToolChoice | None:
    names = tuple(tool.name for tool in wanted if tool.forced)
    return ToolChoice(mode="any", names=names, parallel=choice.parallel) if names else None


#: Cached because every turn of a conversation has the same tools.
_SEARCHES: LruCache[tuple[str, SearchBy, tuple[str, ...], bool], SearchFunction] = LruCache(
    4 * 1024 * 1024, "tool searches"
)


def _search(name: str, by: SearchBy, deferred: tuple[Tool, ...], *, shown: bool) -> SearchFunction:
    names = tuple(tool.name for tool in deferred)

    def make() -> SearchFunction:
        return SearchFunction(tool=declare_search(name, by, deferred), by=by, shown=shown)

    return _SEARCHES.get((name, by, names, shown), 3 * sum(map(len, names)), make)
