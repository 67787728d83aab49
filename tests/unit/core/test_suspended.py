"""Answers that stop at calls somebody else answers, and go on when the results have come."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import anthropic
from dragoman.exchange import Exchange
from dragoman.ir import Message, Request, Text, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.repair import Hidden, read_hidden
from dragoman.rounds import Rounds
from tests.unit.dialects.anthropic.streaming import assembled
from tests.unit.test_exchange import MODEL, READ, call, chunk, ready, sse

Json = dict[str, Any]

LOOK, ASK = Tool(name="look"), Tool(name="ask")


def offered(*, stream: bool, **fields: Any) -> tuple[Exchange, Rounds]:
    exchange = ready(stream=stream, **fields)
    rounds = Rounds(exchange.request, (LOOK, ASK))
    exchange.offer(rounds)
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
    (own,) = exchange.own_calls
    out += exchange.show(rounds.suspend((None,), {own.id}, "[waiting]"))
    key, record = rounds.record()
    message = finished(exchange, out)
    assert "".join(block["text"] for block in message["content"]) == wanted
    assert message["stop_reason"] == "end_turn"
    assert exchange.memories == []  # whoever waits for the results keeps it
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
    look, ask = exchange.own_calls
    out += exchange.show(rounds.suspend([result(look, "seen"), None], {ask.id}, "[waiting]"))
    key, record = rounds.record()
    message = finished(exchange, out)
    assert exchange.memories == []
    whole = record.plus([result(ask, "told")])
    following = Exchange(anthropic, new_token=lambda: "0" * 16)
    (asked,) = exchange.request.messages
    words = [{"type": "text", "text": part.text} for part in asked.parts if isinstance(part, Text)]
    said = (words, message["content"], "go on")
    history = [
        {"role": role, "content": one} for role, one in zip(("user", "assistant", "user"), said, strict=True)
    ]
    following.decode(json.dumps({"model": "m", "max_tokens": 9, "messages": history}).encode())
    again = Rounds(following.request, (LOOK, ASK))
    assert key in again.places
    following.offer(again)
    again.remind({"hidden-of-somebody-else": "x"})
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
    (ask,) = exchange.own_calls
    rounds.suspend((None,), {ask.id}, "[waiting]")
    _, record = rounds.record()
    again, resumed = offered(stream=False)
    resumed.resume({}, [record.plus([result(ask, "told")])])
    body = json.loads(again.encode(MODEL))
    assert [content["role"] for content in body["contents"]] == ["user", "model", "user"]
    assert again.facts.rounds == 2
    assert not again.goes_on
    again.receive(sse(chunk({"text": "thanks"}, finish="STOP")))
    message = json.loads(again.finish())
    assert [block["text"] for block in message["content"]] == ["thanks"]
    ((_, word),) = again.memories
    kept = read_hidden(word)
    assert kept is not None
    assert len(kept.rounds) == 2


@both_ways
def test_a_client_with_calls_of_its_own_needs_no_words(stream: bool) -> None:
    exchange, rounds = offered(stream=stream, tools=[READ])
    parts = (call("ask", "c2ln"), call("Read", a="1"))
    out = exchange.open() + exchange.receive(sse(chunk(*parts, finish="STOP"))) + exchange.end()
    (own,) = exchange.own_calls
    assert rounds.suspend((None,), {own.id}, "[waiting]") == ()
    key, record = rounds.record()
    message = finished(exchange, out)
    (block,) = message["content"]
    assert (block["name"], message["stop_reason"]) == ("Read", "tool_use")
    assert key == f"hidden-{block['id']}"
    ask = next(part for part in record.last.parts if isinstance(part, ToolCall) and part.name == "ask")
    alone = record.plus([result(ask, "told")]).closed()
    assert [part.name for part in alone[0].parts if isinstance(part, ToolCall)] == ["ask"]


@both_ways
def test_a_client_that_was_asked_something_in_the_same_step_needs_none_either(stream: bool) -> None:
    exchange, rounds = offered(stream=stream)
    exchange.receive(sse(chunk(call("look", "c2ln"), call("ask"), finish="STOP")))
    exchange.end()
    look, ask = exchange.own_calls
    assert rounds.suspend((None, None), {ask.id}, "[waiting]") == ()
    assert rounds.record()[0] == f"hidden-{look.id}"
    assert exchange.own_calls == ()


def test_an_answer_that_showed_nothing_has_no_place() -> None:
    rounds = Rounds(Request(model="m", messages=(Message(role="user", parts=(Text(text="hi"),)),)), ())
    assert rounds.record()[0] == ""
    assert rounds.memory() == []


def test_a_record_that_cannot_be_read_is_lost() -> None:
    assert read_hidden("nonsense") is None
    kept = Hidden(last=Message(role="model", parts=(Text(text="x"),)))
    assert read_hidden(kept.encode()) == kept


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
    rounds = Rounds(request, (LOOK, ASK), choice=ToolChoice(mode="any", names=names))
    choice = rounds.ask(()).tool_choice
    assert (choice.names if choice.mode == "any" else None) == wanted
