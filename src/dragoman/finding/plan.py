"""Which tools of a request wait until they are found, and how the model finds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from dragoman.finding.search import declare_search, run_search
from dragoman.ir import Request, SearchBy, ServerResult, ServerTool, Tool, ToolCall, ToolChoice
from dragoman.memo import Memo
from dragoman.notes import Note

#: The search that the gateway offers where the client has none.
OWN_SEARCH: Final = "find_tools"


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """One function that finds tools; `shown`: the client asked for it, and is told what it does."""

    tool: Tool
    by: SearchBy
    shown: bool

    def run(self, call: ToolCall, deferred: Iterable[Tool]) -> ServerResult:
        return run_search(call.id, self.by, call.args, deferred)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """`deferred` are the tools that are declared only once they are found, `found` names those that were."""

    searches: tuple[Search, ...]
    deferred: tuple[Tool, ...]
    found: tuple[str, ...] = ()
    choice: ToolChoice | None = None  # of the first step

    @property
    def note(self) -> Note:
        names = [tool.name for tool in self.deferred if tool.name not in self.found]
        why = f"{len(names)} tool(s) wait until the model finds them: {', '.join(names[:5])}"
        return Note("withheld", "tools", why)


def plan_search(request: Request, above: int, own: int = 0) -> Plan | None:
    """The client's own wish, or ours where there are more than `above` tools (0: never); None if all are shown.

    So many of the request's tools, the last ones, are our `own`; they are counted by themselves.
    """
    wanted = [tool for tool in request.server_tools if tool.kind == "tool_search"]
    if wanted:
        return _wished(request, wanted)
    theirs = len(request.tools) - own
    return _spared(request.tools[:theirs], request.tools[theirs:], above) if above else None


def _wished(request: Request, wanted: list[ServerTool]) -> Plan | None:
    deferred = tuple(tool for tool in _first_of_each(request.tools) if tool.deferred)
    if not deferred:  # a server may have turned out to have none of them
        return None
    return Plan(
        searches=tuple(_search(tool.name, tool.by, deferred, shown=True) for tool in wanted),
        deferred=deferred,
        found=request.found,
        choice=_forced(wanted, request.tool_choice),
    )


def _spared(theirs: tuple[Tool, ...], ours: tuple[Tool, ...], above: int) -> Plan | None:
    """The first ones stay: clients put their own tools there, and those of their MCP servers behind."""
    if max(len(theirs), len(ours)) <= above:
        return None
    theirs = _first_of_each(theirs)
    names = {tool.name for tool in theirs}
    ours = tuple(tool for tool in _first_of_each(ours) if tool.name not in names)  # those get other names
    deferred = (*theirs[above:], *ours[above:])
    if not deferred:
        return None
    return Plan(searches=(_search(OWN_SEARCH, "words", deferred, shown=False),), deferred=deferred)


def _first_of_each(tools: Iterable[Tool]) -> tuple[Tool, ...]:
    """A name that is declared twice is its first tool's."""
    first: dict[str, Tool] = {}
    for tool in tools:
        first.setdefault(tool.name, tool)
    return tuple(first.values())


def _forced(wanted: Iterable[ServerTool], choice: ToolChoice) -> ToolChoice | None:
    names = tuple(tool.name for tool in wanted if tool.forced)
    return ToolChoice(mode="any", names=names, parallel=choice.parallel) if names else None


#: The same tools come with every turn.
_SEARCHES: Memo[tuple[str, SearchBy, tuple[str, ...], bool], Search] = Memo(4 * 1024 * 1024, "tool searches")


def _search(name: str, by: SearchBy, deferred: tuple[Tool, ...], *, shown: bool) -> Search:
    names = tuple(tool.name for tool in deferred)

    def make() -> Search:
        return Search(tool=declare_search(name, by, deferred), by=by, shown=shown)

    return _SEARCHES.get((name, by, names, shown), 3 * sum(map(len, names)), make)
