"""A client with many tools, and a gateway that shows the model only those it has found, in front of the emulator."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from benchmarks.tool_search import drive
from dragoman.dialects.base import Target
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.gateway_tools.protocol import ToolOutcome, ToolRequest
from dragoman.gateway.gateway_tools.runner import GatewayToolRunner
from dragoman.gateway.gateway_tools.search import ToolSearchProvider
from dragoman.ir import ToolCall
from dragoman.translation.exchange import Exchange
from tests.props.gateway_tool_clients import SCHEMA, SPEAKERS, Seen
from tests.unit.dialects.scripted_client import SENTINEL, ask, recall

Json = dict[str, Any]


class Style(msgspec.Struct, frozen=True):
    """Who searches, and how the model asks."""

    tongue: str
    function: str
    argument: str
    wire: Json | None = None  # the tool that the client asks for
    above: int = 0

    def words(self, *names: str) -> str:
        """What the model says to find these."""
        asked: dict[str, Any] = {
            "pattern": "|".join(f"^{name}$" for name in names),
            "query": " ".join(names),
            "paths": list(names),
        }
        return f"use {self.function} with {json.dumps({self.argument: asked[self.argument]})}"


STYLES: dict[str, Style] = {
    "anthropic regex": Style(
        "anthropic",
        "tool_search_tool_regex",
        "pattern",
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
    ),
    "anthropic bm25": Style(
        "anthropic",
        "tool_search_tool_bm25",
        "query",
        {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"},
    ),
    "responses": Style("openai_responses", "tool_search", "paths", {"type": "tool_search"}),
    **{f"ours behind {tongue}": Style(tongue, "find_tools", "query", above=2) for tongue in sorted(SPEAKERS)},
}


class _Desk(GatewayToolRunner):
    """Remembers what it was asked to run."""

    ran: tuple[ToolCall, ...] = ()

    async def run(self, calls: Iterable[ToolCall], *, approved: bool = False) -> list[ToolOutcome]:
        self.ran += tuple(calls)
        return await super().run(calls, approved=approved)


class Shop:
    """The first tools are always shown; the others wait, by the client's wish or by ours."""

    def __init__(
        self,
        style: Style,
        shown: list[str],
        waiting: list[str],
        *,
        stream: bool = True,
        keeps_store: bool = True,
        keeps_thinking: bool = True,
    ) -> None:
        self.style = style
        self.speaker = SPEAKERS[style.tongue]()
        self.sent: list[Json] = []
        self.bodies: list[bytes] = []
        self.searches: list[ToolCall] = []
        self.sentinels = 0
        self.exchanges: list[Exchange] = []
        self._shown, self._waiting = shown, waiting
        self._stream = stream
        self._keeps_store, self._keeps_thinking = keeps_store, keeps_thinking
        self._store: dict[str, str] = {}
        self._tokens = (f"{number:016d}" for number in itertools.count(1))

    def body(self) -> Json:
        body = self.speaker.body([*self._shown, *self._waiting], stream=self._stream)
        if self.style.wire is not None:
            for tool in body["tools"][len(self._shown) :]:
                tool["defer_loading"] = True
            body["tools"].append(self.style.wire)
        return body

    def turn(self, model: str) -> Seen:
        """One request of the client's and everything it sets off, as the relay does it."""
        return asyncio.run(self._turn(model))

    async def _turn(self, model: str) -> Seen:
        body = json.dumps(self.body()).encode()
        exchange = Exchange(self.speaker.dialect, new_id=lambda: next(self._tokens), keep_events=True)
        self.exchanges.append(exchange)
        exchange.decode(body)
        asked = ToolRequest(request=exchange.request, caller=Caller(), request_id="r")
        offer = await ToolSearchProvider(self.style.above).offer(asked)
        assert offer is not None
        desk = _Desk(asked, offer)
        exchange.add_tool_loop(desk.tool_loop)
        desk.tool_loop.set_stored_rounds(
            {key: self._store[key] for key in desk.tool_loop.places if key in self._store}
        )
        recalled = recall(self._store, exchange)

        def encode() -> bytes:
            assert exchange.failure is None
            self._remember(exchange)
            return exchange.encode(Target(model=model), recalled)

        out = await drive(exchange, desk, encode, lambda sent: self._send(model, sent))
        self.searches += desk.ran
        out += exchange.finish()
        self._remember(exchange)
        return self.speaker.hear(out, stream=self._stream, keeps_thinking=self._keeps_thinking)

    def _remember(self, exchange: Exchange) -> None:
        if self._keeps_store:
            self._store.update(exchange.store_entries)

    def _send(self, model: str, sent: bytes) -> bytes:
        self.bodies.append(sent)
        self.sent.append(json.loads(sent))
        self.sentinels += sent.count(SENTINEL.encode())
        status, answer = ask(model, sent, stream=self._stream)
        assert status == 200, f"{model}: {answer.decode()}\n{sent.decode()}"
        return answer

    def declared(self) -> list[list[str]]:
        """By every request that went upstream."""
        return [
            [one["name"] for tools in body["tools"] for one in tools["functionDeclarations"]]
            for body in self.sent
        ]


__all__ = ["SCHEMA", "STYLES", "Shop", "Style"]
