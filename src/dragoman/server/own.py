"""Tools that the gateway runs itself: who offers them to a request, and how their calls are run.

A `Source` looks at a request and offers tools. A call to one of them goes to its `run` and never to the client; what
comes back is the result for the model, and if need be something for the client to see, or tools to declare from
then on. `dragoman.rounds` has the loop, without any I/O.
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
    """Who asks for what."""

    request: Request
    caller: Caller
    request_id: str
    dialect: str
    headers: Mapping[str, str] = {}
    agreed: bool = False  # the user was asked about the call that is run, and agreed
    own_tools: int = 0  # so many of the request's tools, the last ones, are ours


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a call: the result for the model, events for the client, tools to declare from now on.

    Without a result the client was asked something, and answers it with its next request; or somebody else answers,
    `later`, and the answer is suspended.
    """

    result: ToolResult | None = None
    later: bool = False
    show: tuple[Event, ...] = ()
    reveal: tuple[Tool, ...] = ()
    usage: Usage = Usage()  # of questions to a model that the tool asked itself
    began_s: float = 0.0  # by the clock that never goes back
    ended_s: float = 0.0


class OwnTool(Protocol):
    @property
    def tool(self) -> Tool:
        """How it is declared to the model."""
        ...

    async def run(self, call: ToolCall, asked: Asked) -> Outcome:
        """Whatever goes wrong is a result for the model; the call has the tool's own name."""
        ...


class Resumed(msgspec.Struct, frozen=True, kw_only=True):
    """Suspended answers with their results: by the key of their place in the history, or to go on behind it."""

    found: Mapping[str, str] = {}
    behind: tuple[Hidden, ...] = ()


class Later(Protocol):
    """Whoever keeps the calls that somebody else answers."""

    async def resume(self) -> Resumed:
        """What this request goes on from; waits for results that are missing, or refuses."""
        ...

    def words(self, calls: Sequence[ToolCall]) -> str:
        """What a client is told that knows nothing of these calls."""
        ...

    async def suspend(self, calls: Sequence[ToolCall], key: str, record: Hidden) -> None:
        """Keep the calls, and the answer that ended with them."""
        ...

    async def done(self) -> None:
        """The model has answered to what was resumed."""
        ...


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """Tools for one request; see `Rounds` for what is deferred or found, for `choice` and `served`.

    The first of the `finders` also answers calls to deferred tools that the model has not seen. `show` is seen before
    the first word, `close` is called when the request is over.
    """

    tools: tuple[OwnTool, ...] = ()
    finders: tuple[OwnTool, ...] = ()
    deferred: tuple[Tool, ...] = ()
    found: tuple[str, ...] = ()
    limits: Limits = Limits()
    max_seconds: float = 300.0  # of one answer, from its beginning
    choice: ToolChoice | None = None
    served: frozenset[str] = frozenset()
    show: tuple[Event, ...] = ()
    serves: frozenset[ServerKind] = frozenset()  # of the client's server tools, its tools stand for these
    notes: tuple[Note, ...] = ()
    close: tuple[Callable[[], Awaitable[None]], ...] = ()
    keep_client_tools: bool = True
    native: tuple[tuple[str, bytes], ...] = ()  # of Gemini's own words, what its tools need in the request
    later: Later | None = None  # for tools that nobody here can run

    async def end(self) -> None:
        for close in self.close:
            await close()

    def plus(self, other: Offer) -> Offer:
        """Both, within the tighter limits."""
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
    async def offer(self, asked: Asked) -> Offer | None: ...

    async def close(self) -> None: ...


class Desk:
    """The tools of one request, at work."""

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
        """Why no other round may begin, or nothing."""
        over = asyncio.get_running_loop().time() >= self._until_s
        return f"their time of {self._offer.max_seconds:g} s is over" if over else ""

    async def run(self, calls: Iterable[ToolCall], *, agreed: bool = False) -> list[Outcome]:
        """All at once, as far as there is room; outcomes in the order of the calls. Cancelled, it stops them all."""
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
        except Exception:  # a tool's mistake must not cost the answer
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
    """The tools that all sources together offer to a request; None if there are none. Each sees what others offered."""
    offers: list[Offer] = []
    seen = asked
    try:
        for source in sources:
            offer = await source.offer(seen)
            if offer is not None:
                offers.append(offer)
                seen = _seeing(seen, offer)
    except BaseException:
        for offer in offers:
            await offer.end()
        raise
    return Desk(asked, functools.reduce(Offer.plus, offers)) if offers else None


def _seeing(asked: Asked, offer: Offer) -> Asked:
    request, before = asked.request, asked.own_tools
    if not offer.keep_client_tools:
        request, before = _without_tools(request), 0
    tools = (*request.tools, *(own.tool for own in offer.tools))
    return msgspec.structs.replace(
        asked, request=msgspec.structs.replace(request, tools=tools), own_tools=before + len(offer.tools)
    )
