"""Sessions' tools when things go wrong around them: the store, Google, other tools of the gateway's in the same step."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.gateway.auth.authenticator import scope_of
from dragoman.gateway.gateway_tools.protocol import ToolOffer, ToolOutcome, ToolRequest
from dragoman.gateway.gateway_tools.session_state import SessionToolset, ToolSession
from dragoman.ir import Text, Tool, ToolCall, ToolResult
from dragoman.store import StoreUnavailable
from tests.faults.harness import HELLO, KEY, FakeGoogle, Running, chunk, gateway, refuses, streams

Json = dict[str, Any]

ASK = {"functionCall": {"name": "ask", "args": {}, "id": "g1"}, "thoughtSignature": "c2ln"}
RUN = {"functionCall": {"name": "run", "args": {}, "id": "g2"}}
ASKS = chunk(ASK, finish="STOP")
BOTH = chunk(ASK, RUN, finish="STOP")
SESSION = {"x-dragoman-session": "s"}


class Ran:
    """A tool of the gateway's own that is run at once."""

    tool = Tool(name="run")

    async def run(self, call: ToolCall, asked: ToolRequest) -> ToolOutcome:
        return ToolOutcome(result=ToolResult(call_id=call.id, name=call.name, content=(Text(text="ran"),)))


class Source:
    async def offer(self, asked: ToolRequest) -> ToolOffer | None:
        return ToolOffer(tools=(Ran(),))

    async def close(self) -> None: ...


async def session_of(running: Running) -> ToolSession:
    session = ToolSession(running.app.gateway.store.session_tools, scope_of(KEY), "s")
    await session.set_toolset(SessionToolset(tools=(Tool(name="ask"),)))
    running.headers |= SESSION
    return session


async def answer_all(session: ToolSession) -> None:
    calls = [call for call in await session.calls() if call.status == "open"]
    await session.add_results(
        [ToolResult(call_id=call.id, name=call.name, response=b'{"a":1}') for call in calls]
    )


async def test_other_tools_of_the_same_step_are_run_and_their_results_kept() -> None:
    google = FakeGoogle(streams(BOTH), streams(HELLO))
    async with gateway(google) as running:
        running.app.gateway.tool_providers += (Source(),)
        session = await session_of(running)
        first = await (await running.messages(stream=False)).json()
        (call,) = await session.calls()
        assert call.name == "ask"
        await answer_all(session)
        history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": first["content"]}]
        await running.messages(stream=False, messages=[*history, {"role": "user", "content": "go on"}])
        told = google.arrived[-1].body["contents"][2]["parts"]
        assert [part["functionResponse"]["response"] for part in told] == [{"a": 1}, {"output": "ran"}]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_call_that_cannot_be_kept_is_no_answer(stream: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    async with gateway(FakeGoogle(streams(ASKS))) as running:
        await session_of(running)

        async def full(*_: Any, **__: Any) -> None:
            raise StoreUnavailable("the disk is full")

        monkeypatch.setattr(running.app.gateway.store.session_tools, "register_calls", full)
        answer = await running.messages(stream=stream)
        told = await answer.text()
        assert answer.status == (200 if stream else 529)
        assert "the disk is full" in told
        assert not stream or "message_stop" not in told


async def test_a_store_that_is_gone_costs_the_tools_and_not_the_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google) as running:
        await session_of(running)

        async def gone(*_: Any) -> None:
            raise StoreUnavailable("Redis cannot be reached")

        monkeypatch.setattr(running.app.gateway.store.session_tools, "toolset", gone)
        assert (await running.messages(stream=False)).status == 200
        assert "a session's tools are not offered" in caplog.text
        declared = google.arrived[0].body["tools"][0]["functionDeclarations"]
        assert [one["name"] for one in declared] == ["get_weather"]


async def test_results_are_not_lost_when_google_fails_and_come_with_the_next_attempt() -> None:
    google = FakeGoogle(streams(ASKS), refuses(400, "no"), streams(HELLO), streams(HELLO))
    async with gateway(google) as running:
        session = await session_of(running)
        first = await (await running.messages(stream=False)).json()
        await answer_all(session)
        history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": first["content"]}]
        history.append({"role": "user", "content": "go on"})
        assert (await running.messages(stream=False, messages=history)).status == 400
        assert [call.status for call in await session.calls()] == ["answered"]
        assert (await running.messages(stream=False, messages=history)).status == 200
        assert [call.status for call in await session.calls()] == ["delivered"]
        assert '"functionResponse"' in json.dumps(google.arrived[-1].body)


async def test_a_record_nobody_can_read_any_more_costs_the_calls_only() -> None:
    google = FakeGoogle(streams(ASKS), streams(HELLO))
    async with gateway(google) as running:
        session = await session_of(running)
        first = await (await running.messages(stream=False)).json()
        store = running.app.gateway.store.session_tools
        (entry,) = await store.calls(scope_of(KEY), "s")
        damaged = entry[1].replace(b'\\"last\\"', b'\\"lost\\"')
        assert damaged != entry[1]
        await store.register_calls(scope_of(KEY), "s", [(entry[0], damaged)])
        await answer_all(session)
        history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": first["content"]}]
        history.append({"role": "user", "content": "go on"})
        assert (await running.messages(stream=False, messages=history)).status == 200
        assert "functionResponse" not in json.dumps(google.arrived[-1].body)


async def test_without_tool_calling_there_are_no_sessions_tools() -> None:
    google = FakeGoogle(streams(HELLO))
    async with gateway(google, enable_tool_calling=False) as running:
        await session_of(running)
        await running.messages(stream=False)
        assert "tools" not in google.arrived[0].body


async def test_a_stream_shows_no_trace_of_the_call() -> None:
    async with gateway(FakeGoogle(streams(ASKS))) as running:
        await session_of(running)
        told = await (await running.messages()).text()
        assert "tool_use" not in told
        assert "[waiting for ask" in told
        assert '"stop_reason":"end_turn"' in told
