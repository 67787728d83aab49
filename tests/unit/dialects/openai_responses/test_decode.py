"""The fields of a request around its items."""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec
import pytest

from dragoman.dialects import openai_responses
from dragoman.dialects.openai_responses.encode import DEFAULTS
from dragoman.ir import Message, OutputFormat, Sampling, Text, Thinking
from tests.unit.dialects.openai_responses.builders import (
    Json,
    body,
    call,
    decode,
    function,
    message,
    messages,
    notes,
    output,
    reasoning,
    refusal,
    refused,
    request,
    user,
)


def test_a_string_is_what_the_user_says() -> None:
    got = openai_responses.decode_request(b'{"model":"m","input":"2+2?"}', {}).request
    assert got.messages == (Message(role="user", parts=(Text(text="2+2?"),)),)
    assert (got.model, got.stream, got.session, got.tools) == ("m", False, "", ())


def test_the_developers_first_words_are_instructions_and_later_ones_keep_their_place() -> None:
    got = request(
        message("developer", "base prompt"),
        message("system", {"type": "input_text", "text": "more"}),
        user("hi"),
        message("developer", "mind the gap"),
        instructions="be brief",
    )
    assert [text.text for text in got.system] == ["be brief", "base prompt", "more"]
    assert [said.role for said in got.messages] == ["user", "system"]


def test_a_conversation_of_nothing_but_instructions_still_asks_something() -> None:
    got = request(message("developer", "write a poem"))
    assert got.system == ()
    assert [said.role for said in got.messages] == ["system"]


def test_a_picture_among_the_first_instructions_is_not_lost() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    got = request(message("developer", "look", picture), user("hi"))
    assert got.system == ()
    assert [said.role for said in got.messages] == ["system", "user"]


def test_items_of_one_voice_are_one_message_and_results_stay_apart() -> None:
    got = messages(
        user("a"),
        user("b"),
        reasoning(),
        message("assistant", {"type": "output_text", "text": "ok"}),
        call("call_1"),
        call("call_2"),
        output(call_id="call_1"),
        output(call_id="call_2"),
        user("and now?"),
    )
    assert [(said.role, len(said.parts)) for said in got] == [
        ("user", 2),
        ("model", 4),
        ("user", 2),
        ("user", 1),
    ]


def test_the_same_history_is_the_very_same_messages_so_that_nothing_is_encoded_twice() -> None:
    history = [user("a"), reasoning("call_1"), call(), output()]
    first, again = messages(*history), messages(*history, message("assistant", "x"), user("b"))
    assert all(one is other for one, other in zip(first, again, strict=False))
    shorter = messages(*history[:2], user("c"))
    assert shorter[1] != first[1]
    assert messages(*history) == first


def test_a_history_that_begins_alike_is_not_taken_for_the_same() -> None:
    assert messages(user("a"), user("b"))[0].parts[1] == Text(text="b")
    assert messages(user("a"), user("c"))[0].parts[1] == Text(text="c")
    assert len(messages(user("a"))[0].parts) == 1


@pytest.mark.parametrize(
    ("reasoning", "thinking"),
    [
        (None, Thinking()),
        ({}, Thinking(mode="on")),
        ({"summary": "auto"}, Thinking(mode="on", show=True)),
        ({"generate_summary": "concise"}, Thinking(mode="on", show=True)),
        ({"effort": "none"}, Thinking(mode="off")),
        ({"effort": "minimal"}, Thinking(mode="on", effort="minimal")),
        ({"effort": "high", "summary": None}, Thinking(mode="on", effort="high")),
        ({"effort": "xhigh", "context": "all_turns"}, Thinking(mode="on", effort="max")),
    ],
)
def test_reasoning(reasoning: Json | None, thinking: Thinking) -> None:
    assert request(reasoning=reasoning).thinking == thinking


def test_an_unknown_effort_is_dropped_with_a_note() -> None:
    assert request(reasoning={"effort": "heroic"}).thinking == Thinking(mode="on")
    assert notes(reasoning={"effort": "heroic"}) == ["dropped reasoning.effort: 'heroic' is not known"]


SCHEMA = {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (None, None),
        ({"verbosity": "medium"}, None),
        ({"format": {"type": "text"}}, None),
        ({"format": {"type": "json_object"}}, OutputFormat()),
        ({"format": {"type": "json_schema", "name": "r"}}, OutputFormat()),
        (
            {"format": {"type": "json_schema", "name": "r", "strict": True, "schema": SCHEMA}},
            OutputFormat(schema=json.dumps(SCHEMA).encode()),
        ),
    ],
)
def test_the_form_of_the_answer(text: Json | None, wanted: OutputFormat | None) -> None:
    assert request(text=text).output == wanted
    assert notes(text=text) == []


def test_sampling_and_limits() -> None:
    got = request(max_output_tokens=256, temperature=0.1, top_p=0.5, stream=True)
    assert got.sampling == Sampling(max_tokens=256, temperature=0.1, top_p=0.5)
    assert got.stream


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"max_tool_calls": 3}, "max_tool_calls"),
        ({"top_logprobs": 5}, "top_logprobs"),
        ({"truncation": "auto"}, "truncation"),
        ({"context_management": [{"type": "compaction"}]}, "context_management"),
        ({"moderation": {"model": "m"}}, "moderation"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
    ],
)
def test_tuning_that_gemini_does_not_know_is_said(fields: Json, where: str) -> None:
    (note,) = decode(**fields).notes
    assert (note.kind, note.where) == ("dropped", where)


def test_what_clients_add_for_their_own_sake_is_taken_in_silence() -> None:
    assert (
        notes(
            store=False,
            include=["reasoning.encrypted_content"],
            client_metadata={"x": "y"},
            metadata={"a": "b"},
            service_tier="auto",
            user="u",
            safety_identifier="s",
            stream_options={"include_obfuscation": False},
            previous_response_id="resp_0",
            conversation={"id": "conv_1"},
            truncation="disabled",
            prompt=None,
            moderation=None,
            context_management=None,
        )
        == []
    )


@pytest.mark.parametrize(
    ("fields", "headers", "session"),
    [
        ({"prompt_cache_key": "p", "conversation": "c"}, {"session_id": "s"}, "p"),
        ({"conversation": "c"}, {"session_id": "s"}, "c"),
        ({"conversation": {"id": "c"}}, {}, "c"),
        ({}, {"session_id": "s"}, "s"),
        ({}, {}, ""),
    ],
)
def test_the_session_is_what_the_client_calls_it(fields: Json, headers: dict[str, str], session: str) -> None:
    assert decode(headers=headers, **fields).request.session == session


@pytest.mark.parametrize(
    ("fields", "where", "words"),
    [
        ({"background": True}, "background", "not offered"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt", "cannot be read here"),
        ({"input": []}, "input", "at least one"),
        ({"input": None}, "input", "at least one"),
        ({"input": 5}, "input", "Expected"),
        ({"input": [{"type": "hologram"}]}, "input[0]", "'hologram' are not understood"),
        ({"input": [{"role": "wizard", "content": "x"}]}, "input[0].role", "not a role"),
        ({"input": [5]}, "input[0]", "Expected `object`"),
        ({"text": {"format": 5}}, "text.format", "Expected"),
        ({"reasoning": "hard"}, "reasoning", "Expected"),
        ({"temperature": "hot"}, "temperature", "Expected"),
    ],
)
def test_a_refusal_names_the_place(fields: Json, where: str, words: str) -> None:
    error = refused(**fields)
    assert error.where == where
    assert words in str(error)


def test_the_place_of_the_same_mistake_follows_its_item() -> None:
    wrong = {"role": "user", "content": [{"type": "input_text", "text": "x"}, {"type": "smell"}]}
    assert refused(wrong).where == "input[0].content[1]"
    assert refused(user("a"), user("b"), wrong).where == "input[2].content[1]"


def test_half_a_character_does_not_break_a_request() -> None:
    raw = b'{"model":"m","input":[{"role":"user","content":"cut \\ud83d"}],"metadata":{"k":"\\ud83d"}}'
    decoded = openai_responses.decode_request(raw, {})
    assert decoded.request.messages[0].parts == (Text(text="cut \ufffd"),)
    assert bytes(decoded.echo.fields["metadata"]) == b'{"k":"\\ufffd"}'


def test_no_json_is_refused() -> None:
    assert refusal(b"").message == "the body is empty"
    assert "not valid JSON" in refusal(b"{").message
    assert "nested too deeply" in refusal(b'{"model":"m","input":' + b"[" * 9999 + b"]" * 9999 + b"}").message
    assert "UTF-8" in refusal(b'{"model":"m","input":[{"role":"user","content":"\xff"}]}').message


def test_the_answer_will_repeat_the_request() -> None:
    tools = [function()]
    fields: dict[str, Any] = {
        "instructions": "be brief",
        "tools": tools,
        "tool_choice": {"type": "function", "name": "read"},
        "metadata": {"a": "b"},
        "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "reasoning": {"effort": "low", "summary": "auto"},
        "temperature": 0.5,
        "top_p": 0.9,
        "truncation": "disabled",
        "parallel_tool_calls": False,
        "max_output_tokens": 77,
        "max_tool_calls": 3,
        "previous_response_id": "resp_0",
        "prompt_cache_key": "p",
        "safety_identifier": "s",
        "store": False,
        "user": "u",
    }
    echoed = decode(conversation="conv_1", service_tier="auto", **fields).echo.fields
    plain = json.loads(msgspec.json.encode(echoed))
    assert {key: plain[key] for key in fields} == fields
    assert plain["conversation"] == {"id": "conv_1"}
    assert plain["service_tier"] == "default"


def test_what_the_request_does_not_say_has_the_apis_own_defaults_in_the_answer() -> None:
    nulls = dict.fromkeys(("tools", "tool_choice", "metadata", "text", "parallel_tool_calls", "store"))
    for fields in ({}, nulls):
        assert json.loads(msgspec.json.encode(decode(**fields).echo.fields)) == DEFAULTS


@pytest.mark.parametrize(
    ("fields", "carries"),
    [
        ({}, False),
        ({"include": []}, False),
        ({"include": ["message.output_text.logprobs"]}, False),
        ({"include": ["reasoning.encrypted_content"]}, True),
        ({"reasoning": {"effort": "low"}}, True),
        ({"reasoning": None, "include": []}, False),
    ],
)
def test_g4_reasoning_items_go_to_those_who_asked(fields: Json, carries: bool) -> None:
    assert decode(**fields).echo.carries is carries


def test_an_open_stream_does_not_keep_the_body_alive() -> None:
    raw = body(user("x" * 100_000), reasoning(), metadata={"a": "b"}, tools=[function()])
    before = sys.getrefcount(raw)
    echo = openai_responses.decode_request(raw, {}).echo
    assert echo.fields["metadata"]
    assert sys.getrefcount(raw) == before
