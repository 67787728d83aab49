"""The provider of tool search: deferred tools are declared only after the model has found them.

The search runs in the gateway, not in the client.
"""

from __future__ import annotations

from dragoman.finding import Plan, Search, plan_search
from dragoman.ir import ServerCall, ServerResult, Tool, ToolCall
from dragoman.repair import search_answer
from dragoman.rounds import Limits
from dragoman.server.own import Asked, Offer, Outcome

#: More rounds than other gateway tools have, because a search is cheap.
_LIMITS = Limits(max_rounds=32)


class ToolSearch:
    """Offer the searches that a client declares, or our own if a request has more than `above` tools."""

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
    """One search tool. A call to a deferred tool that was not found yet is answered by finding it by name."""

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
