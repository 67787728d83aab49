"""An exchange with tools of the gateway's own, at its seams: attempts, failures, what is shown and collected."""

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


def offered(**fields: Any) -> Exchange:
    exchange = ready(**fields)
    exchange.add_tool_loop(ToolLoop(exchange.request, (LOOK,)))
    exchange.encode(MODEL)
    return exchange


def heard(exchange: Exchange, *chunks: Json) -> bytes:
    return exchange.receive(sse(*chunks)) + exchange.end()


def settle(exchange: Exchange) -> None:
    exchange.add_results(
        [ToolResult(call_id=one.id, content=(Text(text="found"),)) for one in exchange.gateway_calls]
    )


def message(exchange: Exchange, data: bytes) -> Json:
    return assembled(data) if exchange.request.stream else dict(json.loads(data))


@pytest.mark.parametrize("stream", [True, False])
class TestRounds:
    def test_two_rounds_are_one_answer(self, stream: bool) -> None:
        exchange = offered(stream=stream)
        out = exchange.open() + heard(exchange, *ASKS)
        (own,) = exchange.gateway_calls
        assert (own.name, own.args) == ("look", b'{"n": "1"}')  # mended by whoever runs it
        settle(exchange)
        went_on = exchange.needs_another_round
        exchange.encode(MODEL)
        assert (went_on, exchange.needs_another_round, exchange.gateway_calls) == (True, False, ())
        out += heard(exchange, *ENDS) + exchange.finish()
        got = message(exchange, out)
        assert [block["text"] for block in got["content"]] == ["so\n\ndone"]
        assert got["stop_reason"] == "end_turn"
        assert (exchange.summary.usage.input_tokens, exchange.summary.usage.output_tokens) == (20, 10)
        assert exchange.summary.rounds == 2
        assert exchange.summary.calls == []
        assert [key[:7] for key, _ in exchange.store_entries] == ["hidden-"]

    def test_what_our_tools_used_themselves_is_counted(self, stream: bool) -> None:
        exchange = offered(stream=stream)
        out = exchange.open() + heard(exchange, *ASKS)
        results = [ToolResult(call_id=one.id, content=(Text(text="x"),)) for one in exchange.gateway_calls]
        exchange.add_results(results, spent=Usage(input_tokens=100, output_tokens=7, searches=2))
        exchange.encode(MODEL)
        out += heard(exchange, *ENDS) + exchange.finish()
        assert (exchange.summary.usage.input_tokens, exchange.summary.usage.output_tokens) == (120, 17)
        usage = message(exchange, out)["usage"]
        assert (usage["output_tokens"], usage["server_tool_use"]["web_search_requests"]) == (17, 2)

    def test_a_second_attempt_at_a_round_says_nothing_twice(self, stream: bool) -> None:
        exchange = offered(stream=stream)
        out = exchange.open() + heard(exchange, *ASKS)
        settle(exchange)
        exchange.encode(MODEL)
        broken = {"error": {"code": 503, "message": "high demand", "status": "UNAVAILABLE"}}
        assert heard(exchange, broken) == b""
        assert exchange.failure is not None
        assert exchange.gateway_calls == ()
        exchange.encode(MODEL)
        out += heard(exchange, *ENDS) + exchange.finish()
        assert [block["text"] for block in message(exchange, out)["content"]] == ["so\n\ndone"]
        assert exchange.summary.usage.input_tokens == 20

    def test_calls_of_an_answer_that_was_cut_are_not_run(self, stream: bool) -> None:
        exchange = offered(stream=stream)
        out = exchange.open() + heard(exchange, chunk(call("look", n=1), finish="MAX_TOKENS"))
        assert exchange.gateway_calls == ()
        assert message(exchange, out + exchange.finish())["stop_reason"] == "max_tokens"

    def test_a_mixed_step_leaves_the_clients_call(self, stream: bool) -> None:
        exchange = offered(stream=stream, tools=[READ])
        parts = (call("look", "c2ln", n=1), call("Read", a="1"))
        out = exchange.open() + heard(exchange, chunk(*parts, finish="STOP"))
        settle(exchange)
        assert not exchange.needs_another_round
        got = message(exchange, out + exchange.finish())
        assert [(block["name"], block["input"]) for block in got["content"]] == [("Read", {"a": 1})]
        assert got["stop_reason"] == "tool_use"
        assert [key[:13] for key, _ in exchange.store_entries] == ["hidden-toolu_"]

    def test_what_our_tools_used_in_a_mixed_step_is_told_to_the_client(self, stream: bool) -> None:
        exchange = offered(stream=stream, tools=[READ])
        both = chunk(call("look", "c2ln", n=1), call("Read"), finish="STOP", usageMetadata=USAGE)
        out = exchange.open() + heard(exchange, both)
        (own,) = exchange.gateway_calls
        answer = ToolResult(call_id=own.id, content=(Text(text="found"),))
        exchange.add_results([answer], spent=Usage(input_tokens=7, output_tokens=5, searches=2))
        got = message(exchange, out + exchange.finish())
        assert got["usage"]["server_tool_use"]["web_search_requests"] == 2
        told = USAGE["candidatesTokenCount"] + USAGE["thoughtsTokenCount"]
        assert exchange.summary.usage.output_tokens == 5 + told

    def test_what_is_shown_stays_whatever_becomes_of_the_round(self, stream: bool) -> None:
        exchange = offered(stream=stream)
        out = exchange.open() + exchange.send_events([TextDelta("(looking)")])
        heard(exchange, {"error": {"code": 503, "message": "high demand", "status": "UNAVAILABLE"}})
        exchange.encode(MODEL)
        out += heard(exchange, *ENDS) + exchange.finish()
        assert [block["text"] for block in message(exchange, out)["content"]] == ["(looking)done"]


def test_half_a_round_of_a_whole_answer_is_forgotten_with_its_attempt() -> None:
    exchange = offered()
    heard(exchange, *ASKS)
    settle(exchange)
    exchange.encode(MODEL)
    heard(exchange, chunk({"text": "do"}))
    exchange.encode(MODEL)
    heard(exchange, *ENDS)
    got = message(exchange, exchange.finish())
    assert [block["text"] for block in got["content"]] == ["so\n\ndone"]


def test_without_tools_of_ours_there_is_nothing_to_do() -> None:
    exchange = ready(stream=True)
    exchange.open()
    heard(exchange, *ENDS)
    assert exchange.gateway_calls == ()
    assert not exchange.needs_another_round
    exchange.add_results([])
    assert exchange.send_events([]) == b""
    assert [key for key, _ in exchange.store_entries] == []


def test_a_server_nobody_serves_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidRequest, match="'s' is not called from here") as refused:
        ready(mcp_servers=[{"type": "url", "name": "s", "url": "http://169.254.169.254"}])
    assert refused.value.where == "mcp_servers[0]"


def test_a_call_when_it_is_enough_leaves_nothing() -> None:
    exchange = offered()
    heard(exchange, *ASKS)
    results = [ToolResult(call_id=one.id) for one in exchange.gateway_calls]
    exchange.add_results(results, enough="the time is over")
    assert b"the time is over" in exchange.encode(MODEL)
    heard(exchange, chunk(call("look", n=1), finish="STOP"))
    assert not exchange.has_content
    assert exchange.gateway_calls == ()
    assert [note.kind for note in exchange.notes] == ["dropped"]


def test_what_was_hidden_goes_back_to_the_model() -> None:
    exchange = offered()
    heard(exchange, *ASKS)
    settle(exchange)
    exchange.encode(MODEL)
    heard(exchange, *ENDS)
    answer = message(exchange, exchange.finish())
    again = ready(user("q"), {"role": "assistant", "content": answer["content"]}, user("more"))
    rounds = ToolLoop(again.request, (LOOK,))
    again.add_tool_loop(rounds)
    assert rounds.places.keys() == dict(exchange.store_entries).keys()
    rounds.set_stored_rounds(dict(exchange.store_entries))
    roles = [content["role"] for content in json.loads(again.encode(MODEL))["contents"]]
    assert roles == ["user", "model", "user", "model", "user"]


class TestNative:
    """Gemini's own clients get what only Gemini says; a count of one round is not the count of all."""

    NATIVE = chunk({"executableCode": {"code": "1"}}, usageMetadata={**USAGE, "toolUsePromptTokenCount": 7})
    GROUNDED = chunk({"text": "done"}, finish="STOP", usageMetadata={**USAGE, "toolUsePromptTokenCount": 7})

    def answer(self, client: Any, request: bytes) -> tuple[Exchange, Json]:
        exchange = Exchange(client, new_token=lambda: "0" * 16)
        exchange.decode(request)
        exchange.add_tool_loop(ToolLoop(exchange.request, (LOOK,)))
        exchange.encode(MODEL)
        heard(exchange, self.NATIVE, chunk(call("look", "c2ln", n=1), finish="STOP"))
        settle(exchange)
        assert b"executableCode" in exchange.encode(MODEL)
        heard(exchange, self.GROUNDED)
        return exchange, json.loads(exchange.finish())

    def test_kept(self) -> None:
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
