"""Gateway tools, which the gateway runs itself: the protocols of their providers, and their runner.

A `Source` looks at a request and offers tools. A call to one of them goes to its `run` method and not to the
client. It returns the result for the model, and optionally events for the client or tools to declare from
then on. The tool loop itself is in `dragoman.translation.tool_loop`, without I/O.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from dragoman.gateway.auth.authenticator import Caller
from dragoman.ir import Event, Request, ServerKind, Text, Tool, ToolCall, ToolChoice, ToolResult, Usage
from dragoman.notes import Note
from dragoman.translation.repair import HiddenRounds
from dragoman.translation.tool_loop import LoopLimits, ToolLoop
from dragoman.translation.tool_search import DeferredTools

_MAX_PARALLEL = 8
_log = logging.getLogger("dragoman")


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a provider may offer tools to, and its caller."""

    request: Request
    caller: Caller
    request_id: str
    dialect: str
    headers: Mapping[str, str] = {}
    approved: bool = False  # the user has approved the call that is being run
    gateway_tool_count: int = 0  # how many of the request's tools, counted from the end, are gateway tools


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a call: a result for the model, events for the client, and tools to declare from now on.

    There is no result if the client was asked for approval, which comes with its next request, or if the
    result is supplied from outside (`later`), for which the response is suspended.
    """

    result: ToolResult | None = None
    is_external: bool = False
    client_events: tuple[Event, ...] = ()
    new_tools: tuple[Tool, ...] = ()
    usage: Usage = Usage()  # tokens of the tool's own model calls
    began_s: float = 0.0  # monotonic clock
    ended_s: float = 0.0


class GatewayTool(Protocol):
    @property
    def tool(self) -> Tool:
        """The declaration for the model."""
        ...

    async def run(self, call: ToolCall, asked: ToolRequest) -> ToolOutcome:
        """Run a call. Failures are reported as error results for the model, not raised."""
        ...


class ResumedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Suspended answers with their results.

    `found` maps the key of a place in the client's history to the record of what happened there; the records
    in `behind` follow the end of the history.
    """

    in_history: Mapping[str, str] = {}
    after_history: tuple[HiddenRounds, ...] = ()


class ExternalResults(Protocol):
    """The storage of calls whose results are supplied from outside, for one request."""

    async def resume(self) -> ResumedAnswer:
        """Return the suspended answers that this request continues.

        Waits for missing results; raises DragomanError if they do not arrive in time.
        """
        ...

    def placeholder_text(self, calls: Sequence[ToolCall]) -> str:
        """Return the text that a client sees in place of these calls."""
        ...

    async def suspend(self, calls: Sequence[ToolCall], key: str, record: HiddenRounds) -> None:
        """Store the calls, and the answer that ended with them."""
        ...

    async def mark_delivered(self) -> None:
        """Mark the resumed calls as delivered, after the model has answered."""
        ...


class ToolOffer(msgspec.Struct, frozen=True, kw_only=True):
    """Tools for one request. `deferred`, `found`, `choice` and `served` are explained at `Rounds`.

    The first of the `finders` also answers calls to deferred tools that the model has not found yet. The
    events in `show` are sent before the response. The functions in `close` are called at the end of the
    request.
    """

    tools: tuple[GatewayTool, ...] = ()
    search_tools: tuple[GatewayTool, ...] = ()
    deferred: tuple[Tool, ...] = ()
    found: tuple[str, ...] = ()
    limits: LoopLimits = LoopLimits()
    max_seconds: float = 300.0  # per response, from its start
    tool_choice: ToolChoice | None = None
    mcp_labels: frozenset[str] = frozenset()
    client_events: tuple[Event, ...] = ()
    replaced_server_tools: frozenset[ServerKind] = (
        frozenset()
    )  # server tools of the client that these tools replace
    notes: tuple[Note, ...] = ()
    close_callbacks: tuple[Callable[[], Awaitable[None]], ...] = ()
    keep_client_tools: bool = True
    native_fields: tuple[tuple[str, bytes], ...] = ()  # Gemini request fields that its tools need
    external_results: ExternalResults | None = None  # storage for tools whose results come from outside

    async def aclose(self) -> None:
        """Call all functions in `close`."""
        for close in self.close_callbacks:
            await close()

    def combine(self, other: ToolOffer) -> ToolOffer:
        """Return both offers combined, with the tighter of the limits."""
        return ToolOffer(
            tools=self.tools + other.tools,
            search_tools=self.search_tools + other.search_tools,
            deferred=self.deferred + other.deferred,
            found=self.found + other.found,
            limits=self.limits.stricter(other.limits),
            max_seconds=min(self.max_seconds, other.max_seconds),
            tool_choice=self.tool_choice or other.tool_choice,
            mcp_labels=self.mcp_labels | other.mcp_labels,
            replaced_server_tools=self.replaced_server_tools | other.replaced_server_tools,
            client_events=self.client_events + other.client_events,
            notes=self.notes + other.notes,
            close_callbacks=self.close_callbacks + other.close_callbacks,
            keep_client_tools=self.keep_client_tools and other.keep_client_tools,
            native_fields=tuple({**dict(self.native_fields), **dict(other.native_fields)}.items()),
            external_results=self.external_results or other.external_results,
        )


class ToolProvider(Protocol):
    """A provider of gateway tools. One instance serves all requests of the process."""

    async def offer(self, asked: ToolRequest) -> ToolOffer | None: ...

    async def close(self) -> None: ...


class GatewayToolRunner:
    """The runner of one request's gateway tools; `rounds` is the request's tool loop."""

    def __init__(self, asked: ToolRequest, offer: ToolOffer) -> None:
        self._request = asked
        self._offer = offer
        self._tools: dict[str, GatewayTool] = {}
        for own in (*offer.search_tools, *offer.tools):
            self._tools.setdefault(own.tool.name, own)
        self._deadline_s = asyncio.get_running_loop().time() + offer.max_seconds
        self.client_events = offer.client_events
        self.external_results = offer.external_results
        request = asked.request if offer.keep_client_tools else _without_tools(asked.request)
        others = tuple(tool for tool in request.server_tools if tool.kind not in offer.replaced_server_tools)
        native = (*request.native, *offer.native_fields)
        self.tool_loop = ToolLoop(
            msgspec.structs.replace(request, server_tools=others, native=native),
            (own.tool for own in offer.tools),
            search_tools=(own.tool for own in offer.search_tools),
            deferred=DeferredTools(offer.deferred, offer.found),
            tool_choice=offer.tool_choice,
            mcp_labels=offer.mcp_labels,
            limits=offer.limits,
            notes=offer.notes,
        )

    @property
    def stop_reason(self) -> str:
        """The reason why no other round may begin, or ""."""
        over = asyncio.get_running_loop().time() >= self._deadline_s
        return f"their time of {self._offer.max_seconds:g} s is over" if over else ""

    async def run(self, calls: Iterable[ToolCall], *, agreed: bool = False) -> list[ToolOutcome]:
        """Run calls concurrently, at most eight at a time; return the outcomes in the order of the calls.

        Cancellation stops all of them.
        """
        room = asyncio.Semaphore(_MAX_PARALLEL)
        asked = msgspec.structs.replace(self._request, approved=agreed)

        async def one(call: ToolCall) -> ToolOutcome:
            async with room:
                began_s = time.monotonic()
                outcome = await self._run(call, asked)
                return msgspec.structs.replace(outcome, began_s=began_s, ended_s=time.monotonic())

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for call in calls]
        return [task.result() for task in tasks]

    async def close(self) -> None:
        await self._offer.aclose()

    async def _run(self, call: ToolCall, asked: ToolRequest) -> ToolOutcome:
        own = self._tools.get(call.name) or self._offer.search_tools[0]
        try:
            async with asyncio.timeout_at(self._deadline_s):
                return await own.run(call, asked)
        except TimeoutError:
            return _error_outcome(
                call, "The time for the tools of this answer is over; the call was stopped."
            )
        except Exception:  # a bug in a tool must not fail the whole response
            _log.exception("%s: the tool %s failed", self._request.request_id, call.name)
            return _error_outcome(call, "The tool failed inside the gateway.")


def _without_tools(request: Request) -> Request:
    native = tuple((place, raw) for place, raw in request.native if not place.startswith("tool"))
    nothing = {"tools": (), "server_tools": (), "remotes": (), "tool_choice": ToolChoice(), "native": native}
    return msgspec.structs.replace(request, **nothing)


def _error_outcome(call: ToolCall, why: str) -> ToolOutcome:
    content = (Text(text=why),)
    return ToolOutcome(result=ToolResult(call_id=call.id, name=call.name, content=content, is_error=True))


async def collect_offers(sources: Sequence[ToolProvider], asked: ToolRequest) -> GatewayToolRunner | None:
    """Combine the offers of all sources for a request; None if there are none.

    Each source sees the tools that earlier ones have offered. If one raises, the earlier offers are ended.
    """
    offers: list[ToolOffer] = []
    seen = asked
    try:
        for source in sources:
            offer = await source.offer(seen)
            if offer is not None:
                offers.append(offer)
                seen = _with_offer(seen, offer)
    except BaseException:
        for offer in offers:
            await offer.aclose()
        raise
    return GatewayToolRunner(asked, functools.reduce(ToolOffer.combine, offers)) if offers else None


def _with_offer(asked: ToolRequest, offer: ToolOffer) -> ToolRequest:
    """Return `asked` with the offered tools declared, for the sources that follow."""
    request, before = asked.request, asked.gateway_tool_count
    if not offer.keep_client_tools:
        request, before = _without_tools(request), 0
    tools = (*request.tools, *(own.tool for own in offer.tools))
    return msgspec.structs.replace(
        asked,
        request=msgspec.structs.replace(request, tools=tools),
        gateway_tool_count=before + len(offer.tools),
    )
