"""Suspended answers: they end at calls whose results come from elsewhere, and resume when these have arrived."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import anthropic
from dragoman.ir import Message, Request, Text, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.translation.exchange import Exchange
from dragoman.translation.repair import HiddenRounds, decode_hidden
from dragoman.translation.tool_loop import ToolLoop
from tests.unit.dialects.anthropic.stream_checks import assembled
from tests.unit.translation.test_exchange import MODEL, READ, call, chunk, ready, sse

Json = dict[str, Any]

LOOK, ASK = Tool(name="look"), Tool(name="ask")


def exchange_with_tools(*, stream: bool, **fields: Any) -> tuple[Exchange, ToolLoop]:
    exchange = ready(stream=stream, **fields)
    tool_loop = ToolLoop(exchange.request, (LOOK, ASK))
    exchange.add_tool_loop(tool_loop)
    exchange.encode(MODEL)
    return exchange, tool_loop


def result(one: ToolCall, words: str) -> ToolResult:
    return ToolResult(call_id=one.id, name=one.name, content=(Text(text=words),))


def finish(exchange: Exchange, data: bytes) -> Json:
    rest = exchange.finish()
    return assembled(data + rest) if exchange.request.stream else dict(json.loads(rest))


both_ways = pytest.mark.parametrize("stream", [True, False])


@both_ways
@pytest.mark.parametrize(
    ("before", "wanted"), [("", "[waiting]"), ("Let me see.", "Let me see.\n\n[waiting]")]
)
def test_a_suspended_answer_ends_with_a_placeholder_text(stream: bool, before: str, wanted: str) -> None:
    exchange, tool_loop = exchange_with_tools(stream=stream)
    said = [{"text": before}] if before else []
    out = (
        exchange.open()
        + exchange.receive(sse(chunk(*said, call("ask", "c2ln"), finish="STOP")))
        + exchange.end()
    )
    (gateway_call,) = exchange.gateway_calls
    out += exchange.send_events(tool_loop.suspend((None,), {gateway_call.id}, "[waiting]"))
    key, record = tool_loop.build_record()
    message = finish(exchange, out)
    assert "".join(block["text"] for block in message["content"]) == wanted
    assert message["stop_reason"] == "end_turn"
    assert exchange.store_entries == []  # the code that waits for the results stores the record
    assert key.startswith("hidden-text-")
    assert [part.id for part in record.last.parts if isinstance(part, ToolCall)] == [gateway_call.id]
    assert record.results == ()


@both_ways
def test_results_of_a_suspended_answer_are_restored_in_the_next_request(stream: bool) -> None:
    exchange, tool_loop = exchange_with_tools(stream=stream)
    out = (
        exchange.open()
        + exchange.receive(sse(chunk(call("look", "c2ln"), call("ask"), finish="STOP")))
        + exchange.end()
    )
    look, ask = exchange.gateway_calls
    out += exchange.send_events(tool_loop.suspend([result(look, "seen"), None], {ask.id}, "[waiting]"))
    key, record = tool_loop.build_record()
    message = finish(exchange, out)
    assert exchange.store_entries == []
    whole = record.with_results([result(ask, "told")])
    following = Exchange(anthropic, new_id=lambda: "0" * 16)
    (asked,) = exchange.request.messages
    words = [{"type": "text", "text": part.text} for part in asked.parts if isinstance(part, Text)]
    said = (words, message["content"], "go on")
    history = [
        {"role": role, "content": one} for role, one in zip(("user", "assistant", "user"), said, strict=True)
    ]
    following.decode(json.dumps({"model": "m", "max_tokens": 9, "messages": history}).encode())
    again = ToolLoop(following.request, (LOOK, ASK))
    assert key in again.places
    following.add_tool_loop(again)
    again.set_stored_rounds({"hidden-of-somebody-else": "x"})
    again.resume({key: whole.encode()})
    body = json.loads(following.encode(MODEL))
    calls, responses = body["contents"][1:3]
    assert [part["functionCall"]["name"] for part in calls["parts"]] == ["look", "ask"]
    assert [part["functionResponse"]["response"]["output"] for part in responses["parts"]] == ["seen", "told"]
    assert body["contents"][3]["parts"] == [{"text": "go on"}]


def test_an_answer_that_the_history_does_not_show_resumes_after_it() -> None:
    exchange, tool_loop = exchange_with_tools(stream=False)
    exchange.receive(sse(chunk({"text": "so"}, call("ask", "c2ln"), finish="STOP")))
    exchange.end()
    (ask,) = exchange.gateway_calls
    tool_loop.suspend((None,), {ask.id}, "[waiting]")
    _, record = tool_loop.build_record()
    again, resumed = exchange_with_tools(stream=False)
    resumed.resume({}, [record.with_results([result(ask, "told")])])
    body = json.loads(again.encode(MODEL))
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]
    assert again.summary.rounds == 2
    assert not again.needs_another_round
    again.receive(sse(chunk({"text": "thanks"}, finish="STOP")))
    message = json.loads(again.finish())
    assert [block["text"] for block in message["content"]] == ["thanks"]
    ((_, word),) = again.store_entries
    kept = decode_hidden(word)
    assert kept is not None
    assert len(kept.rounds) == 2


@both_ways
def test_a_client_with_a_call_of_its_own_gets_no_placeholder(stream: bool) -> None:
    exchange, tool_loop = exchange_with_tools(stream=stream, tools=[READ])
    parts = (call("ask", "c2ln"), call("Read", a="1"))
    out = exchange.open() + exchange.receive(sse(chunk(*parts, finish="STOP"))) + exchange.end()
    (gateway_call,) = exchange.gateway_calls
    assert tool_loop.suspend((None,), {gateway_call.id}, "[waiting]") == ()
    key, record = tool_loop.build_record()
    message = finish(exchange, out)
    (block,) = message["content"]
    assert (block["name"], message["stop_reason"]) == ("Read", "tool_use")
    assert key == f"hidden-{block['id']}"
    ask = next(part for part in record.last.parts if isinstance(part, ToolCall) and part.name == "ask")
    alone = record.with_results([result(ask, "told")]).to_messages()
    assert [part.name for part in alone[0].parts if isinstance(part, ToolCall)] == ["ask"]


@both_ways
def test_a_client_that_is_asked_for_approval_gets_no_placeholder(stream: bool) -> None:
    exchange, tool_loop = exchange_with_tools(stream=stream)
    exchange.receive(sse(chunk(call("look", "c2ln"), call("ask"), finish="STOP")))
    exchange.end()
    look, ask = exchange.gateway_calls
    assert tool_loop.suspend((None, None), {ask.id}, "[waiting]") == ()
    assert tool_loop.build_record()[0] == f"hidden-{look.id}"
    assert exchange.gateway_calls == ()


def test_an_answer_that_showed_nothing_has_no_key() -> None:
    tool_loop = ToolLoop(Request(model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),)), ())
    assert tool_loop.build_record()[0] == ""
    assert tool_loop.store_entries() == []


def test_a_damaged_record_is_ignored() -> None:
    assert decode_hidden("nonsense") is None
    kept = HiddenRounds(last=Message(role="model", parts=(Text(text="x"),)))
    assert decode_hidden(kept.encode()) == kept


@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        ((), ()),
        (("look",), ("gateway_look",)),
        (("ask", "Read", "nobody"), ("ask", "Read")),
        (("nobody",), None),
    ],
)
def test_a_tool_choice_names_declared_tools_only(
    names: tuple[str, ...], wanted: tuple[str, ...] | None
) -> None:
    request = Request(model="m", messages=(), tools=(Tool(name="look"), Tool(name="Read")))
    tool_loop = ToolLoop(request, (LOOK, ASK), tool_choice=ToolChoice(mode="any", names=names))
    choice = tool_loop.next_request(()).tool_choice
    assert (choice.names if choice.mode == "any" else None) == wanted
