"""Other forms of the same request, for a back end that refused the first one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.ir import Message, Request, Sampling, Text, Thinking, Tool
from dragoman.notes import Note
from dragoman.translation.exchange import Exchange

SCHEMA = b'{"type":"object","properties":{"n":{"type":"integer","minimum":1}}}'
REQUEST = Request(
    model="m",
    messages=(Message(role="user", parts=(Text(text="hi"),)),),
    tools=(Tool(name="look", schema=SCHEMA, where="tools[0]"),),
    thinking=Thinking(mode="on", effort="high"),
    sampling=Sampling(max_tokens=99),
)


def encoded(request: Request = REQUEST, **form: Any) -> tuple[Any, tuple[Note, ...]]:
    found = gemini.encode_request(request, Target(model="gemini-3.5-flash", **form), lambda: "id")
    return json.loads(found.body), found.notes


@pytest.mark.parametrize(
    ("place", "gone"),
    [
        ("generation_config.maxOutputTokens", "maxOutputTokens"),
        ("generation_config.thinking_config.thinking_level", "thinkingLevel"),
        ("toolConfig", "toolConfig"),
        ("tools", "functionDeclarations"),
    ],
)
def test_what_a_back_end_does_not_know_is_left_away_with_a_note(place: str, gone: str) -> None:
    usual, _ = encoded()
    body, notes = encoded(omit_fields=(place,))
    assert gone not in json.dumps(body)
    assert body["contents"] == usual["contents"]
    told = [note for note in notes if note.why == "this back end does not know it"]
    assert len(told) == (1 if gone in json.dumps(usual) else 0)


@pytest.mark.parametrize(
    "place", ["nowhere", "nowhere.at_all", "generation_config.max_output_tokens.deeper", ""]
)
def test_what_is_not_there_cannot_be_left_away(place: str) -> None:
    assert encoded(omit_fields=(place,)) == encoded()


def test_b12_relaxed_schemas_have_their_rules_in_words() -> None:
    body, notes = encoded(relaxed_schemas=True)
    number = body["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"]["properties"]["n"]
    assert number == {"type": "integer", "description": "At least 1."}
    assert [note.where for note in notes if note.kind == "moved"] == [
        "tools[0].input_schema.properties.n.minimum"
    ]


def test_c11_a_history_that_google_refuses_is_told() -> None:
    from dragoman.dialects import anthropic

    use = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "rain"}
    messages = [{"role": "user", "content": "go"}, {"role": "assistant", "content": [use]}]
    body = {"model": "m", "max_tokens": 9, "messages": [*messages, {"role": "user", "content": [result]}]}
    exchange = Exchange(anthropic, new_id=lambda: "x")
    exchange.decode(json.dumps(body).encode())
    sent = json.loads(exchange.encode(Target(model="gemini-3.5-flash", history_as_text=True)))
    assert [content["role"] for content in sent["contents"]] == ["user", "model", "user"]
    assert "functionCall" not in json.dumps(sent)
    assert "functionResponse" not in json.dumps(sent)
    assert "rain" in json.dumps(sent)
    assert any("told in words" in note.why for note in exchange.notes)
