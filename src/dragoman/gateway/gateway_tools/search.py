"""The provider of tool search: deferred tools are declared only after the model has found them.

The search runs in the gateway, not in the client. What is searched, and how, is in `translation.tool_search`.
"""

from __future__ import annotations

from dragoman.gateway.gateway_tools.protocol import ToolOffer, ToolOutcome, ToolRequest
from dragoman.ir import ServerCall, ServerResult, Tool, ToolCall
from dragoman.translation.repair import search_tool_result
from dragoman.translation.tool_loop import LoopLimits
from dragoman.translation.tool_search import SearchFunction, SearchPlan, plan_search

#: More rounds than other gateway tools have, because a search is cheap.
_LIMITS = LoopLimits(max_rounds=32)


class ToolSearchProvider:
    """Offer the searches that a client declares, or our own if a request has more than `above` tools."""

    def __init__(self, above: int) -> None:
        self._above = above

    async def offer(self, tool_request: ToolRequest) -> ToolOffer | None:
        plan = plan_search(tool_request.request, self._above, tool_request.gateway_tool_count)
        if plan is None:
            return None
        return ToolOffer(
            search_tools=tuple(ToolSearchTool(search, plan) for search in plan.searches),
            deferred=plan.deferred,
            found=plan.found,
            tool_choice=plan.choice,
            replaced_server_tools=frozenset({"tool_search"}),
            limits=_LIMITS,
            notes=(plan.note,),
        )

    async def close(self) -> None:
        """Do nothing: it holds nothing."""


class ToolSearchTool:
    """One search tool. A call to a deferred tool that was not found yet is answered by finding it by name."""

    def __init__(self, search: SearchFunction, plan: SearchPlan) -> None:
        self._search = search
        self._deferred: dict[str, Tool] = {tool.name: tool for tool in plan.deferred}

    @property
    def tool(self) -> Tool:
        return self._search.tool

    async def run(self, call: ToolCall, tool_request: ToolRequest) -> ToolOutcome:  # noqa: ARG002 (one signature for all)
        if call.name in self._deferred:
            found = ServerResult(call_id=call.id, kind="tool_search", tools=(call.name,))
            is_shown = False
        else:
            found = self._search.run(call, self._deferred.values())
            is_shown = self._search.shown
        search_call = ServerCall(
            id=call.id, kind="tool_search", name=call.name, args=call.args, signature=call.signature
        )
        return ToolOutcome(
            result=search_tool_result(found, call.name),
            client_events=(search_call, found) if is_shown else (),
            new_tools=tuple(self._deferred[name] for name in found.tools),
        )
