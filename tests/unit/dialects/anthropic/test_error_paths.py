"""Wrong requests: always a 400 that names the place, whatever is wrong and wherever."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import anthropic
from dragoman.ir import Text, ToolCall
from tests.unit.dialects.anthropic.builders import (
    Json,
    assistant,
    body,
    image,
    refusal,
    refused,
    tool_result,
    tool_use,
    user,
)

DEEP = b"[" * 3000 + b"]" * 3000
TOO_BIG = b"1e999"
NOT_UTF8 = b'"\xff"'


@pytest.mark.parametrize(
    ("message", "where"),
    [
        (user({"type": "text", "text": 5}), "messages[1].content[0].text"),
        (user("a", "b", {"type": "text", "text": []}), "messages[1].content[2].text"),
        (user({"text": "x"}), "messages[1].content[0]"),
        (user({"type": None}), "messages[1].content[0].type"),
        ({"role": "user", "content": 5}, "messages[1].content"),
        ({"role": "user", "content": {}}, "messages[1].content"),
        ({"role": "user", "content": [[]]}, "messages[1].content[0]"),
        ({"role": "user", "content": [None]}, "messages[1].content[0]"),
        ({"role": 5, "content": "x"}, "messages[1].role"),
        ({"role": "tool", "content": "x"}, "messages[1].role"),
        ({"role": "", "content": "x"}, "messages[1].role"),
        ({"content": "x"}, "messages[1]"),
        (user({"type": "image"}), "messages[1].content[0]"),
        (user({"type": "image", "source": "s"}), "messages[1].content[0]"),
        (user(image(type=5)), "messages[1].content[0].source.type"),
        (user(image(type="base64", media_type="image/png", data=5)), "messages[1].content[0].source.data"),
        (assistant(tool_use(identity="")), "messages[1].content[0]"),
        (assistant(tool_use(name="")), "messages[1].content[0]"),
        (assistant(tool_use(id=5)), "messages[1].content[0].id"),
        (assistant({"type": "tool_use", "name": "x"}), "messages[1].content[0]"),
        (user({"type": "tool_result"}), "messages[1].content[0]"),
        (user(tool_result(tool_use_id=5)), "messages[1].content[0].tool_use_id"),
        (user(tool_result(is_error="yes")), "messages[1].content[0].is_error"),
        (user(tool_result(5)), "messages[1].content[0].content"),
        (user(tool_result({})), "messages[1].content[0].content"),
        (user("a", tool_result(["x"])), "messages[1].content[1].content[0]"),
        (user(tool_result([{"type": "text", "text": 5}])), "messages[1].content[0].content[0].text"),
        (
            user(
                {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": 5}]}}
            ),
            "messages[1].content[0].source.content[0].text",
        ),
        (user({"type": "search_result", "content": [5]}), "messages[1].content[0].content[0]"),
        (user({"type": "compaction", "content": 5}), "messages[1].content[0].content"),
        (assistant({"type": "thinking", "thinking": 5}), "messages[1].content[0].thinking"),
        (
            user({"type": "tool_addition", "tool": {"type": "tool_definition", "definition": {"name": 5}}}),
            "messages[1].content[0].tool.definition.name",
        ),
    ],
)
def test_a_wrong_message_is_refused_at_its_place(message: Json, where: str) -> None:
    error = refused(user("a"), message)
    assert (error.kind, error.where) == ("invalid_request", where)
    assert str(error).startswith(f"{where}: ")


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"model": 5}, "model"),
        ({"messages": {}}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [5]}, "messages[0]"),
        ({"max_tokens": "x"}, "max_tokens"),
        ({"system": 5}, "system"),
        ({"system": [5]}, "system[0]"),
        ({"system": [{"type": "text", "text": "a"}, {"type": "text", "text": 5}]}, "system[1].text"),
        ({"system": [{"type": "text", "text": "a"}, {"type": "image"}]}, "system[1]"),
        ({"tools": {}}, "tools"),
        ({"tools": [5]}, "tools[0]"),
        ({"tools": [{"name": "a"}, {"name": 5}]}, "tools[1].name"),
        ({"tools": [{"name": "a"}, {"input_schema": {}}]}, "tools[1]"),
        ({"tool_choice": 5}, "tool_choice"),
        ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
        ({"tool_choice": {}}, "tool_choice"),
        ({"thinking": 5}, "thinking"),
        ({"thinking": {"type": "enabled", "budget_tokens": "x"}}, "thinking.budget_tokens"),
        ({"output_config": []}, "output_config"),
        ({"metadata": {"user_id": 5}}, "metadata.user_id"),
        ({"stop_sequences": "x"}, "stop_sequences"),
        ({"stop_sequences": [5]}, "stop_sequences[0]"),
        ({"temperature": "hot"}, "temperature"),
        ({"top_k": 1.5}, "top_k"),
        ({"stream": "yes"}, "stream"),
    ],
)
def test_a_wrong_field_is_refused_at_its_place(fields: Json, where: str) -> None:
    given = {"model": "m", "messages": [user("hi")], **fields}
    error = refusal(json.dumps(given).encode())
    assert (error.kind, error.where) == ("invalid_request", where)


@pytest.mark.parametrize("missing", ["model", "messages"])
def test_what_must_be_there_is_named(missing: str) -> None:
    given = {"model": "m", "messages": [user("hi")]}
    del given[missing]
    assert f"`{missing}`" in refusal(json.dumps(given).encode()).message


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b'"x"', b"\xef\xbb\xbf{}", b"\xff", b"{]", DEEP])
def test_what_is_no_json_object_is_refused(raw: bytes) -> None:
    assert refusal(raw).kind == "invalid_request"


def _around(content: bytes) -> bytes:
    return b'{"model":"m","messages":[{"role":"assistant","content":[%b]}]}' % content


@pytest.mark.parametrize("hostile", [DEEP, TOO_BIG, NOT_UTF8], ids=["deep", "too big", "not utf-8"])
@pytest.mark.parametrize(
    "template",
    [
        _around(b'{"type":"server_tool_use","id":"a","name":"f","input":{"x":HERE}}'),
        _around(b'{"type":"web_search_tool_result","tool_use_id":"a","content":[HERE]}'),
        _around(b'{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":HERE}]}'),
        _around(b'{"type":"text","text":HERE}'),
        b'{"model":"m","messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{"x":HERE}}]}',
        b'{"model":"m","messages":[{"role":"user","content":"x"}],'
        b'"output_config":{"format":{"type":"json_schema","schema":{"x":HERE}}}}',
        b'{"model":"m","messages":[HERE]}',
    ],
)
def test_no_hostile_json_gets_past_the_door(template: bytes, hostile: bytes) -> None:
    assert refusal(template.replace(b"HERE", hostile)).kind == "invalid_request"


@pytest.mark.parametrize("hostile", [DEEP, NOT_UTF8])
def test_arguments_are_passed_on_raw_but_never_broken(hostile: bytes) -> None:
    raw = _around(b'{"type":"tool_use","id":"a","name":"f","input":{"x":HERE}}')
    assert refusal(raw.replace(b"HERE", hostile)).kind == "invalid_request"


def test_a_hostile_user_id_is_only_a_name() -> None:
    hostile = '{"a":' + "[" * 100_000
    assert (
        anthropic.decode_request(body(user("x"), metadata={"user_id": hostile}), {}).request.session
        == hostile
    )


@pytest.mark.parametrize(
    ("escaped", "words"),
    [
        (rb"\ud83d", "\N{REPLACEMENT CHARACTER}"),
        (rb"\uDE00", "\N{REPLACEMENT CHARACTER}"),
        (rb"\ud83d\ude00", "\N{GRINNING FACE}"),
        (rb"\\ud83d", r"\ud83d"),
        (rb"\ud83d\ud83d\ude00", "\N{REPLACEMENT CHARACTER}\N{GRINNING FACE}"),
    ],
)
def test_half_an_emoji_does_not_cost_the_request(escaped: bytes, words: str) -> None:
    raw = b'{"model":"m","messages":[{"role":"assistant","content":[{"type":"text","text":"HERE"},'
    raw += b'{"type":"tool_use","id":"a","name":"f","input":{"x":"HERE"}}]}]}'
    text, call = anthropic.decode_request(raw.replace(b"HERE", escaped), {}).request.messages[0].parts
    assert isinstance(text, Text)
    assert isinstance(call, ToolCall)
    assert (text.text, call.arguments) == (words, {"x": words})


def test_half_an_emoji_in_what_is_passed_on_unread_is_replaced_there() -> None:
    raw = rb'{"model":"m","messages":[{"role":"assistant","content":[{"type":"text","text":"a"},'
    raw += rb'{"type":"tool_use","id":"a","name":"f","input":{"x":"\ud83d"}}]},{"role":"user","content":['
    raw += (
        rb'{"type":"tool_addition","tool":{"definition":{"name":"g","input_schema":{"title":"\uDE00"}}}}]}]}'
    )
    decoded = anthropic.decode_request(raw, {}).request
    call = decoded.messages[0].parts[1]
    assert isinstance(call, ToolCall)
    assert call.args == rb'{"x":"\ufffd"}'
    assert decoded.tools[0].schema == rb'{"title":"\ufffd"}'


@pytest.mark.parametrize(
    "thread", [{"type": "create"}, {"type": "continue", "previous_message_id": "m"}, "x", 1]
)
def test_threads_are_refused_in_the_words_the_sdk_waits_for(thread: Any) -> None:
    error = refused(thread=thread)
    reply = anthropic.encode_error(error)
    inner = json.loads(reply.body)["error"]
    assert (reply.status, inner["type"]) == (400, "invalid_request_error")
    assert inner["details"] == {"error_code": "thread_unsupported_request"}


def test_no_thread_is_no_thread() -> None:
    assert anthropic.decode_request(body(user("x"), thread=None), {}).request.messages
