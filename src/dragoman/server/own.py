"""Gateway tools, which the gateway runs itself: the protocols of their providers, and their runner.

A `Source` looks at a request and offers tools. A call to one of them goes to its `run` method and not to the
client. It returns the result for the model, and optionally events for the client or tools to declare from
then on. The tool loop itself is in `dragoman.rounds`, without I/O.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from dragoman.finding import Deferred
from dragoman.ir import Event, Request, ServerKind, Text, Tool, ToolCall, ToolChoice, ToolResult, Usage
from dragoman.notes import Note
from dragoman.repair import Hidden
from dragoman.rounds import Limits, Rounds
from dragoman.server.auth import Caller

_MAX_PARALLEL = 8
_log = logging.getLogger("dragoman")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a provider may offer tools to, and its caller."""

    request: Request
    caller: Caller
    request_id: str
    dialect: str
    headers: Mapping[str, str] = {}
    agreed: bool = False  # the user has approved the call that is being run
    own_tools: int = 0  # how many of the request's tools, counted from the end, are gateway tools


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of a call: a result for the model, events for the client, and tools to declare from now on.

    There is no result if the client was asked for approval, which comes with its next request, or if the
    result is supplied from outside (`later`), for which the response is suspended.
    """

    result: ToolResult | None = None
    later: bool = False
    show: tuple[Event, ...] = ()
    reveal: tuple[Tool, ...] = ()
    usage: Usage = Usage()  # tokens of the tool's own model calls
    began_s: float = 0.0  # monotonic clock
    ended_s: float = 0.0


class OwnTool(Protocol):
    @property
    def tool(self) -> Tool:
        """The declaration for the model."""
        ...

    async def run(self, call: ToolCall, asked: Asked) -> Outcome:
        """Run a call. Failures are reported as error results for the model, not raised."""
        ...


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """Suspended answers with their results.

    `found` maps the key of a place in the client's history to the record of what happened there; the records
    in `behind` follow the end of the history.
    """

    found: Mapping[str, str] = {}
    behind: tuple[Hidden, ...] = ()


class Later(Protocol):
    """The storage of calls whose results are supplied from outside, for one request."""

    async def resume(self) -> Resumed:
        """Return the suspended answers that this request continues.

        Waits for missing results; raises DragomanError if they do not arrive in time.
        """
        ...

    def words(self, calls: Sequence[ToolCall]) -> str:
        """Return the text that a client sees in place of these calls."""
        ...

    async def suspend(self, calls: Sequence[ToolCall], key: str, record: Hidden) -> None:
        """Store the calls, and the answer that ended with them."""
        ...

    async def done(self) -> None:
        """Mark the resumed calls as delivered, after the model has answered."""
        ...


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Tools for one request. `deferred`, `found`, `choice` and `served` are explained at `Rounds`.

    The first of the `finders` also answers calls to deferred tools that the model has not found yet. The
    events in `show` are sent before the response. The functions in `close` are called at the end of the
    request.
    """

    tools: tuple[OwnTool, ...] = ()
    finders: tuple[OwnTool, ...] = ()
    deferred: tuple[Tool, ...] = ()
    found: tuple[str, ...] = ()
    limits: Limits = Limits()
    max_seconds: float = 300.0  # per response, from its start
    choice: ToolChoice | None = None
    served: frozenset[str] = frozenset()
    show: tuple[Event, ...] = ()
    serves: frozenset[ServerKind] = frozenset()  # server tools of the client that these tools replace
    notes: tuple[Note, ...] = ()
    close: tuple[Callable[[], Awaitable[None]], ...] = ()
    keep_client_tools: bool = True
    native: tuple[tuple[str, bytes], ...] = ()  # Gemini request fields that its tools need
    later: Later | None = None  # storage for tools whose results come from outside

    async def end(self) -> None:
        """Call all functions in `close`."""
        for close in self.close:
            await close()

    def plus(self, other: Offer) -> Offer:
        """Return both offers combined, with the tighter of the limits."""
        return Offer(
            tools=self.tools + other.tools,
            finders=self.finders + other.finders,
            deferred=self.deferred + other.deferred,
            found=self.found + other.found,
            limits=self.limits.both(other.limits),
            max_seconds=min(self.max_seconds, other.max_seconds),
            choice=self.choice or other.choice,
            served=self.served | other.served,
            serves=self.serves | other.serves,
            show=self.show + other.show,
            notes=self.notes + other.notes,
            close=self.close + other.close,
            keep_client_tools=self.keep_client_tools and other.keep_client_tools,
            native=tuple({**dict(self.native), **dict(other.native)}.items()),
            later=self.later or other.later,
        )


class Source(Protocol):
    """A provider of gateway tools. One instance serves all requests of the process."""

    async def offer(self, asked: Asked) -> Offer | None: ...

    async def close(self) -> None: ...


class Desk:
    """The runner of one request's gateway tools; `rounds` is the request's tool loop."""

    def __init__(self, asked: Asked, offer: Offer) -> None:
        self._asked = asked
        self._offer = offer
        self._tools: dict[str, OwnTool] = {}
        for own in (*offer.finders, *offer.tools):
            self._tools.setdefault(own.tool.name, own)
        self._until_s = asyncio.get_running_loop().time() + offer.max_seconds
        self.show = offer.show
        self.later = offer.later
        request = asked.request if offer.keep_client_tools else _without_tools(asked.request)
        others = tuple(tool for tool in request.server_tools if tool.kind not in offer.serves)
        native = (*request.native, *offer.native)
        self.rounds = Rounds(
            msgspec.structs.replace(request, server_tools=others, native=native),
            (own.tool for own in offer.tools),
            finders=(own.tool for own in offer.finders),
            deferred=Deferred(offer.deferred, offer.found),
            choice=offer.choice,
            served=offer.served,
            limits=offer.limits,
            notes=offer.notes,
        )

    @property
    def enough(self) -> str:
        """The reason why no other round may begin, or ""."""
        over = asyncio.get_running_loop().time() >= self._until_s
        return f"their time of {self._offer.max_seconds:g} s is over" if over else ""

    async def run(self, calls: Iterable[ToolCall], *, agreed: bool = False) -> list[Outcome]:
        """Run calls concurrently, at most eight at a time; return the outcomes in the order of the calls.

        Cancellation stops all of them.
        """
        room = asyncio.Semaphore(_MAX_PARALLEL)
        asked = msgspec.structs.replace(self._asked, agreed=agreed)

        async def one(call: ToolCall) -> Outcome:
            async with room:
                began_s = time.monotonic()
                outcome = await self._run(call, asked)
                return msgspec.structs.replace(outcome, began_s=began_s, ended_s=time.monotonic())

        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(call)) for call in calls]
        return [task.result() for task in tasks]

    async def close(self) -> None:
        await self._offer.end()

    async def _run(self, call: ToolCall, asked: Asked) -> Outcome:
        own = self._tools.get(call.name) or self._offer.finders[0]
        try:
            async with asyncio.timeout_at(self._until_s):
                return await own.run(call, asked)
        except TimeoutError:
            return _failed(call, "The time for the tools of this answer is over; the call was stopped.")
        except Exception:  # a bug in a tool must not fail the whole response
            _log.exception("%s: the tool %s failed", self._asked.request_id, call.name)
            return _failed(call, "The tool failed inside the gateway.")


def _without_tools(request: Request) -> Request:
    native = tuple((place, raw) for place, raw in request.native if not place.startswith("tool"))
    nothing = {"tools": (), "server_tools": (), "remotes": (), "tool_choice": ToolChoice(), "native": native}
    return msgspec.structs.replace(request, **nothing)


def _failed(call: ToolCall, why: str) -> Outcome:
    content = (Text(text=why),)
    return Outcome(result=ToolResult(call_id=call.id, name=call.name, content=content, is_error=True))


async def find_desk(sources: Sequence[Source], asked: Asked) -> Desk | None:
    """Combine the offers of all sources for a request; None if there are none.

    Each source sees the tools that earlier ones have offered. If one raises, the earlier offers are ended.
    """
    offers: list[Offer] = []
    seen = asked
    try:
        for source in sources:
            offer = await source.offer(seen)
            if offer is not None:
                offers.append(offer)
                seen = _with_offer(seen, offer)
    except BaseException:
        for offer in offers:
            await offer.end()
        raise
    return Desk(asked, functools.reduce(Offer.plus, offers)) if offers else None


def _with_offer(asked: Asked, offer: Offer) -> Asked:
    """Return `asked` with the offered tools declared, for the sources that follow."""
    request, before = asked.request, asked.own_tools
    if not offer.keep_client_tools:
        request, before = _without_tools(request), 0
    tools = (*request.tools, *(own.tool for own in offer.tools))
    return msgspec.structs.replace(
        asked, request=msgspec.structs.replace(request, tools=tools), own_tools=before + len(offer.tools)
    )
