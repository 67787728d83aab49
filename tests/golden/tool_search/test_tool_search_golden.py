"""A search that the client sees, byte for byte: both requests to Google, the client's stream, and the next request.

`make bless` writes the files anew; read the diff before you commit it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import Target
from dragoman.gateway.auth.authenticator import Caller
from dragoman.gateway.gateway_tools.protocol import ToolRequest
from dragoman.gateway.gateway_tools.runner import GatewayToolRunner
from dragoman.gateway.gateway_tools.search import ToolSearchProvider
from dragoman.translation.exchange import Exchange
from tests.unit.dialects.anthropic.stream_checks import assembled
from tests.unit.dialects.openai_responses.stream_checks import folded

Json = dict[str, Any]

HERE = Path(__file__).parent
TARGET = Target(model="gemini-3.8-flash")
CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Client(msgspec.Struct, frozen=True):
    """How a client asks, what the model calls, and what the client sends next."""

    dialect: str
    search: str
    args: Json
    found: str
    ask: Json
    history: str


def _claude(kind: str, args: Json) -> Client:
    name = f"tool_search_tool_{kind}"
    tools: list[Json] = [
        {"name": "Read", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}},
        {"name": "get_weather", "description": "The forecast", "input_schema": CITY, "defer_loading": True},
        {"name": "mcp__mail__send", "input_schema": {"type": "object"}, "defer_loading": True},
        {"type": f"{name}_20251119", "name": name},
    ]
    base = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 32000,
        "stream": True,
        "thinking": {"type": "adaptive"},
    }
    asked = [{"role": "user", "content": "What is the weather in Paris?"}]
    return Client(
        "anthropic", name, args, "get_weather", {**base, "tools": tools, "messages": asked}, "messages"
    )


def _codex() -> Client:
    weather = {
        "type": "function",
        "name": "get_weather",
        "parameters": CITY,
        "strict": False,
        "defer_loading": True,
    }
    mail = {
        "type": "function",
        "name": "send_mail",
        "parameters": None,
        "strict": False,
        "defer_loading": True,
    }
    tools = [
        {"type": "tool_search"},
        {"type": "namespace", "name": "world", "description": "Weather and time", "tools": [weather]},
        mail,
    ]
    base = {"model": "gpt-5", "stream": True, "store": False, "include": ["reasoning.encrypted_content"]}
    asked = [{"role": "user", "content": "What is the weather in Paris?"}]
    ask = {**base, "reasoning": {"summary": "auto"}, "tools": tools, "input": asked}
    return Client("openai_responses", "tool_search", {"paths": ["world"]}, "world.get_weather", ask, "input")


CASES = {
    "anthropic_regex": _claude("regex", {"pattern": "weather|forecast"}),
    "anthropic_bm25": _claude("bm25", {"query": "weather forecast"}),
    "anthropic_error": _claude("regex", {"pattern": "("}),
    "responses": _codex(),
}


def upstream(name: str, client: Client) -> bytes:
    text = (HERE / f"{name}.sse").read_text("utf-8").replace("SEARCH", client.search)
    text = text.replace("ARGS", json.dumps(client.args)).replace("FOUND", client.found)
    return text.replace("\n", "\r\n").encode()


async def play(client: Client) -> dict[str, str]:
    """Everything that crosses a wire."""
    tokens = (f"{number:016d}" for number in itertools.count(1))
    exchange = Exchange(CLIENTS[client.dialect], new_id=lambda: next(tokens), created_s=1_700_000_000)
    desk = await offered(exchange, client.ask)
    first = exchange.encode(TARGET)
    out = exchange.open() + exchange.receive(upstream("searches", client)) + exchange.end()
    (outcome,) = await desk.run(exchange.gateway_calls)
    out += exchange.send_events(outcome.client_events)
    exchange.add_results([outcome.result], found_tools=outcome.new_tools)
    second = exchange.encode(TARGET)
    out += exchange.receive(upstream("uses", client)) + exchange.finish()
    again = Exchange(CLIENTS[client.dialect], new_id=lambda: next(tokens))
    await offered(again, {**client.ask, client.history: client.ask[client.history] + answered(client, out)})
    return {
        "1.upstream.json": first.decode(),
        "2.upstream.json": second.decode(),
        "client.sse": out.decode(),
        "next.upstream.json": again.encode(TARGET).decode(),
    }


async def offered(exchange: Exchange, ask: Json) -> GatewayToolRunner:
    exchange.decode(json.dumps(ask).encode())
    asked = ToolRequest(request=exchange.request, caller=Caller(), request_id="r")
    offer = await ToolSearchProvider(0).offer(asked)
    assert offer is not None
    desk = GatewayToolRunner(asked, offer)
    exchange.add_tool_loop(desk.tool_loop)
    return desk


def answered(client: Client, out: bytes) -> list[Json]:
    """What the client adds to its history: the answer as it came, and a result."""
    if client.dialect == "anthropic":
        content = assembled(out)["content"]
        result = {"type": "tool_result", "tool_use_id": content[-1]["id"], "content": "sunny"}
        return [{"role": "assistant", "content": content}, {"role": "user", "content": [result]}]
    items = [item.to_dict(mode="json") for item in folded(out)[1].output]
    return [*items, {"type": "function_call_output", "call_id": items[-1]["call_id"], "output": "sunny"}]


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    for ending, got in asyncio.run(play(CASES[name])).items():
        expected = HERE / f"{name}.{ending}"
        if os.environ.get("DRAGOMAN_BLESS"):
            expected.write_bytes(got.encode())
        assert got == expected.read_bytes().decode()
