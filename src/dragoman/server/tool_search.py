"""Tools that wait until the model has found them: the search is run here, not by the client."""

from __future__ import annotations

from dragoman.finding import Plan, Search, plan_search
from dragoman.ir import ServerCall, ServerResult, Tool, ToolCall
from dragoman.repair import search_answer
from dragoman.rounds import Limits
from dragoman.server.own import Asked, Offer, Outcome

#: More than tools of the gateway's own may: a search costs next to nothing.
_LIMITS = Limits(max_rounds=32)


class ToolSearch:
    """A source of searches: those that a client asks for, and where there are too many tools, one of ours."""

    def __init__(self, above: int) -> None:
        self._above = above

    async def offer(self, asked: Asked) -> Offer | None:
        plan = plan_search(asked.request, self._above, asked.own_tools)
        if plan is None:
            return None
        return Offer(
            finders=tuple(Finder(search, plan) for search in plan.searches),
            deferred=plan.deferred,
            found=plan.found,
            choice=plan.choice,
            serves=frozenset({"tool_search"}),
            limits=_LIMITS,
            notes=(plan.note,),
        )

    async def close(self) -> None:
        pass


class Finder:
    """One search at work. A deferred tool that was called unseen, and wrongly, is found by its name."""

    def __init__(self, search: Search, plan: Plan) -> None:
        self._search = search
        self._deferred: dict[str, Tool] = {tool.name: tool for tool in plan.deferred}

    @property
    def tool(self) -> Tool:
        return self._search.tool

    async def run(self, call: ToolCall, asked: Asked) -> Outcome:  # noqa: ARG002 (one signature for all)
        if call.name in self._deferred:
            named = ServerResult(call_id=call.id, kind="tool_search", tools=(call.name,))
            return self._outcome(call, named)
        found = self._search.run(call, self._deferred.values())
        if not self._search.shown:
            return self._outcome(call, found)
        asking = ServerCall(
            id=call.id, kind="tool_search", name=call.name, args=call.args, signature=call.signature
        )
        return self._outcome(call, found, asking)

    def _outcome(self, call: ToolCall, found: ServerResult, asking: ServerCall | None = None) -> Outcome:
        return Outcome(
            result=search_answer(found, call.name),
            show=(asking, found) if asking is not None else (),
            reveal=tuple(self._deferred[name] for name in found.tools),
        )
