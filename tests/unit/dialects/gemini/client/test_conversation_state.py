"""`/v1/gemini`, taken apart and put together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.gemini.client.conversation_state import (
    answer_content,
    forces_a_call,
    read_call,
    request_body,
)
from dragoman.errors import InvalidRequest


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_input_is_a_string_a_content_or_contents_and_contents_is_its_other_name() -> None:
    said = {"role": "user", "parts": [{"text": "hi"}]}
    for given in ({"input": "hi"}, {"input": said}, {"input": [said]}, {"contents": [said]}):
        call = read_call(body(model="models/m", **given))
        assert [json.loads(bytes(content)) for content in call.contents] == [said]
        assert (call.model, call.conversation, call.stream) == ("m", "", False)
    with pytest.raises(InvalidRequest, match="no input"):
        read_call(body(model="m"))


@pytest.mark.parametrize(("given", "name"), [("a", "a"), ({"id": "b"}, "b"), ({}, ""), (None, "")])
def test_a_conversation_is_a_name_or_an_object(given: Any, name: str) -> None:
    assert read_call(body(input="x", conversation=given)).conversation == name


def test_what_is_googles_goes_on_and_what_is_left_out_is_filled_in() -> None:
    call = read_call(body(model="m", input="x", stream=True, conversation="c", tools=[], labels={"a": "b"}))
    made = json.loads(request_body(call, [b'{"role":"model"}'], b'[{"old":1}]', b'{"c":1}'))
    assert made["contents"][0] == {"role": "model"}
    assert (made["tools"], made["toolConfig"], made["labels"]) == ([], {"c": 1}, {"a": "b"})
    assert set(made) == {"contents", "tools", "toolConfig", "labels"}
    assert "tools" not in json.loads(request_body(read_call(body(input="x")), [], b"", b""))


def test_the_models_turn_is_kept_as_it_is_and_nothing_is_no_turn() -> None:
    content = {"parts": [{"text": "a"}], "role": "model"}
    assert json.loads(answer_content(body(candidates=[{"content": content}]))) == content
    assert answer_content(body(candidates=[{"content": {}}])) == b""
    assert answer_content(body(promptFeedback={})) == b""


@pytest.mark.parametrize(
    ("config", "forced"),
    [
        (b"", False),
        (b"{}", False),
        (b'{"functionCallingConfig":{}}', False),
        (b'{"functionCallingConfig":{"mode":"AUTO"}}', False),
        (b'{"function_calling_config":{"mode":"any"}}', True),
    ],
)
def test_a_config_that_forces_a_call_is_told_from_one_that_does_not(config: bytes, forced: bool) -> None:
    assert forces_a_call(config) is forced
