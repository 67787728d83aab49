"""An exchange with gateway tools: rounds, attempts, failures, and what the client gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import anthropic
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.errors import InvalidRequest
from dragoman.ir import Started, Text, TextDelta, Tool, ToolResult, Usage
from dragoman.translation.exchange import Exchange
from dragoman.translation.tool_loop import ToolLoop
from tests.unit.dialects.anthropic.builders import body, user
from tests.unit.dialects.anthropic.stream_checks import assembled
from tests.unit.translation.test_exchange import MODEL, READ, USAGE, call, chunk, ready, sse

Json = dict[str, Any]

LOOK = Tool(name="look", schema=b'{"type":"object","properties":{"n":{"type":"integer"}}}')
ASKS = (chunk({"text": "so"}), chunk(call("look", "c2ln", n="1"), finish="STOP", usageMetadata=USAGE))
ENDS = (chunk({"text": "done"}, finish="STOP", usageMetadata=USAGE),)


def exchange_with_tool(**fields: Any) -> Exchange:
    exchange = ready(**fields)
    exchange.add_tool_loop(ToolLoop(exchange.request, (LOOK,)))
    exchange.encode(MODEL)
    return exchange


def receive_all(exchange: Exchange, *chunks: Json) -> bytes:
    return exchange.receive(sse(*chunks)) + exchange.end()


def add_results(exchange: Exchange) -> None:
    exchange.add_results(
        [ToolResult(call_id=one.id, content=(Text(text="found"),)) for one in exchange.gateway_calls]
    )


def message(exchange: Exchange, data: bytes) -> Json:
    return assembled(data) if exchange.request.stream else dict(json.loads(data))


@pytest.mark.parametrize("stream", [True, False])
class TestRounds:
    def test_two_rounds_are_one_answer(self, stream: bool) -> None:
        exchange = exchange_with_tool(stream=stream)
        out = exchange.open() + receive_all(exchange, *ASKS)
        (gateway_call,) = exchange.gateway_calls
        # The arguments are repaired by the code that runs the tool.
        assert (gateway_call.name, gateway_call.args) == ("look", b'{"n": "1"}')
        add_results(exchange)
        another = exchange.needs_another_round
        exchange.encode(MODEL)
        assert (another, exchange.needs_another_round, exchange.gateway_calls) == (True, False, ())
        out += receive_all(exchange, *ENDS) + exchange.finish()
        got = message(exchange, out)
        assert [block["text"] for block in got["content"]] == ["so\n\ndone"]
        assert got["stop_reason"] == "end_turn"
        assert (exchange.summary.usage.input_tokens, exchange.summary.usage.output_tokens) == (20, 10)
        assert exchange.summary.rounds == 2
        assert exchange.summary.calls == []
        assert [key[:7] for key, _ in exchange.store_entries] == ["hidden-"]

    def test_the_usage_of_gateway_tools_is_counted(self, stream: bool) -> None:
        exchange = exchange_with_tool(stream=stream)
        out = exchange.open() + receive_all(exchange, *ASKS)
        results = [ToolResult(call_id=one.id, content=(Text(text="x"),)) for one in exchange.gateway_calls]
        exchange.add_results(results, tool_usage=Usage(input_tokens=100, output_tokens=7, searches=2))
        exchange.encode(MODEL)
        out += receive_all(exchange, *ENDS) + exchange.finish()
        assert (exchange.summary.usage.input_tokens, exchange.summary.usage.output_tokens) == (120, 17)
        usage = message(exchange, out)["usage"]
        assert (usage["output_tokens"], usage["server_tool_use"]["web_search_requests"]) == (17, 2)

    def test_a_second_attempt_at_a_round_repeats_nothing(self, stream: bool) -> None:
        exchange = exchange_with_tool(stream=stream)
        out = exchange.open() + receive_all(exchange, *ASKS)
        add_results(exchange)
        exchange.encode(MODEL)
        broken = {"error": {"code": 503, "message": "high demand", "status": "UNAVAILABLE"}}
        assert receive_all(exchange, broken) == b""
        assert exchange.failure is not None
        assert exchange.gateway_calls == ()
        exchange.encode(MODEL)
        out += receive_all(exchange, *ENDS) + exchange.finish()
        assert [block["text"] for block in message(exchange, out)["content"]] == ["so\n\ndone"]
        assert exchange.summary.usage.input_tokens == 20

    def test_calls_of_an_answer_that_was_cut_off_are_not_run(self, stream: bool) -> None:
        exchange = exchange_with_tool(stream=stream)
        out = exchange.open() + receive_all(exchange, chunk(call("look", n=1), finish="MAX_TOKENS"))
        assert exchange.gateway_calls == ()
        assert message(exchange, out + exchange.finish())["stop_reason"] == "max_tokens"

    def test_in_a_mixed_round_the_client_gets_its_own_call(self, stream: bool) -> None:
        exchange = exchange_with_tool(stream=stream, tools=[READ])
        parts = (call("look", "c2ln", n=1), call("Read", a="1"))
        out = exchange.open() + receive_all(exchange, chunk(*parts, finish="STOP"))
        add_results(exchange)
        assert not exchange.needs_another_round
        got = message(exchange, out + exchange.finish())
        assert [(block["name"], block["input"]) for block in got["content"]] == [("Read", {"a": 1})]
        assert got["stop_reason"] == "tool_use"
        assert [key[:13] for key, _ in exchange.store_entries] == ["hidden-toolu_"]

    def test_the_client_gets_the_usage_of_gateway_tools_in_a_mixed_round(self, stream: bool) -> None:
        exchange = exchange_with_tool(stream=stream, tools=[READ])
        both = chunk(call("look", "c2ln", n=1), call("Read"), finish="STOP", usageMetadata=USAGE)
        out = exchange.open() + receive_all(exchange, both)
        (gateway_call,) = exchange.gateway_calls
        answer = ToolResult(call_id=gateway_call.id, content=(Text(text="found"),))
        exchange.add_results([answer], tool_usage=Usage(input_tokens=7, output_tokens=5, searches=2))
        got = message(exchange, out + exchange.finish())
        assert got["usage"]["server_tool_use"]["web_search_requests"] == 2
        from_model = USAGE["candidatesTokenCount"] + USAGE["thoughtsTokenCount"]
        assert exchange.summary.usage.output_tokens == 5 + from_model

    def test_events_of_the_gateway_survive_a_failed_attempt(self, stream: bool) -> None:
        exchange = exchange_with_tool(stream=stream)
        out = exchange.open() + exchange.send_events([TextDelta("(looking)")])
        receive_all(exchange, {"error": {"code": 503, "message": "high demand", "status": "UNAVAILABLE"}})
        exchange.encode(MODEL)
        out += receive_all(exchange, *ENDS) + exchange.finish()
        assert [block["text"] for block in message(exchange, out)["content"]] == ["(looking)done"]


def test_a_failed_attempt_leaves_nothing_in_a_whole_answer() -> None:
    exchange = exchange_with_tool()
    receive_all(exchange, *ASKS)
    add_results(exchange)
    exchange.encode(MODEL)
    receive_all(exchange, chunk({"text": "do"}))
    exchange.encode(MODEL)
    receive_all(exchange, *ENDS)
    got = message(exchange, exchange.finish())
    assert [block["text"] for block in got["content"]] == ["so\n\ndone"]


def test_without_gateway_tools_there_is_nothing_to_do() -> None:
    exchange = ready(stream=True)
    exchange.open()
    receive_all(exchange, *ENDS)
    assert exchange.gateway_calls == ()
    assert not exchange.needs_another_round
    exchange.add_results([])
    assert exchange.send_events([]) == b""
    assert [key for key, _ in exchange.store_entries] == []


def test_an_mcp_server_that_the_gateway_does_not_run_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="'s' is not called from here") as refused:
        ready(mcp_servers=[{"type": "url", "name": "s", "url": "http://169.254.169.254"}])
    assert refused.value.where == "mcp_servers[0]"


def test_a_call_after_the_stop_leaves_nothing() -> None:
    exchange = exchange_with_tool()
    receive_all(exchange, *ASKS)
    results = [ToolResult(call_id=one.id) for one in exchange.gateway_calls]
    exchange.add_results(results, stop_reason="the time is over")
    assert b"the time is over" in exchange.encode(MODEL)
    receive_all(exchange, chunk(call("look", n=1), finish="STOP"))
    assert not exchange.has_content
    assert exchange.gateway_calls == ()
    assert [note.kind for note in exchange.notes] == ["dropped"]


def test_hidden_rounds_are_restored_in_the_next_request() -> None:
    exchange = exchange_with_tool()
    receive_all(exchange, *ASKS)
    add_results(exchange)
    exchange.encode(MODEL)
    receive_all(exchange, *ENDS)
    answer = message(exchange, exchange.finish())
    again = ready(user("q"), {"role": "assistant", "content": answer["content"]}, user("more"))
    rounds = ToolLoop(again.request, (LOOK,))
    again.add_tool_loop(rounds)
    assert rounds.places.keys() == dict(exchange.store_entries).keys()
    rounds.set_stored_rounds(dict(exchange.store_entries))
    roles = [content["role"] for content in json.loads(again.encode(MODEL))["contents"]]
    assert roles == ["user", "model", "user", "model", "user"]


class TestNative:
    """Native content goes to Gemini clients only; the count of one round is not the count of all."""

    NATIVE = chunk({"executableCode": {"code": "1"}}, usageMetadata={**USAGE, "toolUsePromptTokenCount": 7})
    GROUNDED = chunk({"text": "done"}, finish="STOP", usageMetadata={**USAGE, "toolUsePromptTokenCount": 7})

    def answer(self, client: Any, request: bytes) -> tuple[Exchange, Json]:
        exchange = Exchange(client, new_id=lambda: "0" * 16)
        exchange.decode(request)
        exchange.add_tool_loop(ToolLoop(exchange.request, (LOOK,)))
        exchange.encode(MODEL)
        receive_all(exchange, self.NATIVE, chunk(call("look", "c2ln", n=1), finish="STOP"))
        add_results(exchange)
        assert b"executableCode" in exchange.encode(MODEL)
        receive_all(exchange, self.GROUNDED)
        return exchange, json.loads(exchange.finish())

    def test_gemini_clients_get_it(self) -> None:
        request = json.dumps({"contents": [{"role": "user", "parts": [{"text": "q"}]}]}).encode()
        exchange, got = self.answer(GeminiClient("m", "whole"), request)
        parts = got["candidates"][0]["content"]["parts"]
        assert [next(iter(part)) for part in parts] == ["executableCode", "text"]
        assert got["usageMetadata"]["promptTokenCount"] == 17
        assert got["usageMetadata"]["candidatesTokenCount"] == 4
        assert "toolUsePromptTokenCount" not in got["usageMetadata"]
        assert [event for event in exchange.client_events if isinstance(event, Started)] == [Started()]

    def test_dropped_for_others_but_told_to_the_model(self) -> None:
        _, got = self.answer(anthropic, body(user("q")))
        assert [block["text"] for block in got["content"]] == ["done"]
