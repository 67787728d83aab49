"""A conversation with 250 tools: what goes upstream in each turn if all are declared, and if they are searched for."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

import msgspec

from benchmarks.mcp_tools import mcp_tools
from dragoman.dialects import anthropic
from dragoman.dialects.base import Target
from dragoman.emulator.service import Question, Service
from dragoman.exchange import Exchange
from dragoman.ir import unseal
from dragoman.server.auth import Caller
from dragoman.server.own import Asked, Desk
from dragoman.server.tool_search import ToolSearch

Json = dict[str, Any]

_MODEL = "gemini-3.8-flash"
_PATH = f"/v1beta/models/{_MODEL}:generateContent"
_ABOVE = 10
_WISHES = (
    ("github create issue", "mcp__github__create_issue", {"title": "It hangs"}),
    ("slack message", "mcp__slack__create_message", {"title": "It hangs, see the issue"}),
    ("list sentry errors", "mcp__sentry__list_error", {"state": "open"}),
    ("an issue on github by its id", "mcp__github__get_issue", {"id": "7"}),
    ("get a stripe customer", "mcp__stripe__get_customer", {"id": "c_1"}),
    ("calendar event", "mcp__calendar__create_event", {"title": "Post mortem"}),
)


class Way(msgspec.Struct, frozen=True):
    """Who searches: nobody, Claude's own tool run by the gateway, or the gateway for a client that knows nothing."""

    title: str
    function: str = ""
    argument: str = "query"
    wire: Json | None = None
    above: int = 0

    def tools(self) -> list[Json]:
        if self.wire is None:
            return mcp_tools()
        return [*({**tool, "defer_loading": True} for tool in mcp_tools()), self.wire]

    def plan(self, query: str, name: str, args: Json) -> str:
        asked = query.replace(" ", "|") if self.argument == "pattern" else query
        search = (
            f"use {self.function} with {json.dumps({self.argument: asked})} then " if self.function else ""
        )
        return f"{search}use {name} with {json.dumps(args)} then say done"


WAYS = (
    Way("all declared"),
    Way(
        "tool_search_tool_bm25",
        "tool_search_tool_bm25",
        wire={"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    ),
    Way(f"tools.search_above = {_ABOVE}", "find_tools", above=_ABOVE),
)


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it went upstream."""

    declared: int
    bytes: int
    tokens: int  # as the emulator counts them


class Client:
    """A client, a gateway with its store, and the emulator behind it, in this process."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.sent: list[Sent] = []
        self.calls: list[str] = []
        self._tools = way.tools()
        self._messages: list[Json] = []
        self._store: dict[str, str] = {}
        self._google = Service("benchmark")
        self._tokens = (f"{number:016d}" for number in itertools.count(1))

    async def turn(self, plan: str) -> list[Sent]:
        """Everything that one wish of the user's sends upstream."""
        before = len(self.sent)
        self._messages.append({"role": "user", "content": plan})
        while True:
            content = json.loads(await self._ask())["content"]
            self._messages.append({"role": "assistant", "content": content})
            calls = [block for block in content if block["type"] == "tool_use"]
            if not calls:
                return self.sent[before:]
            self.calls += [call["name"] for call in calls]
            results = [{"type": "tool_result", "tool_use_id": call["id"], "content": "ok"} for call in calls]
            self._messages.append({"role": "user", "content": results})

    async def _ask(self) -> bytes:
        exchange = Exchange(anthropic, new_token=lambda: next(self._tokens))
        body = {"model": "m", "max_tokens": 4000, "messages": self._messages, "tools": self._tools}
        exchange.decode(json.dumps(body).encode())
        asked = Asked(request=exchange.request, caller=Caller(), request_id="", dialect="anthropic")
        offer = await ToolSearch(self.way.above).offer(asked)
        desk = Desk(asked, offer) if offer is not None else None
        if desk is not None:
            exchange.offer(desk.rounds)
            desk.rounds.remind({key: self._store[key] for key in desk.rounds.places if key in self._store})
        recalled = {
            key: sealed for key in exchange.wanted if (sealed := unseal(self._store.get(key, ""))) is not None
        }

        def encode() -> bytes:
            self._store.update(exchange.memories)
            return exchange.encode(Target(model=_MODEL), recalled)

        await drive(exchange, desk, encode, self._send)
        answer = exchange.finish()
        self._store.update(exchange.memories)
        return answer

    def _send(self, body: bytes) -> bytes:
        question = Question(verb="POST", path=_PATH, key="any", body=body)
        answer = b"".join(self._google.answer(question).pieces)
        sent, got = json.loads(body), json.loads(answer)
        declared = sum(len(tool["functionDeclarations"]) for tool in sent["tools"])
        tokens = got["usageMetadata"]["promptTokenCount"]
        self.sent.append(Sent(declared=declared, bytes=len(body), tokens=tokens))
        return answer


async def drive(
    exchange: Exchange, desk: Desk | None, encode: Callable[[], bytes], send: Callable[[bytes], bytes]
) -> bytes:
    """All rounds of one answer, as the relay does it; what the client gets meanwhile."""
    out = b""
    while True:
        answer = send(encode())
        out = (out or exchange.open()) + exchange.receive(answer) + exchange.end()
        calls = exchange.own_calls
        if desk is None or not calls:
            return out
        outcomes = await desk.run(calls)
        shown = [event for outcome in outcomes for event in outcome.show]
        out += exchange.show(shown) if shown else b""
        exchange.settle(
            [outcome.result for outcome in outcomes],
            reveal=[tool for outcome in outcomes for tool in outcome.reveal],
        )
        if not exchange.goes_on:
            return out


def measure(way: Way) -> tuple[list[list[Sent]], list[str]]:
    """By turn what went upstream, and the client's tools that were called."""

    async def talk() -> tuple[list[list[Sent]], list[str]]:
        client = Client(way)
        return [await client.turn(way.plan(*wish)) for wish in _WISHES], client.calls

    return asyncio.run(talk())


WANTED = [name for _, name, _ in _WISHES]


def print_tool_search() -> None:
    everything, _ = measure(WAYS[0])
    print(
        f"{len(mcp_tools())} tools of ten MCP servers, {len(_WISHES)} turns, all requests of a turn together\n"
    )
    for way in WAYS:
        turns, calls = measure(way)
        if calls != WANTED:
            raise RuntimeError(f"{way.title}: called {calls}")
        print(
            f"{way.title}\n  {'turn':6}{'requests':>9}{'declared':>10}{'KB sent':>10}{'tokens':>11}{'of all':>9}"
        )
        for number, (sent, full) in enumerate(zip(turns, everything, strict=True), start=1):
            print(f"  {number:<6}{_row(sent)}{_share(sent, full):>9}")
        flat, whole = ([one for turn in many for one in turn] for many in (turns, everything))
        print(f"  {'all':6}{_row(flat)}{_share(flat, whole):>9}\n")


def _row(sent: list[Sent]) -> str:
    size, tokens = sum(one.bytes for one in sent), sum(one.tokens for one in sent)
    return f"{len(sent):>9}{sent[-1].declared:>10}{size / 1000:>10.1f}{tokens:>11,}"


def _share(sent: list[Sent], full: list[Sent]) -> str:
    return f"{sum(one.tokens for one in sent) / sum(one.tokens for one in full):.1%}"
