"""The proxy's interceptor between a program and the strict emulator: no network, no mitmproxy, the real store values."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from dragoman.dialects.base import Target
from dragoman.errors import DragomanError
from dragoman.gateway.gateway_tools.session_state import SessionToolset, ToolSession
from dragoman.ir import Text, Tool, ToolCall, ToolResult
from dragoman.mitm.interceptor import MAX_ROUNDS, Interceptor, PreparedRequest
from dragoman.mitm.proxy import GeminiAddon
from dragoman.store import MemoryStore, StoreUnavailable
from dragoman.upstream.client import UpstreamClient
from tests.unit.dialects.scripted_client import ask

Json = dict[str, Any]

WEATHER = Tool(name="the weather!", schema=b'{"type":"object","properties":{"city":{"type":"string"}}}')
READ: Json = {"functionDeclarations": [{"name": "read_file"}]}


def session_of(store: MemoryStore) -> ToolSession:
    return ToolSession(store.session_tools, "me", "s")


async def interceptor(
    *tools: Tool, wait_s: float = 0.0, runner: Any = None, **held: Any
) -> tuple[Interceptor, ToolSession]:
    session = session_of(MemoryStore())
    if tools or held:
        await session.set_toolset(SessionToolset(tools=tools, **held))
    return Interceptor(session, wait_s=wait_s, now=lambda: 7.0, runner=runner), session


class Program:
    """Keeps its history as Google's SDK does, and sends it with every request."""

    def __init__(self, between: Interceptor, model: str, **fields: Any) -> None:
        self._between = between
        self._target = Target(model=model)
        self._fields = fields
        self.contents: list[Json] = []
        self.sent: list[Json] = []

    async def say(self, *parts: Json) -> list[Json]:
        """The parts of the answer."""
        self.contents.append({"role": "user", "parts": list(parts)})
        body = {"contents": list(self.contents), **self._fields}
        try:
            prepared = await self._between.prepare(self._target, body)
        except DragomanError:
            self.contents.pop()
            raise
        body = prepared.body if prepared is not None else body
        while True:
            self.sent.append(body)
            status, raw = ask(self._target.model, json.dumps(body).encode(), stream=False)
            assert status == 200, raw
            if prepared is None:
                return self._keep([json.loads(raw)])
            received = await self._between.receive(prepared, [json.loads(raw)])
            if isinstance(received, list):
                return self._keep(received)
            prepared, body = received, received.body

    def _keep(self, chunks: list[Json]) -> list[Json]:
        parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
        self.contents.append({"role": "model", "parts": parts})
        return parts


def text(words: str) -> Json:
    return {"text": words}


MODELS = pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.8-flash"])


@MODELS
async def test_without_tools_nothing_is_touched(model: str) -> None:
    between, _ = await interceptor()
    program = Program(between, model)
    assert [part["text"] for part in await program.say(text("say hello"))] == ["hello"]
    assert "tools" not in program.sent[0]


@MODELS
async def test_a_mixed_step_is_whole_again_when_both_have_answered(model: str) -> None:
    between, session = await interceptor(WEATHER)
    program = Program(between, model, tools=[READ])
    both = 'use read_file with {} and use the_weather_ with {"city": "Oslo"}'
    parts = await program.say(text(both))
    names = [part["functionCall"]["name"] for part in parts if "functionCall" in part]
    (call,) = await session.calls()
    assert names == ["read_file"]
    assert (call.name, call.args, call.status) == ("the weather!", {"city": "Oslo"}, "open")
    shown = next(part["functionCall"] for part in parts if "functionCall" in part)
    response = {"functionResponse": {**shown, "response": {"output": "words"}}}
    response["functionResponse"].pop("args", None)
    with pytest.raises(DragomanError, match="waits for the results of the weather!"):
        await program.say(response)
    await session.add_results([ToolResult(call_id=call.id, name=call.name, content=(Text(text="rain"),))])
    await program.say(response)
    calls, responses = program.sent[-1]["contents"][1:3]
    called = [part["functionCall"]["name"] for part in calls["parts"] if "functionCall" in part]
    assert called[0] == "read_file"
    assert [part["functionResponse"]["response"] for part in responses["parts"]] == [
        {"output": "words"},
        {"output": "rain"},
    ]
    assert [one.status for one in await session.calls()] == ["delivered"]
    await program.say(text("say bye"))
    assert program.sent[-1]["contents"][1:3] == [calls, responses]


async def test_a_follow_up_goes_on_as_soon_as_the_results_are_there() -> None:
    between, session = await interceptor(Tool(name="clock"), wait_s=30)
    program = Program(between, "gemini-3.8-flash")
    await program.say(text("use clock with {}"))
    follow_up = asyncio.ensure_future(program.say(text("go on")))
    await asyncio.sleep(0.05)
    assert not follow_up.done()
    (call,) = await session.calls()
    await session.add_results([ToolResult(call_id=call.id, response=b'{"hour":12}')])
    await follow_up
    told = program.sent[-1]["contents"][2]["parts"][0]["functionResponse"]
    assert told["response"] == {"hour": 12}


async def test_a_forced_call_is_for_every_question_and_not_for_its_results() -> None:
    forced = {"functionCallingConfig": {"mode": "ANY"}}
    between, session = await interceptor(Tool(name="clock"), tool_config=forced)
    program = Program(between, "gemini-3.8-flash")
    for words, free in (("hello", False), ("go on", True), ("hello again", False)):
        await program.say(text(words))
        assert ("toolConfig" not in program.sent[-1]) == free
        waiting = [call for call in await session.calls() if call.status == "open"]
        await session.add_results([ToolResult(call_id=call.id, name=call.name) for call in waiting])


async def test_a_request_of_another_conversation_is_not_held_up() -> None:
    between, _ = await interceptor(Tool(name="clock"))
    await Program(between, "gemini-3.8-flash").say(text("use clock with {}"))
    other = Program(between, "gemini-3.8-flash")
    assert [part["text"] for part in await other.say(text("say hello"))] == ["hello"]


def runs(results: list[str]) -> Any:
    async def run(calls: Sequence[ToolCall]) -> list[ToolResult]:
        results.extend(f"{call.name} {call.args.decode()}" for call in calls)
        return [ToolResult(call_id=call.id, name=call.name, content=(Text(text="done"),)) for call in calls]

    return run


@MODELS
async def test_calls_are_run_and_the_answer_goes_on_until_none_is_left(model: str) -> None:
    ran: list[str] = []
    between, session = await interceptor(Tool(name="clock"), runner=runs(ran))
    program = Program(between, model)
    parts = await program.say(
        text('use clock with {"a":1} and use clock with {"a":2} then use clock with {"a":3}')
    )
    assert ran == ['clock {"a":1}', 'clock {"a":2}', 'clock {"a":3}']
    assert all("functionCall" not in part for part in parts)
    assert len(program.sent) == 3
    assert await session.calls() == []


@MODELS
async def test_of_a_mixed_step_ours_is_run_at_once(model: str) -> None:
    between, session = await interceptor(Tool(name="clock"), runner=runs([]))
    program = Program(between, model, tools=[READ])
    parts = await program.say(text("use clock with {} and use read_file with {}"))
    shown = next(part["functionCall"] for part in parts if "functionCall" in part)
    assert shown["name"] == "read_file"
    assert [one.status for one in await session.calls()] == ["answered"]
    response = {"functionResponse": {**shown, "response": {"output": "words"}}}
    response["functionResponse"].pop("args", None)
    await program.say(response)
    answered = program.sent[-1]["contents"][2]["parts"]
    assert [part["functionResponse"]["name"] for part in answered] == ["clock", "read_file"]


async def test_a_loop_ends() -> None:
    between, _ = await interceptor(Tool(name="clock"), runner=runs([]))
    prepared = await between.prepare(Target(model="gemini-3.8-flash"), {"contents": [{"parts": [text("x")]}]})
    call = {"candidates": [{"content": {"parts": [{"functionCall": {"name": "clock"}}]}}]}
    for _ in range(MAX_ROUNDS):
        assert isinstance(prepared, PreparedRequest)
        received = await between.receive(prepared, [call])
        assert isinstance(received, PreparedRequest)
        prepared = received
    assert prepared is not None
    last = await between.receive(prepared, [call])
    assert isinstance(last, list)
    assert "functionCall" not in json.dumps(last)


async def test_the_programs_tools_may_be_taken_away() -> None:
    between, _ = await interceptor(Tool(name="clock"), keep_client_tools=False)
    program = Program(between, "gemini-3.8-flash", tools=[READ])
    await program.say(text("say hello"))
    assert [one["name"] for one in program.sent[0]["tools"][0]["functionDeclarations"]] == ["clock"]


class _Message:
    def __init__(self, path: str, content: bytes) -> None:
        self.pretty_host = "generativelanguage.googleapis.com"
        self.path, self.content = path, content

    def get_content(self, *, strict: bool) -> bytes:
        assert not strict
        return self.content


class _Flow:
    def __init__(self, body: bytes, path: str = "/v1beta/models/gemini-3.8-flash:generateContent") -> None:
        self.request = _Message(path, body)
        self.metadata: Json = {}


async def test_a_store_that_is_gone_costs_the_tools_and_not_the_program(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Broken:
        async def prepare(self, target: Target, body: Json) -> None:
            raise StoreUnavailable("the disk is full")

    client = UpstreamClient(connect_timeout_s=1, idle_timeout_s=1, total_timeout_s=1)
    addon = GeminiAddon(Broken(), client)  # type: ignore[arg-type]
    flow = _Flow(b'{"contents":[]}')
    await addon.request(flow)
    assert flow.request.content == b'{"contents":[]}'
    assert "goes on without the session's tools" in caplog.text


async def test_another_upstream_may_have_a_path() -> None:
    between, _ = await interceptor(Tool(name="clock"))
    client = UpstreamClient(connect_timeout_s=1, idle_timeout_s=1, total_timeout_s=1)
    flow = _Flow(b'{"contents":[]}', "/v1beta/models/gemini-3.8-flash:generateContent?alt=sse")
    await GeminiAddon(between, client, upstream="http://gate.example:81/gemini/").request(flow)
    sent: Any = flow.request
    assert (sent.scheme, sent.host, sent.port) == ("http", "gate.example", 81)
    assert sent.path == "/gemini/v1beta/models/gemini-3.8-flash:generateContent?alt=sse"
    assert b"clock" in sent.content


async def test_what_is_not_for_us_is_left_alone() -> None:
    between, _ = await interceptor(Tool(name="clock"))
    client = UpstreamClient(connect_timeout_s=1, idle_timeout_s=1, total_timeout_s=1)
    addon = GeminiAddon(between, client)
    for flow in (_Flow(b"{}", "/v1beta/models"), _Flow(b"no json"), _Flow(b"[]")):
        before = flow.request.content
        await addon.request(flow)
        assert (flow.request.content, flow.metadata) == (before, {})
    elsewhere = _Flow(b'{"contents":[]}')
    elsewhere.request.pretty_host = "example.com"
    await addon.request(elsewhere)
    assert elsewhere.metadata == {}
