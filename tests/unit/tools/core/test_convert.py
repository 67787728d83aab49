"""Tools, calls and results in the words of each API, there and back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from dragoman.dialects.base import Target
from dragoman.errors import DragomanError, InvalidRequest
from dragoman.ir import Media, Signature, Text, Tool, ToolCall, ToolChoice, ToolResult
from dragoman.tools import ToolDefinition
from dragoman.tools.convert import (
    FORMATS,
    ToolFormat,
    amazonq,
    anthropic,
    bedrock,
    gemini,
    openai_chat,
    openai_responses,
)

SCHEMA = b'{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}'
WEATHER = ToolDefinition(name="weather", description="The weather.", schema=SCHEMA)
NOW = ToolDefinition(name="now")
CALLS = (ToolCall(id="c1", name="weather", args=b'{"city":"Oslo"}'), ToolCall(id="c2", name="now"))
RESULTS = (
    ToolResult(call_id="c1", name="weather", content=(Text(text="rain"),)),
    ToolResult(call_id="c2", name="now", content=(Text(text="no clock"),), is_error=True),
)
SIGNED = ToolCall(id="c1", name="weather", args=b"{}", signature=Signature("EjQK", "gemini-g3"))
PICTURE = Media(mime="image/png", data="aGk=")
PAPER = Media(mime="application/pdf", data="aGk=")

every_form = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)


@every_form
def test_tools_come_back_as_they_went(form: ToolFormat) -> None:
    wire = form.encode_tools([WEATHER, NOW.to_ir()])
    back = {tool.name: tool for tool in form.decode_tools(json.loads(json.dumps(wire)))}
    assert set(back) == {"weather", "now"}
    assert back["weather"].description == "The weather."
    assert msgspec.json.decode(back["weather"].schema) == msgspec.json.decode(SCHEMA)
    assert form.encode_tools([]) == []


@every_form
def test_calls_come_back_as_they_went(form: ToolFormat) -> None:
    for text in ("", "Let me look."):
        wire = json.loads(json.dumps(form.encode_calls(CALLS, text)))
        back = [msgspec.structs.replace(call, signature=None) for call in form.decode_calls(wire)]
        assert [(one.id, one.name, one.arguments) for one in back] == [
            ("c1", "weather", {"city": "Oslo"}),
            ("c2", "now", {}),
        ]
        assert ("Let me look." in json.dumps(wire)) == bool(text)


@every_form
def test_results_come_back_as_they_went(form: ToolFormat) -> None:
    wire = json.loads(json.dumps([*form.encode_calls(CALLS), *form.encode_results(RESULTS)]))
    back = form.decode_results(wire)
    assert [one.call_id for one in back] == ["c1", "c2"]
    said = json.dumps(msgspec.to_builtins([(one.content, one.response.decode()) for one in back]))
    assert "rain" in said
    assert "no clock" in said
    marks_errors = form not in (openai_chat, openai_responses)
    assert [one.is_error for one in back] == [False, marks_errors]
    assert form.decode_calls(wire)
    assert form.encode_results([]) == []


@every_form
def test_json_results_are_said_in_every_form(form: ToolFormat) -> None:
    result = ToolResult(call_id="c1", name="weather", response=b'{"degrees":7}')
    wire = form.encode_results([result])
    assert "degrees" in json.dumps(wire)
    (back,) = form.decode_results([*form.encode_calls(CALLS), *wire])
    said = back.response.decode() or "".join(part.text for part in back.content if isinstance(part, Text))
    assert json.loads(said) == {"degrees": 7}


CHOICES: dict[str, list[tuple[ToolChoice, Any]]] = {
    "gemini": [
        (ToolChoice(), {"functionCallingConfig": {"mode": "AUTO"}}),
        (ToolChoice(mode="any"), {"functionCallingConfig": {"mode": "ANY"}}),
        (ToolChoice(mode="none"), {"functionCallingConfig": {"mode": "NONE"}}),
        (ToolChoice(mode="validated"), {"functionCallingConfig": {"mode": "VALIDATED"}}),
        (
            ToolChoice(mode="any", names=("now",)),
            {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["now"]}},
        ),
    ],
    "anthropic": [
        (ToolChoice(), {"type": "auto"}),
        (ToolChoice(mode="any"), {"type": "any"}),
        (ToolChoice(mode="none"), {"type": "none"}),
        (ToolChoice(mode="any", names=("now",)), {"type": "tool", "name": "now"}),
        (ToolChoice(parallel=False), {"type": "auto", "disable_parallel_tool_use": True}),
    ],
    "openai_chat": [
        (ToolChoice(), "auto"),
        (ToolChoice(mode="any"), "required"),
        (ToolChoice(mode="none"), "none"),
        (ToolChoice(mode="any", names=("now",)), {"type": "function", "function": {"name": "now"}}),
        (
            ToolChoice(mode="auto", names=("now",)),
            {
                "type": "allowed_tools",
                "allowed_tools": {
                    "mode": "auto",
                    "tools": [{"type": "function", "function": {"name": "now"}}],
                },
            },
        ),
    ],
    "openai_responses": [
        (ToolChoice(), "auto"),
        (ToolChoice(mode="any"), "required"),
        (ToolChoice(mode="none"), "none"),
        (ToolChoice(mode="any", names=("now",)), {"type": "function", "name": "now"}),
        (
            ToolChoice(mode="any", names=("now", "weather")),
            {
                "type": "allowed_tools",
                "mode": "required",
                "tools": [{"type": "function", "name": "now"}, {"type": "function", "name": "weather"}],
            },
        ),
    ],
    "amazonq": [(ToolChoice(), None)],
    "bedrock": [
        (ToolChoice(), {"auto": {}}),
        (ToolChoice(mode="any"), {"any": {}}),
        (ToolChoice(mode="any", names=("now",)), {"tool": {"name": "now"}}),
    ],
}


@pytest.mark.parametrize(
    ("form", "choice", "wire"),
    [(FORMATS[name], choice, wire) for name, rows in CHOICES.items() for choice, wire in rows],
)
def test_choices_are_spelled_as_each_api_spells_them(form: ToolFormat, choice: ToolChoice, wire: Any) -> None:
    assert form.encode_choice(choice) == wire
    assert form.decode_choice(wire) == choice


@pytest.mark.parametrize("name", ["anthropic", "openai_chat", "openai_responses"])
def test_what_only_google_has_is_the_default_elsewhere(name: str) -> None:
    form = FORMATS[name]
    assert form.decode_choice(form.encode_choice(ToolChoice(mode="validated"))) == ToolChoice()
    assert form.decode_choice(form.encode_choice(ToolChoice(mode="none", names=("now",)))).mode == "none"
    assert form.decode_choice(None) == ToolChoice()


@pytest.mark.parametrize(
    ("form", "choice"),
    [
        (anthropic, ToolChoice(mode="any", names=("a", "b"))),
        (anthropic, ToolChoice(mode="auto", names=("a",))),
        (bedrock, ToolChoice(mode="any", names=("a", "b"))),
        (bedrock, ToolChoice(mode="auto", names=("a",))),
        (bedrock, ToolChoice(mode="none")),
        (bedrock, ToolChoice(parallel=False)),
        (amazonq, ToolChoice(mode="any")),
        (amazonq, ToolChoice(names=("a",))),
    ],
)
def test_a_choice_that_an_api_cannot_say_is_refused(form: ToolFormat, choice: ToolChoice) -> None:
    with pytest.raises(InvalidRequest, match="tool_choice"):
        form.encode_choice(choice)


def test_amazon_has_no_choice_to_read() -> None:
    with pytest.raises(InvalidRequest):
        amazonq.decode_choice({"auto": {}})


def test_google_gets_names_it_accepts_and_they_lead_back() -> None:
    odd = ToolDefinition(name="files/read", schema=SCHEMA)
    (entry,) = gemini.encode_tools([odd])
    wire_name = entry["functionDeclarations"][0]["name"]
    assert wire_name != odd.name
    contents = [{"role": "model", "parts": [{"functionCall": {"name": wire_name}}]}]
    (call,) = gemini.decode_calls(contents, [odd])
    assert (call.name, call.args, call.id) == (odd.name, b"{}", "call-0-0")
    config = gemini.encode_choice(ToolChoice(mode="any", names=(odd.name,)), [odd, NOW])
    assert config["functionCallingConfig"]["allowedFunctionNames"] == [wire_name]
    assert gemini.decode_choice(config, [odd]).names == (odd.name,)
    with pytest.raises(InvalidRequest, match="no tool named 'x'"):
        gemini.encode_choice(ToolChoice(mode="any", names=("x",)), [NOW])
    results = gemini.encode_results([ToolResult(call_id="call-0-0", name=odd.name)])
    assert results[0]["parts"][0]["functionResponse"]["name"] == wire_name
    assert gemini.decode_results(results, [odd])[0].name == odd.name


@pytest.mark.parametrize(
    "call", [{"name": "now"}, {"name": "now", "args": {}}, {"name": "now", "args": None}]
)
def test_a_call_without_arguments_has_an_empty_object(call: dict[str, Any]) -> None:
    content = {"role": "model", "parts": [{"text": "hm"}, {"functionCall": call}]}
    assert gemini.decode_calls([content])[0].args == b"{}"
    answer = {"candidates": [{"content": content, "finishReason": "STOP"}]}
    reader = gemini.ToolCallReader()
    reader.feed(json.dumps(answer).encode())
    (found,) = (part for part in reader.close().parts if isinstance(part, ToolCall))
    assert (found.name, found.args) == ("now", b"{}")


def test_google_wants_all_results_of_a_step_in_one_content() -> None:
    (content,) = gemini.encode_results(RESULTS)
    assert content["role"] == "user"
    assert [part["functionResponse"]["response"] for part in content["parts"]] == [
        {"output": "rain"},
        {"error": "no clock"},
    ]
    old = gemini.encode_results(RESULTS, target=Target(model="gemini-2.5-flash"))
    assert "id" not in old[0]["parts"][0]["functionResponse"], "facts of the model hold here too"


def test_google_gets_its_signature_back_or_its_sentinel() -> None:
    target = Target(model="gemini-3-pro")
    (signed,) = gemini.encode_calls([SIGNED, CALLS[1]], target=target)
    assert [part.get("thoughtSignature") for part in signed["parts"]] == ["EjQK", None]
    (unsigned,) = gemini.encode_calls(CALLS, target=target)
    assert unsigned["parts"][0]["thoughtSignature"] == "skip_thought_signature_validator"


def test_built_in_tools_of_google_are_not_ours_to_run() -> None:
    assert gemini.decode_tools([{"googleSearch": {}}, {"functionDeclarations": [{"name": "a"}]}]) == (
        Tool(
            name="a",
            where="tools[1].functionDeclarations[0]",
            native=b'{"name":"a"}',
        ),
    )


def test_older_declarations_are_read_as_json_schema() -> None:
    parameters = {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": True}}}
    (tool,) = gemini.decode_tools([{"functionDeclarations": [{"name": "a", "parameters": parameters}]}])
    schema = msgspec.json.decode(tool.schema)
    assert schema == {"type": "object", "properties": {"n": {"type": ["integer", "null"]}}}


def chunk(*parts: dict[str, Any], finish: str | None = None) -> bytes:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    if finish:
        candidate["finishReason"] = finish
    return b"data: " + json.dumps({"candidates": [candidate]}).encode() + b"\r\n\r\n"


def test_streamed_calls_are_given_as_soon_as_they_are_whole() -> None:
    piece = {"jsonPath": "$.city", "stringValue": "Os", "willContinue": True}
    rest = {"jsonPath": "$.city", "stringValue": "lo"}
    stream = [
        chunk({"text": "Look"}),
        chunk({"functionCall": {"name": "now", "id": "g1"}, "thoughtSignature": "EjQK"}),
        chunk({"functionCall": {"name": "weather", "partialArgs": [piece], "willContinue": True}}),
        chunk({"functionCall": {"partialArgs": [rest], "willContinue": True}}),
        chunk({"functionCall": {}}, finish="STOP"),
    ]
    tokens = iter(["a" * 16, "b" * 16])
    answer = gemini.ToolCallReader([WEATHER, NOW], new_id=lambda: next(tokens))
    given = [answer.feed(data) for data in stream]
    assert [[call.name for call in calls] for calls in given] == [[], ["now"], [], [], ["weather"]]
    first, second = given[1][0], given[4][0]
    assert (first.id, second.id) == (f"call_{'a' * 16}-g1", f"call_{'b' * 16}")
    assert second.arguments == {"city": "Oslo"}
    assert first.signature is not None
    assert first.signature.data == "EjQK"
    response = answer.close()
    assert [part for part in response.parts if isinstance(part, ToolCall)] == [first, second]
    assert response.finished.reason == "tool_calls"
    (content,) = gemini.encode_calls([first, second])
    assert content["parts"][0]["functionCall"]["id"] == "g1", "Google gets its own id back"


def test_a_stream_sliced_anyhow_gives_the_same_calls() -> None:
    data = chunk({"functionCall": {"name": "now", "args": {"a": "é"}}}) + chunk(finish="STOP")
    answer = gemini.ToolCallReader(new_id=lambda: "a" * 16)
    calls = [call for byte in data for call in answer.feed(bytes([byte]))]
    assert [call.arguments for call in calls] == [{"a": "é"}]
    answer.close()


def test_a_broken_answer_is_no_answer() -> None:
    answer = gemini.ToolCallReader()
    answer.feed(chunk({"functionCall": {"name": "now"}}))
    with pytest.raises(DragomanError, match="stopped before its end"):
        answer.close()


@pytest.mark.parametrize("form", [anthropic, openai_responses, bedrock])
def test_signatures_travel_only_where_they_are_asked_for(form: Any) -> None:
    assert form.decode_calls(form.encode_calls([SIGNED]))[0].signature is None
    (back,) = form.decode_calls(form.encode_calls([SIGNED], signatures=True))
    assert back.signature == SIGNED.signature
    plain = [CALLS[1]]
    assert form.encode_calls(plain, signatures=True) == form.encode_calls(plain)


def test_chat_carries_signatures_where_google_does() -> None:
    (back,) = openai_chat.decode_calls(openai_chat.encode_calls([SIGNED]))
    assert back.signature == SIGNED.signature


LINKED = Media(mime="image/png", uri="https://example.com/a.png")


@pytest.mark.parametrize("form", [anthropic, openai_chat, openai_responses, gemini, bedrock])
@pytest.mark.parametrize("files", [(PICTURE,), (PAPER,), (PICTURE, PAPER)])
def test_files_in_results_come_back(form: ToolFormat, files: tuple[Media, ...]) -> None:
    result = ToolResult(call_id="c1", name="weather", content=(Text(text="seen"), *files))
    (back,) = form.decode_results([*form.encode_calls(CALLS[:1]), *form.encode_results([result])])
    assert tuple(part for part in back.content if isinstance(part, Media)) == files
    with_json = msgspec.structs.replace(result, response=b'{"a":1}')
    (both,) = form.decode_results([*form.encode_calls(CALLS[:1]), *form.encode_results([with_json])])
    assert tuple(part for part in both.content if isinstance(part, Media)) == files


@pytest.mark.parametrize("form", [anthropic, openai_chat, openai_responses])
def test_files_by_address_come_back(form: ToolFormat) -> None:
    paper = Media(mime="application/pdf", uri="https://example.com/a.pdf")
    for media in (LINKED, paper) if form is not openai_chat else (LINKED,):
        result = ToolResult(call_id="c1", content=(media,))
        (back,) = form.decode_results(form.encode_results([result]))
        assert back.content == (media,)


def test_anthropic_wants_a_type_even_of_an_open_schema() -> None:
    (wire,) = anthropic.encode_tools([Tool(name="a")])
    assert wire == {"name": "a", "input_schema": {"type": "object"}}


def test_bedrock_wants_a_type_even_of_an_open_schema() -> None:
    (wire,) = bedrock.encode_tools([Tool(name="a")])
    assert wire == {"toolSpec": {"name": "a", "inputSchema": {"json": {"type": "object"}}}}


def test_what_only_google_has_is_bedrocks_default() -> None:
    assert bedrock.encode_choice(ToolChoice(mode="validated")) == {"auto": {}}
    assert bedrock.decode_choice(None) == ToolChoice()


def test_bedrocks_results_hold_json_text_and_files_in_their_order() -> None:
    result = ToolResult(
        call_id="c1", content=(Text(text="seen"), PICTURE, PAPER), response=b'{"a":1}', is_error=True
    )
    (message,) = bedrock.encode_results([result])
    assert message["role"] == "user"
    assert message["content"][0]["toolResult"] == {
        "toolUseId": "c1",
        "content": [
            {"json": {"a": 1}},
            {"text": "seen"},
            {"image": {"format": "png", "source": {"bytes": "aGk="}}},
            {"document": {"name": "file-3", "format": "pdf", "source": {"bytes": "aGk="}}},
        ],
        "status": "error",
    }


@pytest.mark.parametrize("media", [LINKED, Media(mime="application/zip", data="aGk=")])
def test_what_bedrocks_results_cannot_hold_is_refused(media: Media) -> None:
    with pytest.raises(InvalidRequest, match="hold no"):
        bedrock.encode_results([ToolResult(call_id="c1", content=(media,))])


def test_a_namespaced_tool_of_codex_is_read_with_its_whole_name() -> None:
    wire = [{"type": "namespace", "name": "fs", "tools": [{"type": "function", "name": "read"}]}]
    assert [tool.name for tool in openai_responses.decode_tools(wire)] == ["fs.read"]


def test_amazon_tools_have_one_order_and_their_odd_members_are_passed_over() -> None:
    wire = [
        {"cachePoint": {"type": "default"}},
        {"toolSpecification": {"name": "b", "description": None}},
        {"toolSpecification": {"name": "a", "inputSchema": {"json": {"type": "object"}}}},
    ]
    assert [(tool.name, tool.schema) for tool in amazonq.decode_tools(wire)] == [
        ("a", b'{"type":"object"}'),
        ("b", b"{}"),
    ]


def test_amazon_results_find_their_names_and_keep_every_block() -> None:
    use = {"toolUseId": "t1", "name": "fs_read", "input": None}
    blocks = [{"text": "one"}, {"json": {"two": 2}}, {"text": ""}]
    results = [
        {"toolUseId": "t1", "content": blocks, "status": "success"},
        {"toolUseId": "t2", "content": [{"json": [1]}], "toolName": "other"},
        {"toolUseId": "t3", "content": None, "status": "error"},
    ]
    history = [
        {"userInputMessage": {"content": "hi"}},
        {"assistantResponseMessage": {"content": "", "toolUses": [use]}},
        {"assistantResponseMessage": {"content": "text only"}},
        {"userInputMessage": {"content": "", "userInputMessageContext": {"toolResults": results}}},
    ]
    assert amazonq.decode_calls(history) == (ToolCall(id="t1", name="fs_read", args=b"{}"),)
    assert amazonq.decode_results(history) == (
        ToolResult(call_id="t1", name="fs_read", content=(Text(text="one"), Text(text='{"two":2}'))),
        ToolResult(call_id="t2", name="other", content=(Text(text="[1]"),)),
        ToolResult(call_id="t3", is_error=True),
    )


def test_amazon_has_no_room_for_files_in_results() -> None:
    with pytest.raises(InvalidRequest, match="hold no files"):
        amazonq.encode_results([ToolResult(call_id="c", name="n", content=(PICTURE,))])


@pytest.mark.parametrize(
    ("form", "wire", "where"),
    [
        (anthropic, [{"role": 5}], "messages[0].role"),
        (openai_chat, [{"role": 5}], "messages[0].role"),
        (openai_responses, [{"type": "function_call", "call_id": 5}], "input[0].call_id"),
        (amazonq, [{"assistantResponseMessage": 5}], "history[0].assistantResponseMessage"),
        (gemini, [{"role": "model", "parts": [{"functionCall": {}}]}], "contents[0].parts[0].functionCall"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(form: ToolFormat, wire: list[Any], where: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        form.decode_calls(wire)
    assert caught.value.where == where
