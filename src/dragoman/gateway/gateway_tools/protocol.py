"""Gateway tools, which the gateway runs itself: the protocols and values between their providers and the relay.

The life of a gateway tool in one request:

1. Offered: each `ToolProvider` looks at the request and may return a `ToolOffer`. The combined offer becomes the
   request's `ToolLoop` (translation.tool_loop, without I/O), which declares the tools to the model.
2. Called: the tool loop holds back the model's calls of these tools. After the round the relay has the
   `GatewayToolRunner` run them with `GatewayTool.run`; each returns a `ToolOutcome`. The results go to the model in the
   next round, and the events, if any, to the client.
3. Suspended: if an outcome is external, its result will be posted to the admin API. `ExternalResults.suspend` stores
   the answer so far, and the response ends with a placeholder text.
4. Resumed: when the client sends the next request, `ExternalResults.resume` waits for missing results, and the tool
   loop continues the suspended answer with them.

A tool of step 2 may also ask the client for approval; the relay then runs the approved calls before the first round
of the next request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from dragoman.gateway.auth.authenticator import Caller
from dragoman.ir import Event, Request, ServerKind, Tool, ToolCall, ToolChoice, ToolResult, Usage
from dragoman.notes import Note
from dragoman.translation.repair import HiddenRounds
from dragoman.translation.tool_loop import LoopLimits


class ToolRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a provider may offer tools to, and its caller."""

    request: Request
    caller: Caller
    request_id: str
    headers: Mapping[str, str] = {}
    approved: bool = False  # the user has approved the call that is being run
    gateway_tool_count: int = 0  # how many of the request's tools, counted from the end, are gateway tools


class ToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a call: a result for the model, events for the client, and tools to declare from now on.

    There is no result if the client was asked for approval, which comes with its next request, or if the result is
    supplied through the admin API (`is_external`), for which the answer is suspended.
    """

    result: ToolResult | None = None
    is_external: bool = False
    client_events: tuple[Event, ...] = ()
    new_tools: tuple[Tool, ...] = ()
    usage: Usage = Usage()  # tokens of the tool's own model calls
    began_s: float = 0.0  # monotonic clock
    ended_s: float = 0.0


class GatewayTool(Protocol):
    """A tool that the gateway runs."""

    @property
    def tool(self) -> Tool:
        """The declaration for the model."""
        ...

    async def run(self, call: ToolCall, tool_request: ToolRequest) -> ToolOutcome:
        """Run a call. Failures are reported as error results for the model, not raised."""
        ...


class ResumedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The suspended answers that a request continues, with their results.

    `in_history` maps the key of a place in the client's history to the encoded record of the rounds that it hides;
    the records in `after_history` belong after the last message, because the client does not show them.
    """

    in_history: Mapping[str, str] = {}
    after_history: tuple[HiddenRounds, ...] = ()


class ExternalResults(Protocol):
    """The storage of calls whose results come through the admin API, for one request."""

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
    """The tools that a provider, or all of them together, offer for one request.

    `tools`, `search_tools`, `deferred`, `found`, `tool_choice` and `mcp_labels` become arguments of `ToolLoop`, which
    explains them. The first of the `search_tools` also answers calls of deferred tools that the model has not found.
    """

    tools: tuple[GatewayTool, ...] = ()
    search_tools: tuple[GatewayTool, ...] = ()
    deferred: tuple[Tool, ...] = ()
    found: tuple[str, ...] = ()
    limits: LoopLimits = LoopLimits()
    max_seconds: float = 300.0  # per response, from its start
    tool_choice: ToolChoice | None = None
    mcp_labels: frozenset[str] = frozenset()
    client_events: tuple[Event, ...] = ()  # sent before the model's first round
    replaced_server_tools: frozenset[ServerKind] = (
        frozenset()
    )  # the client's server tools that these tools replace
    notes: tuple[Note, ...] = ()
    close_callbacks: tuple[Callable[[], Awaitable[None]], ...] = ()  # awaited at the end of the request
    keep_client_tools: bool = True
    native_fields: tuple[tuple[str, bytes], ...] = ()  # Gemini request fields that its tools need
    external_results: ExternalResults | None = None  # of tools whose results come through the admin API

    async def aclose(self) -> None:
        """Release what the offer holds, such as connections of this request."""
        for close in self.close_callbacks:
            await close()

    def combine(self, other: ToolOffer) -> ToolOffer:
        """Return both offers as one, with the stricter of the limits."""
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

    async def offer(self, tool_request: ToolRequest) -> ToolOffer | None:
        """Return the tools for a request, or None. May raise DragomanError to reject the request."""
        ...

    async def close(self) -> None:
        """Release what the provider holds for the process."""
        ...
