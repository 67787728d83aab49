"""The runner of one request's gateway tools: collect the offers of all providers, and run the model's calls.

Separate from `protocol` because the providers, which the `Gateway` creates, import that; this module imports
`Gateway`. How a gateway tool is offered, called, suspended and resumed is described there.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.context import Gateway
from dragoman.gateway.gateway_tools.google_tools import GoogleToolsAsFunctions
from dragoman.gateway.gateway_tools.protocol import (
    GatewayTool,
    ToolOffer,
    ToolOutcome,
    ToolProvider,
    ToolRequest,
)
from dragoman.ir import Request, Text, ToolCall, ToolChoice, ToolResult
from dragoman.translation.exchange import Exchange
from dragoman.translation.tool_loop import ToolLoop
from dragoman.translation.tool_search import DeferredTools

_MAX_PARALLEL_CALLS = 8
_log = logging.getLogger("dragoman")


async def open_tool_runner(
    gateway: Gateway,
    exchange: Exchange,
    caller: Caller,
    *,
    request_id: str,
    headers: Mapping[str, str],
) -> GatewayToolRunner | None:
    """Declare gateway tools in the exchange and return their runner; None if no provider offers any.

    The caller must close the runner.
    """
    request, providers = exchange.request, gateway.tool_providers
    if request.server_tools:
        providers = (*providers, GoogleToolsAsFunctions(gateway))
    tool_request = ToolRequest(request=request, caller=caller, request_id=request_id, headers=headers)
    offer = await collect_offers(providers, tool_request)
    if offer is None:
        return None
    runner = GatewayToolRunner(tool_request, offer)
    exchange.add_tool_loop(runner.tool_loop)
    return runner


async def collect_offers(providers: Sequence[ToolProvider], tool_request: ToolRequest) -> ToolOffer | None:
    """Return the combined offers of all providers for a request; None if there are none.

    Each provider sees the tools that earlier ones have offered. If one raises, the earlier offers are closed.
    """
    offers: list[ToolOffer] = []
    try:
        for provider in providers:
            offer = await provider.offer(tool_request)
            if offer is not None:
                offers.append(offer)
                tool_request = _with_offer(tool_request, offer)
    except BaseException:
        for offer in offers:
            await offer.aclose()
        raise
    return functools.reduce(ToolOffer.combine, offers) if offers else None


class GatewayToolRunner:
    """Runs the calls of one request's gateway tools; `tool_loop` declares the tools and collects the calls."""

    def __init__(self, tool_request: ToolRequest, offer: ToolOffer) -> None:
        self._tool_request = tool_request
        self._offer = offer
        self._tools: dict[str, GatewayTool] = {}  # of two tools with one name, the first offered
        for gateway_tool in (*offer.search_tools, *offer.tools):
            self._tools.setdefault(gateway_tool.tool.name, gateway_tool)
        self._deadline_s = asyncio.get_running_loop().time() + offer.max_seconds
        self.client_events = offer.client_events
        self.external_results = offer.external_results
        self.tool_loop = _open_tool_loop(tool_request.request, offer)

    @property
    def stop_reason(self) -> str:
        """The reason why no other round with these tools may begin, or ""."""
        is_over = asyncio.get_running_loop().time() >= self._deadline_s
        return f"their time of {self._offer.max_seconds:g} s is over" if is_over else ""

    async def run(self, calls: Iterable[ToolCall], *, approved: bool = False) -> list[ToolOutcome]:
        """Run calls concurrently, at most eight at a time; return the outcomes in the order of the calls.

        `approved` means that the user has approved them. Cancellation stops all of them.
        """
        semaphore = asyncio.Semaphore(_MAX_PARALLEL_CALLS)
        tool_request = msgspec.structs.replace(self._tool_request, approved=approved)

        async def run_one(call: ToolCall) -> ToolOutcome:
            async with semaphore:
                began_s = time.monotonic()
                outcome = await self._run(call, tool_request)
                return msgspec.structs.replace(outcome, began_s=began_s, ended_s=time.monotonic())

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run_one(call)) for call in calls]
        return [task.result() for task in tasks]

    async def close(self) -> None:
        await self._offer.aclose()

    async def _run(self, call: ToolCall, tool_request: ToolRequest) -> ToolOutcome:
        gateway_tool = self._tools.get(call.name) or self._offer.search_tools[0]
        try:
            async with asyncio.timeout_at(self._deadline_s):
                return await gateway_tool.run(call, tool_request)
        except TimeoutError:
            return _error_outcome(
                call, "The time for the tools of this answer is over; the call was stopped."
            )
        except Exception:  # a bug in a tool must not fail the whole response
            _log.exception("%s: the tool %s failed", self._tool_request.request_id, call.name)
            return _error_outcome(call, "The tool failed inside the gateway.")


def _open_tool_loop(request: Request, offer: ToolOffer) -> ToolLoop:
    """Return the tool loop of a request with the offered tools, without the tools that they replace."""
    if not offer.keep_client_tools:
        request = _without_tools(request)
    replaced = offer.replaced_server_tools
    request = msgspec.structs.replace(
        request,
        server_tools=tuple(tool for tool in request.server_tools if tool.kind not in replaced),
        native=(*request.native, *offer.native_fields),
    )
    return ToolLoop(
        request,
        (gateway_tool.tool for gateway_tool in offer.tools),
        search_tools=(search_tool.tool for search_tool in offer.search_tools),
        deferred=DeferredTools(offer.deferred, offer.found),
        tool_choice=offer.tool_choice,
        mcp_labels=offer.mcp_labels,
        limits=offer.limits,
        notes=offer.notes,
    )


def _with_offer(tool_request: ToolRequest, offer: ToolOffer) -> ToolRequest:
    """Return the request with the offered tools declared, for the providers that follow."""
    request, earlier_tools = tool_request.request, tool_request.gateway_tool_count
    if not offer.keep_client_tools:
        request, earlier_tools = _without_tools(request), 0
    tools = (*request.tools, *(gateway_tool.tool for gateway_tool in offer.tools))
    return msgspec.structs.replace(
        tool_request,
        request=msgspec.structs.replace(request, tools=tools),
        gateway_tool_count=earlier_tools + len(offer.tools),
    )


def _without_tools(request: Request) -> Request:
    """Return the request without any tools of the client."""
    native = tuple((place, raw) for place, raw in request.native if not place.startswith("tool"))
    no_tools = {"tools": (), "server_tools": (), "remotes": (), "tool_choice": ToolChoice(), "native": native}
    return msgspec.structs.replace(request, **no_tools)


def _error_outcome(call: ToolCall, why: str) -> ToolOutcome:
    content = (Text(text=why),)
    return ToolOutcome(result=ToolResult(call_id=call.id, name=call.name, content=content, is_error=True))
