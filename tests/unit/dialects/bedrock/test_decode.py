"""A whole Converse request: instructions, the model, settings that cannot be kept, what is refused."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.bedrock import decode as decode_module
from dragoman.dialects.bedrock.encode import Echo
from dragoman.ir import Message, Text, ToolCall
from tests.unit.dialects.bedrock.builders import (
    CLIENT,
    Json,
    assistant,
    body,
    decode,
    image,
    notes,
    refusal,
    refused,
    request,
    spec,
    system,
    tool_use,
    user,
)

DEEP = b"[" * 3000 + b"]" * 3000


def test_the_smallest_request() -> None:
    found = request(user("hi"))
    assert found.messages == (Message(role="user", parts=(Text(text="hi"),)),)
    assert (found.model, found.stream, found.tools, found.system) == ("m", False, (), ())


def test_the_address_says_the_model_and_whether_to_stream() -> None:
    found = ConverseClient("arn:aws:x/us.a.b-v1:0", stream=True).decode_request(body(user("hi")), {}).request
    assert (found.model, found.stream) == ("arn:aws:x/us.a.b-v1:0", True)


def test_a_request_from_a_file_has_its_model_in_it() -> None:
    raw = body(user("hi"), modelId="us.a.b")
    assert ConverseClient().decode_request(raw, {}).request.model == "us.a.b"
    assert CLIENT.decode_request(raw, {}).request.model == "m", "the address comes first"
    assert ConverseClient().decode_request(body(user("hi"), modelId=None), {}).request.model == ""


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [
        (None, ()),
        ([], ()),
        ([{"text": "a"}, {"cachePoint": {"type": "default"}}, {"text": "b"}], ("a", "b")),
        ([{"text": ""}], ()),
        ([{"guardContent": {"text": {"text": "careful"}}}], ("careful",)),
    ],
)
def test_instructions(blocks: Any, expected: tuple[str, ...]) -> None:
    assert request(system=blocks).system == tuple(Text(text=text) for text in expected)


def test_guarded_instructions_are_noted() -> None:
    blocks = [{"text": "a"}, {"guardContent": {"text": {"text": "careful"}}}]
    assert notes(system=blocks) == [("dropped", "system[1].guardContent")]


def test_remarks_keep_their_place() -> None:
    found = request(user("a"), system("remember"), assistant("b"))
    assert [message.role for message in found.messages] == ["user", "system", "model"]


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"guardrailConfig": {"guardrailIdentifier": "g", "guardrailVersion": "1"}}, "guardrailConfig"),
        ({"performanceConfig": {"latency": "optimized"}}, "performanceConfig"),
        ({"requestMetadata": {"team": "a"}}, "requestMetadata"),
        ({"serviceTier": {"type": "flex"}}, "serviceTier"),
        ({"additionalModelResponseFieldPaths": ["/stop_sequence"]}, "additionalModelResponseFieldPaths[0]"),
    ],
)
def test_tuning_that_cannot_be_kept_is_noted(fields: Json, where: str) -> None:
    assert notes(**fields) == [("dropped", where)]


def test_what_asks_for_nothing_is_not_noted() -> None:
    fields = ("guardrailConfig", "performanceConfig", "requestMetadata", "serviceTier", "inferenceConfig")
    more = ("toolConfig", "outputConfig", "additionalModelRequestFields", "additionalModelResponseFieldPaths")
    assert notes(**dict.fromkeys((*fields, *more, "promptVariables", "system"))) == []
    assert notes(serviceTier={}, something_new=5) == []


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        ([], False),
        (["/delta/stop_sequence"], False),
        (["/usage"], True),
        (["/usage/output_tokens_details"], True),
        (["/x", "/usage/output_tokens_details/thinking_tokens"], True),
    ],
)
def test_thought_tokens_can_be_asked_for(paths: list[str], told: bool) -> None:
    assert decode(additionalModelResponseFieldPaths=paths).echo == Echo(thought_tokens=told)


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        ([], ["a", "b"]),
        ([("toolRemoval", "a")], ["b"]),
        ([("toolRemoval", "a"), ("toolAddition", "a")], ["a", "b"]),
        ([("toolAddition", "a"), ("toolRemoval", "b")], ["a"]),
        ([("toolRemoval", "unknown")], ["a", "b"]),
    ],
)
def test_tools_come_and_go_in_the_conversation(changes: list[tuple[str, str]], left: list[str]) -> None:
    said = [system({kind: {"tool": {"name": name}}}) for kind, name in changes]
    found = request(user("hi"), *said, toolConfig={"tools": [spec("a"), spec("b")]})
    assert [tool.name for tool in found.tools] == left


def test_a_tool_that_must_be_called_is_there() -> None:
    config = {"tools": [spec("a")], "toolChoice": {"tool": {"name": "a"}}}
    gone = system({"toolRemoval": {"tool": {"name": "a"}}})
    assert [tool.name for tool in request(user("hi"), gone, toolConfig=config).tools] == ["a"]


def test_a_history_with_calls_needs_no_tools() -> None:
    found = request(user("a"), assistant(tool_use()), user("b"))
    assert found.messages[1].parts == (ToolCall(id="t1", name="Read", args=b"{}"),)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"messages": []}, "messages"),
        ({"messages": None}, "messages"),
        ({"messages": {}}, "messages"),
        ({"messages": [5]}, "messages[0]"),
        ({"promptVariables": {"a": {"text": "b"}}}, "promptVariables"),
        ({"system": "x"}, "system"),
        ({"system": [{"image": {}}]}, "system[0]"),
        ({"system": [{"text": "a"}, {"text": 5}]}, "system[1].text"),
        ({"system": [{"guardContent": image()}]}, "system[0].guardContent"),
        ({"inferenceConfig": {"maxTokens": "x"}}, "inferenceConfig.maxTokens"),
        ({"inferenceConfig": {"stopSequences": "x"}}, "inferenceConfig.stopSequences"),
        ({"toolConfig": 5}, "toolConfig"),
        ({"toolConfig": {"tools": {}}}, "toolConfig.tools"),
        ({"toolConfig": {"tools": [5]}}, "toolConfig.tools[0]"),
        (
            {"toolConfig": {"tools": [spec("a"), {"toolSpec": {"name": 5}}]}},
            "toolConfig.tools[1].toolSpec.name",
        ),
        ({"toolConfig": {"tools": [{"hologram": {}}]}}, "toolConfig.tools[0].hologram"),
        ({"outputConfig": {"effort": 5}}, "outputConfig.effort"),
        ({"outputConfig": {"textFormat": {"type": "xml"}}}, "outputConfig.textFormat.type"),
        ({"additionalModelRequestFields": 5}, "additionalModelRequestFields"),
        ({"additionalModelRequestFields": {"thinking": 5}}, "additionalModelRequestFields.thinking"),
        ({"additionalModelResponseFieldPaths": "/x"}, "additionalModelResponseFieldPaths"),
    ],
)
def test_a_wrong_field_is_refused_at_its_place(fields: Json, where: str) -> None:
    error = refusal(json.dumps({"messages": [user("hi")], **fields}).encode())
    assert (error.kind, error.where) == ("invalid_request", where)


def test_no_messages_at_all_is_said() -> None:
    assert refusal(b"{}").message == "at least one message is required"
    assert "not kept here" in refused(promptVariables={"a": {}}).message


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"\xff", DEEP])
def test_what_is_no_json_object_is_refused(raw: bytes) -> None:
    assert refusal(raw).kind == "invalid_request"


@pytest.mark.parametrize("hostile", [DEEP, b'"\xff"'], ids=["deep", "not utf-8"])
@pytest.mark.parametrize(
    "template",
    [
        b'{"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"a","name":"f","input":HERE}}]}]}',
        b'{"messages":[{"role":"user","content":[{"toolResult":{"toolUseId":"a","content":[{"json":HERE}]}}]}]}',
        b'{"messages":[{"role":"user","content":[{"text":HERE}]}]}',
        b'{"messages":[{"role":"user","content":[{"text":"x"}]}],"toolConfig":{"tools":'
        b'[{"toolSpec":{"name":"f","inputSchema":{"json":{"x":HERE}}}}]}}',
        b'{"messages":[{"role":"user","content":[{"text":"x"}]}],"additionalModelRequestFields":{"x":HERE}}',
        b'{"messages":[HERE]}',
    ],
)
def test_no_hostile_json_gets_past_the_door(template: bytes, hostile: bytes) -> None:
    assert refusal(template.replace(b"HERE", hostile)).kind == "invalid_request"


def test_half_an_emoji_does_not_cost_the_request() -> None:
    raw = rb'{"messages":[{"role":"user","content":[{"text":"a\ud83d"}]}],"system":[{"text":"\ude00"}]}'
    found = CLIENT.decode_request(raw, {}).request
    assert found.messages[0].parts == (Text(text="a\N{REPLACEMENT CHARACTER}"),)
    assert found.system == (Text(text="\N{REPLACEMENT CHARACTER}"),)


def test_a_message_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The history comes back with every turn: the cost of a turn follows the new bytes."""
    read: list[str] = []
    spec = decode_module._SPEC

    def counting(raw: bytes, where: str) -> Any:
        read.append(where)
        return spec.decode_item(raw, where)

    counted = dataclasses.replace(spec, name="read once", decode_item=counting)
    monkeypatch.setattr(decode_module, "_SPEC", counted)
    first = request(user("once"), assistant("upon"))
    second = request(user("once"), assistant("upon"), user("a time"))
    assert read == ["messages[0]", "messages[1]", "messages[2]"]
    assert all(one is other for one, other in zip(first.messages, second.messages, strict=False))
