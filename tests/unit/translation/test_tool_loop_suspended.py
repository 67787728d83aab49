"""Answers that stop at calls somebody else answers, and go on when the results have come."""

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


def offered(*, stream: bool, **fields: Any) -> tuple[Exchange, ToolLoop]:
    exchange = ready(stream=stream, **fields)
    rounds = ToolLoop(exchange.request, (LOOK, ASK))
    exchange.add_tool_loop(rounds)
    exchange.encode(MODEL)
    return exchange, rounds


def result(one: ToolCall, words: str) -> ToolResult:
    return ToolResult(call_id=one.id, name=one.name, content=(Text(text=words),))


def finished(exchange: Exchange, data: bytes) -> Json:
    rest = exchange.finish()
    return assembled(data + rest) if exchange.request.stream else dict(json.loads(rest))


both_ways = pytest.mark.parametrize("stream", [True, False])


@both_ways
@pytest.mark.parametrize(
    ("before", "wanted"), [("", "[waiting]"), ("Let me see.", "Let me see.\n\n[waiting]")]
)
def test_an_answer_ends_with_words_for_calls_that_others_answer(
    stream: bool, before: str, wanted: str
) -> None:
    exchange, rounds = offered(stream=stream)
    said = [{"text": before}] if before else []
    out = (
        exchange.open()
        + exchange.receive(sse(chunk(*said, call("ask", "c2ln"), finish="STOP")))
        + exchange.end()
    )
    (own,) = exchange.gateway_calls
    out += exchange.send_events(rounds.suspend((None,), {own.id}, "[waiting]"))
    key, record = rounds.build_record()
    message = finished(exchange, out)
    assert "".join(block["text"] for block in message["content"]) == wanted
    assert message["stop_reason"] == "end_turn"
    assert exchange.store_entries == []  # whoever waits for the results keeps it
    assert key.startswith("hidden-text-")
    assert [part.id for part in record.last.parts if isinstance(part, ToolCall)] == [own.id]
    assert record.results == ()


@both_ways
def test_what_is_answered_already_is_kept_and_the_next_request_is_whole(stream: bool) -> None:
    exchange, rounds = offered(stream=stream)
    out = (
        exchange.open()
        + exchange.receive(sse(chunk(call("look", "c2ln"), call("ask"), finish="STOP")))
        + exchange.end()
    )
    look, ask = exchange.gateway_calls
    out += exchange.send_events(rounds.suspend([result(look, "seen"), None], {ask.id}, "[waiting]"))
    key, record = rounds.build_record()
    message = finished(exchange, out)
    assert exchange.store_entries == []
    whole = record.with_results([result(ask, "told")])
    following = Exchange(anthropic, new_token=lambda: "0" * 16)
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


def test_behind_a_history_that_does_not_show_it_the_answer_goes_on() -> None:
    exchange, rounds = offered(stream=False)
    exchange.receive(sse(chunk({"text": "so"}, call("ask", "c2ln"), finish="STOP")))
    exchange.end()
    (ask,) = exchange.gateway_calls
    rounds.suspend((None,), {ask.id}, "[waiting]")
    _, record = rounds.build_record()
    again, resumed = offered(stream=False)
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
def test_a_client_with_calls_of_its_own_needs_no_words(stream: bool) -> None:
    exchange, rounds = offered(stream=stream, tools=[READ])
    parts = (call("ask", "c2ln"), call("Read", a="1"))
    out = exchange.open() + exchange.receive(sse(chunk(*parts, finish="STOP"))) + exchange.end()
    (own,) = exchange.gateway_calls
    assert rounds.suspend((None,), {own.id}, "[waiting]") == ()
    key, record = rounds.build_record()
    message = finished(exchange, out)
    (block,) = message["content"]
    assert (block["name"], message["stop_reason"]) == ("Read", "tool_use")
    assert key == f"hidden-{block['id']}"
    ask = next(part for part in record.last.parts if isinstance(part, ToolCall) and part.name == "ask")
    alone = record.with_results([result(ask, "told")]).to_messages()
    assert [part.name for part in alone[0].parts if isinstance(part, ToolCall)] == ["ask"]


@both_ways
def test_a_client_that_was_asked_something_in_the_same_step_needs_none_either(stream: bool) -> None:
    exchange, rounds = offered(stream=stream)
    exchange.receive(sse(chunk(call("look", "c2ln"), call("ask"), finish="STOP")))
    exchange.end()
    look, ask = exchange.gateway_calls
    assert rounds.suspend((None, None), {ask.id}, "[waiting]") == ()
    assert rounds.build_record()[0] == f"hidden-{look.id}"
    assert exchange.gateway_calls == ()


def test_an_answer_that_showed_nothing_has_no_place() -> None:
    rounds = ToolLoop(Request(model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),)), ())
    assert rounds.build_record()[0] == ""
    assert rounds.store_entries() == []


def test_a_record_that_cannot_be_read_is_lost() -> None:
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
def test_a_choice_names_what_is_declared(names: tuple[str, ...], wanted: tuple[str, ...] | None) -> None:
    request = Request(model="m", messages=(), tools=(Tool(name="look"), Tool(name="Read")))
    rounds = ToolLoop(request, (LOOK, ASK), choice=ToolChoice(mode="any", names=names))
    choice = rounds.next_request(()).tool_choice
    assert (choice.names if choice.mode == "any" else None) == wanted
