"""A conversation with 250 tools: tokens and bytes sent upstream if all are declared, and with tool search."""

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
from dragoman.emulator.service import EmulatorService, HttpRequest
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.gateway_tools.protocol import ToolRequest
from dragoman.gateway.gateway_tools.runner import GatewayToolRunner
from dragoman.gateway.gateway_tools.search import ToolSearchProvider
from dragoman.ir import unseal
from dragoman.translation.exchange import Exchange

Json = dict[str, Any]

_MODEL = "gemini-3.8-flash"
_PATH = f"/v1beta/models/{_MODEL}:generateContent"
_ABOVE = 10
_TASKS = (
    ("github create issue", "mcp__github__create_issue", {"title": "It hangs"}),
    ("slack message", "mcp__slack__create_message", {"title": "It hangs, see the issue"}),
    ("list sentry errors", "mcp__sentry__list_error", {"state": "open"}),
    ("an issue on github by its id", "mcp__github__get_issue", {"id": "7"}),
    ("get a stripe customer", "mcp__stripe__get_customer", {"id": "c_1"}),
    ("calendar event", "mcp__calendar__create_event", {"title": "Post mortem"}),
)


class SearchMode(msgspec.Struct, frozen=True):
    """No search, Anthropic's search tool run by the gateway, or the gateway's own for a client without tool search."""

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


SEARCH_MODES = (
    SearchMode("all declared"),
    SearchMode(
        "tool_search_tool_bm25",
        "tool_search_tool_bm25",
        wire={"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    ),
    SearchMode(f"tools.search_above = {_ABOVE}", "find_tools", above=_ABOVE),
)


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it went upstream."""

    declared: int
    bytes: int
    tokens: int  # as the emulator counts them


class SearchClient:
    """A client, a gateway with its store, and the emulator as its upstream, in this process."""

    def __init__(self, mode: SearchMode) -> None:
        self.mode = mode
        self.sent: list[SentRequest] = []
        self.calls: list[str] = []
        self._tools = mode.tools()
        self._messages: list[Json] = []
        self._store: dict[str, str] = {}
        self._google = EmulatorService("benchmark")
        self._tokens = (f"{number:016d}" for number in itertools.count(1))

    async def turn(self, plan: str) -> list[SentRequest]:
        """Return all upstream requests of one user message."""
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
        exchange = Exchange(anthropic, new_id=lambda: next(self._tokens))
        body = {"model": "m", "max_tokens": 4000, "messages": self._messages, "tools": self._tools}
        exchange.decode(json.dumps(body).encode())
        tool_request = ToolRequest(request=exchange.request, caller=Caller(), request_id="")
        offer = await ToolSearchProvider(self.mode.above).offer(tool_request)
        runner = GatewayToolRunner(tool_request, offer) if offer is not None else None
        if runner is not None:
            exchange.add_tool_loop(runner.tool_loop)
            runner.tool_loop.set_stored_rounds(
                {key: self._store[key] for key in runner.tool_loop.places if key in self._store}
            )
        signatures = {
            key: sealed
            for key in exchange.missing_keys
            if (sealed := unseal(self._store.get(key, ""))) is not None
        }

        def encode() -> bytes:
            self._store.update(exchange.store_entries)
            return exchange.encode(Target(model=_MODEL), signatures)

        await drive(exchange, runner, encode, self._send)
        answer = exchange.finish()
        self._store.update(exchange.store_entries)
        return answer

    def _send(self, body: bytes) -> bytes:
        question = HttpRequest(method="POST", path=_PATH, key="any", body=body)
        answer = b"".join(self._google.handle(question).body_writes)
        sent, got = json.loads(body), json.loads(answer)
        declared = sum(len(tool["functionDeclarations"]) for tool in sent["tools"])
        tokens = got["usageMetadata"]["promptTokenCount"]
        self.sent.append(SentRequest(declared=declared, bytes=len(body), tokens=tokens))
        return answer


async def drive(
    exchange: Exchange,
    runner: GatewayToolRunner | None,
    encode: Callable[[], bytes],
    send: Callable[[bytes], bytes],
) -> bytes:
    """Run all rounds of one answer as the relay does, and return what the client receives."""
    out = b""
    while True:
        answer = send(encode())
        out = (out or exchange.open()) + exchange.receive(answer) + exchange.end()
        calls = exchange.gateway_calls
        if runner is None or not calls:
            return out
        outcomes = await runner.run(calls)
        shown = [event for outcome in outcomes for event in outcome.client_events]
        out += exchange.send_events(shown) if shown else b""
        exchange.add_results(
            [outcome.result for outcome in outcomes],
            found_tools=[tool for outcome in outcomes for tool in outcome.new_tools],
        )
        if not exchange.needs_another_round:
            return out


def measure(mode: SearchMode) -> tuple[list[list[SentRequest]], list[str]]:
    """Return the upstream requests by turn, and the client's tools that were called."""

    async def talk() -> tuple[list[list[SentRequest]], list[str]]:
        client = SearchClient(mode)
        return [await client.turn(mode.plan(*task)) for task in _TASKS], client.calls

    return asyncio.run(talk())


WANTED = [name for _, name, _ in _TASKS]


def print_tool_search() -> None:
    everything, _ = measure(SEARCH_MODES[0])
    print(f"{len(mcp_tools())} tools of ten MCP servers, {len(_TASKS)} turns, requests of a turn added up\n")
    for mode in SEARCH_MODES:
        turns, calls = measure(mode)
        if calls != WANTED:
            raise RuntimeError(f"{mode.title}: called {calls}")
        print(
            f"{mode.title}\n  {'turn':6}{'requests':>9}{'declared':>10}{'KB sent':>10}{'tokens':>11}{'of all':>9}"
        )
        for number, (sent, full) in enumerate(zip(turns, everything, strict=True), start=1):
            print(f"  {number:<6}{_row(sent)}{_share(sent, full):>9}")
        flat, whole = ([one for turn in many for one in turn] for many in (turns, everything))
        print(f"  {'all':6}{_row(flat)}{_share(flat, whole):>9}\n")


def _row(sent: list[SentRequest]) -> str:
    size, tokens = sum(one.bytes for one in sent), sum(one.tokens for one in sent)
    return f"{len(sent):>9}{sent[-1].declared:>10}{size / 1000:>10.1f}{tokens:>11,}"


def _share(sent: list[SentRequest], full: list[SentRequest]) -> str:
    return f"{sum(one.tokens for one in sent) / sum(one.tokens for one in full):.1%}"
