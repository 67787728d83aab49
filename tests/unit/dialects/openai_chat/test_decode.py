"""The body around the messages: sampling, formats, what is dropped and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.dialects import openai_chat
from dragoman.dialects.openai_chat import decode as decode_module
from dragoman.dialects.openai_chat.encode import Echo
from dragoman.ir import OutputFormat, Request, Sampling, Text, Thinking
from tests.unit.dialects.openai_chat.builders import (
    Json,
    assistant,
    call,
    decode,
    noted,
    refusal,
    refused,
    request,
    result,
    tool,
    user,
)


def test_the_smallest_request() -> None:
    asked = decode()
    assert asked.request == Request(model="m", messages=request().messages)
    assert asked.notes == ()


SAMPLING: dict[str, tuple[Json, Sampling]] = {
    "older limit": ({"max_tokens": 5}, Sampling(max_tokens=5)),
    "newer limit": ({"max_completion_tokens": 5}, Sampling(max_tokens=5)),
    "the newer one wins": ({"max_completion_tokens": 5, "max_tokens": 9}, Sampling(max_tokens=5)),
    "one stop": ({"stop": "END"}, Sampling(stop=("END",))),
    "more stops": ({"stop": ["a", "b"]}, Sampling(stop=("a", "b"))),
    "no stop": ({"stop": None}, Sampling()),
    "everything": (
        {
            "temperature": 1,
            "top_p": 0.5,
            "top_k": 3,
            "seed": 7,
            "presence_penalty": 0.1,
            "frequency_penalty": -0.2,
        },
        Sampling(temperature=1.0, top_p=0.5, top_k=3, seed=7, presence_penalty=0.1, frequency_penalty=-0.2),
    ),
}


@pytest.mark.parametrize("name", SAMPLING)
def test_sampling(name: str) -> None:
    fields, expected = SAMPLING[name]
    assert request(**fields).sampling == expected
    assert noted(**fields) == []


EFFORTS: dict[str | None, Thinking] = {
    None: Thinking(),
    "": Thinking(),
    "none": Thinking(mode="off"),
    "minimal": Thinking(mode="on", effort="minimal", show=True),
    "low": Thinking(mode="on", effort="low", show=True),
    "medium": Thinking(mode="on", effort="medium", show=True),
    "high": Thinking(mode="on", effort="high", show=True),
    "xhigh": Thinking(mode="on", effort="max", show=True),
    "max": Thinking(mode="on", effort="max", show=True),
}


@pytest.mark.parametrize("word", EFFORTS)
def test_reasoning_effort(word: str | None) -> None:
    assert request(reasoning_effort=word).thinking == EFFORTS[word]
    assert noted(reasoning_effort=word) == []


def test_an_unknown_effort_is_the_models_own() -> None:
    assert request(reasoning_effort="heroic").thinking == Thinking()
    assert noted(reasoning_effort="heroic") == [("dropped", "reasoning_effort")]


FORMATS: dict[str, tuple[Any, OutputFormat | None]] = {
    "nothing": (None, None),
    "text": ({"type": "text"}, None),
    "json": ({"type": "json_object"}, OutputFormat()),
    "schema": (
        {"type": "json_schema", "json_schema": {"name": "r", "strict": True, "schema": {"type": "object"}}},
        OutputFormat(schema=b'{"type": "object"}'),
    ),
    "schema without one": ({"type": "json_schema", "json_schema": {"name": "r"}}, OutputFormat()),
    "null schema": ({"type": "json_schema", "json_schema": {"schema": None}}, OutputFormat()),
    "nothing behind the word": ({"type": "json_schema"}, OutputFormat()),
}


@pytest.mark.parametrize("name", FORMATS)
def test_response_format(name: str) -> None:
    wire, expected = FORMATS[name]
    assert request(response_format=wire).output == expected
    assert noted(response_format=wire) == []


def test_the_stream_and_its_usage() -> None:
    assert not request(stream=None).stream
    assert request(stream=True).stream
    assert decode(stream=True, stream_options={"include_usage": True}).echo == Echo(include_usage=True)
    assert decode(stream=True, stream_options={"include_usage": None}).echo == Echo()
    assert decode(stream=True, stream_options={"include_obfuscation": False}).echo == Echo()


def test_the_cache_key_names_the_session() -> None:
    assert request(prompt_cache_key="s1").session == "s1"
    assert request(prompt_cache_key=None).session == ""


#: What clients send beside all this, and a value that asks for nothing.
TUNING: dict[str, tuple[Any, Any]] = {
    "audio": ({"voice": "x"}, None),
    "enable_thinking": (True, False),
    "extra_body": ({"a": 1}, {}),
    "logit_bias": ({"50256": -100}, {}),
    "logprobs": (True, False),
    "metadata": ({"a": "b"}, {}),
    "min_p": (0.1, 0),
    "moderation": ({"model": "x"}, None),
    "prediction": ({"type": "content", "content": "x"}, None),
    "prompt_cache_options": ({"ttl": "30m"}, {}),
    "prompt_cache_retention": ("24h", None),
    "reasoning": ({"effort": "low"}, {}),
    "repetition_penalty": (1.1, None),
    "safety_identifier": ("u", ""),
    "service_tier": ("flex", "auto"),
    "store": (True, False),
    "thinking": ({"type": "enabled"}, None),
    "top_logprobs": (5, 0),
    "user": ("u", None),
    "verbosity": ("low", None),
}


@pytest.mark.parametrize("field", TUNING)
def test_tuning_without_a_twin_is_dropped_with_a_note(field: str) -> None:
    asks, idle = TUNING[field]
    assert noted(**{field: asks}) == [("dropped", field)]
    assert noted(**{field: idle}) == []


def test_every_field_that_is_dropped_is_in_the_table() -> None:
    assert list(decode_module._DROPPED) == list(TUNING)


def test_fields_nobody_knows_are_tolerated() -> None:
    assert noted(brand_new={"x": 1}) == []


REFUSED: dict[str, tuple[Json, str, str]] = {
    "several answers": ({"n": 2}, "n", "one request gets one answer"),
    "audio answers": ({"modalities": ["text", "audio"]}, "modalities[1]", "text only, not audio"),
    "unknown format": ({"response_format": {"type": "grammar"}}, "response_format.type", "'grammar' is not"),
    "schema of another kind": (
        {"response_format": {"type": "json_schema", "json_schema": {"schema": 7}}},
        "response_format.json_schema.schema",
        "Expected `object`",
    ),
    "temperature in words": ({"temperature": "hot"}, "temperature", "Expected `float | null`"),
    "stop of numbers": ({"stop": [1]}, "stop[0]", "Expected `str`"),
    "model": ({"model": 7}, "model", "Expected `str`"),
    "messages": ({"messages": "hi"}, "messages", "Expected `array`"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_served_is_refused_with_its_place(name: str) -> None:
    fields, where, why = REFUSED[name]
    error = refused(**fields)
    assert (error.where, why in error.message) == (where, True), error


def test_what_is_allowed_beside_it() -> None:
    assert noted(n=1, modalities=["text"]) == []
    assert noted(n=None, modalities=None) == []


@pytest.mark.parametrize(
    ("raw", "where", "why"),
    [
        (b"", "", "the body is empty"),
        (b"{", "", "not valid JSON"),
        (b"[]", "", "Expected `object`"),
        (b'{"messages":[{"role":"user","content":"x"}]}', "", "missing required field `model`"),
        (b'{"model":"m"}', "", "missing required field `messages`"),
        (b'{"model":"m","messages":[]}', "messages", "at least one message"),
        (b'{"model":"m","messages":[{"role":"user","content":"\xff"}]}', "messages[0]", "not valid UTF-8"),
        (
            b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"function":{"name":"\xff"}}]}',
            "tools",
            "not valid UTF-8",
        ),
    ],
)
def test_broken_bodies_are_refused(raw: bytes, where: str, why: str) -> None:
    error = refusal(raw)
    assert (error.where, why in error.message) == (where, True), error


def test_half_a_character_costs_nothing_else() -> None:
    raw = b'{"model":"m","messages":[{"role":"user","content":"a\\ud83d b"}]}'
    (message,) = openai_chat.decode_request(raw, {}).request.messages
    assert message.parts == (Text(text="a\ufffd b"),)


def test_the_history_is_decoded_once() -> None:
    start = (user("q"), assistant("x", call()), result("y"))
    tools = [tool("f")]
    first = request(*start, tools=tools)
    second = request(*start, assistant("done"), user("more"), tools=tools)
    assert all(one is other for one, other in zip(first.messages, second.messages, strict=False))
    assert first.tools is second.tools


def test_the_same_mistake_is_named_where_it_stands() -> None:
    wrong = {"role": "tool", "content": "x"}
    assert refused(wrong).where == "messages[0].tool_call_id"
    assert refused(user("a"), user("b"), wrong).where == "messages[2].tool_call_id"


def test_notes_of_a_known_message_name_its_place() -> None:
    named = {"role": "user", "content": "x", "name": "bob"}
    assert noted(named) == [("dropped", "messages[0].name")]
    assert noted(user("a"), named) == [("dropped", "messages[1].name")]
