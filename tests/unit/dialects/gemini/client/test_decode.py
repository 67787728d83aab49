"""A Gemini request arrives at Google as it was meant: what we know is repaired, the rest is untouched."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Native, ToolCall, ToolResult
from tests.unit.dialects.gemini.client.builders import HI, exchange, model, sent, talk, user

SIGNED = {"functionCall": {"name": "read", "args": {"p": 1.0}}, "thoughtSignature": "c2ln"}


def answer(name: str = "read", **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": {"x": [1, None]}, **more}}


def test_both_spellings_of_every_name_mean_the_same() -> None:
    camel = talk(
        *HI,
        model(SIGNED),
        user(answer()),
        systemInstruction={"parts": [{"text": "s"}]},
        generationConfig={"maxOutputTokens": 5000, "topP": 0.5, "stopSequences": ["x"]},
        toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["read"]}},
        tools=[{"functionDeclarations": [{"name": "read"}]}],
    )
    snake = {
        "contents": [
            *HI,
            model({"function_call": {"name": "read", "args": {"p": 1.0}}, "thought_signature": "c2ln"}),
            user({"function_response": {"name": "read", "response": {"x": [1, None]}}}),
        ],
        "system_instruction": {"parts": {"text": "s"}},
        "generation_config": {"max_output_tokens": "5000", "top_p": "0.5", "stop_sequences": ["x"]},
        "tool_config": {"function_calling_config": {"mode": "any", "allowed_function_names": ["read"]}},
        "tools": {"function_declarations": {"name": "read"}},
    }
    assert sent(snake) == sent(camel)


def test_what_only_google_understands_goes_there_untouched() -> None:
    body = talk(
        *HI,
        tools=[{"functionDeclarations": [{"name": "f", "behavior": "BLOCKING"}]}, {"googleSearch": {"x": 1}}],
        toolConfig={
            "includeServerSideToolInvocations": True,
            "functionCallingConfig": {"streamFunctionCallArguments": True},
        },
        generationConfig={
            "speechConfig": {"voice": "a"},
            "thinkingConfig": {"thinkingBudget": 7},
            "candidateCount": 1,
        },
        safetySettings=[{"category": "X", "threshold": "OFF"}],
        cachedContent="cachedContents/1",
        labels={"a": "b"},
    )
    found = sent(body)
    for name in ("tools", "safetySettings", "cachedContent", "labels", "generationConfig", "toolConfig"):
        assert found[name] == body[name]


def test_a_declaration_with_a_schema_google_knows_is_not_rewritten_until_google_refuses_it() -> None:
    schema = {
        "type": "OBJECT",
        "properties": {
            "a": {"type": "STRING", "nullable": True, "minLength": "2"},
            "b": {"type": "ARRAY", "items": {"anyOf": [{"type": "INTEGER"}]}},
        },
    }
    body = talk(
        *HI, tools=[{"functionDeclarations": [{"name": "f", "description": "d", "parameters": schema}]}]
    )
    assert sent(body)["tools"] == body["tools"]
    refused = sent(body, proto_schemas=True)["tools"][0]["functionDeclarations"][0]
    assert refused["parameters"]["properties"]["a"] == {"type": "STRING", "nullable": True, "minLength": 2}
    request = exchange(body).request
    assert json.loads(request.tools[0].schema)["properties"]["a"] == {
        "type": ["string", "null"],
        "minLength": 2,
    }


def test_a_json_schema_is_what_arguments_are_checked_against() -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    body = talk(*HI, tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": schema}]}])
    assert json.loads(exchange(body).request.tools[0].schema) == schema
    assert sent(body)["tools"] == body["tools"]
    odd = talk(*HI, tools=[{"functionDeclarations": [{"name": "f", "parameters": True}]}])
    assert exchange(odd).request.tools[0].schema == b"true"


def test_j_parts_nobody_else_has_stay_where_they_are() -> None:
    parts: list[dict[str, Any]] = [
        {"executableCode": {"language": "PYTHON", "code": "1"}},
        {"inlineData": {"mimeType": "video/mp4", "data": "AA=="}, "videoMetadata": {"fps": 1}},
        {"inlineData": {"mimeType": "image/png", "data": "AA==", "displayName": "x"}},
        {"functionCall": {"args": {}, "willContinue": True}},
        {"toolResponse": {"id": "1"}},
        {"text": "a", "partMetadata": {"k": 1}},
    ]
    message = exchange(talk(user(*parts))).request.messages[0]
    assert all(isinstance(part, Native) for part in message.parts)
    assert sent(talk(user(*parts)))["contents"] == [user(*parts)]


def test_a_lone_thought_mark_is_nothing() -> None:
    assert sent(talk(*HI, model({"thought": True}, {"text": "b"}), user({"text": "c"})))["contents"][
        1
    ] == model({"text": "b"})


def test_files_by_data_and_by_address() -> None:
    parts = [
        {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
        {"fileData": {"fileUri": "https://x/files/1", "mimeType": "image/png"}},
        {"fileData": {"fileUri": "https://x/files/2"}},
    ]
    assert exchange(talk(user(*parts))).request.messages[0].parts == (
        Media(mime="image/png", data="AA=="),
        Media(mime="image/png", uri="https://x/files/1"),
        Media(mime="", uri="https://x/files/2"),
    )
    assert sent(talk(user(*parts)))["contents"][0]["parts"] == parts
    odd = {"fileData": {"mimeType": "image/png"}}
    assert isinstance(exchange(talk(user(odd))).request.messages[0].parts[0], Native)


def test_c_calls_without_ids_are_told_apart_by_their_order() -> None:
    history = talk(
        *HI,
        model(
            SIGNED, {"functionCall": {"name": "read", "args": {"p": 2}}}, {"functionCall": {"name": "list"}}
        ),
        user(answer("list"), answer("read"), answer("read")),
    )
    messages = exchange(history).request.messages
    calls = [part.id for part in messages[1].parts if isinstance(part, ToolCall)]
    results = [part.call_id for part in messages[2].parts if isinstance(part, ToolResult)]
    assert results == [calls[2], calls[0], calls[1]]
    upstream = sent(history)["contents"][2]["parts"]
    assert [part["functionResponse"]["name"] for part in upstream] == ["read", "read", "list"]


def test_c_a_response_with_an_id_is_never_given_to_another_call() -> None:
    calls = model(
        {"functionCall": {"name": "read", "id": "one"}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "read", "id": "two"}},
    )
    messages = exchange(talk(*HI, calls, user(answer(), answer(id="one")))).request.messages
    assert [part.call_id for part in messages[2].parts if isinstance(part, ToolResult)] == ["two", "one"]
    renamed = exchange(talk(*HI, calls, user(answer("other"), answer(id="one")))).request.messages
    assert [part.call_id for part in renamed[2].parts if isinstance(part, ToolResult)] == ["two", "one"]


def test_c_responses_that_all_have_ids_need_no_guessing() -> None:
    call = model({"functionCall": {"name": "read", "id": "one"}, "thoughtSignature": "c2ln"})
    messages = exchange(talk(*HI, call, user(answer(id="one")))).request.messages
    assert [part.call_id for part in messages[2].parts if isinstance(part, ToolResult)] == ["one"]


def test_c_more_responses_than_calls_become_text() -> None:
    found = sent(talk(*HI, model(SIGNED), user(answer(), answer())))
    assert len(found["contents"][2]["parts"]) == 1


def test_c_the_same_history_again_is_linked_again_wherever_it_stands() -> None:
    step = [model(SIGNED), user(answer())]
    first = exchange(talk(*HI, *step)).request.messages
    again = exchange(talk(*HI, *step)).request.messages
    assert first[1] is again[1]
    assert first[2] is again[2]
    twice = exchange(talk(*HI, *step, *step)).request.messages
    ids = [part.id for message in twice for part in message.parts if isinstance(part, ToolCall)]
    assert len(set(ids)) == 2
    assert sent(talk(*HI, *step, *step))["contents"][4]["parts"][0]["functionResponse"]["id"] == ids[1]


def test_j_files_beside_responses_do_not_start_a_new_turn() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
    found = sent(talk(*HI, model(SIGNED), user(answer(), image)))["contents"]
    assert len(found) == 3
    assert found[2]["parts"][0]["functionResponse"]["parts"] == [image]
    inside = sent(talk(*HI, model(SIGNED), user(answer(parts=[image]))))["contents"]
    assert inside == found


def test_the_object_a_function_answered_is_not_rewritten() -> None:
    found = sent(talk(*HI, model(SIGNED), user(answer())))["contents"][2]["parts"][0]["functionResponse"]
    assert found["response"] == {"x": [1, None]}


def test_a_signatures_come_back_as_the_client_kept_them_unless_google_refuses_them() -> None:
    history = talk(
        *HI, model({"text": "t", "thought": True, "thoughtSignature": "dGg="}, SIGNED), user(answer())
    )
    parts = sent(history)["contents"][1]["parts"]
    assert [part["thoughtSignature"] for part in parts] == ["dGg=", "c2ln"]
    healed = sent(history, trust_signatures=False)["contents"][1]["parts"]
    assert [part["thoughtSignature"] for part in healed] == ["skip_thought_signature_validator"]


def test_a_string_is_a_users_turn_and_old_role_names_are_the_users() -> None:
    assert sent({"contents": "hello"})["contents"] == [user({"text": "hello"})]
    assert sent({"contents": {"parts": {"text": "hello"}}})["contents"] == [user({"text": "hello"})]
    history = talk(*HI, model(SIGNED), {"role": "function", "parts": [answer()]})
    assert sent(history)["contents"][2]["role"] == "user"


def test_no_thinking_is_added_that_nobody_asked_for() -> None:
    assert sent(talk(*HI, generationConfig={"maxOutputTokens": 5}))["generationConfig"] == {
        "maxOutputTokens": 5
    }
    asked = talk(*HI, generationConfig={"thinkingConfig": {"thinkingLevel": "low"}})
    assert sent(asked)["generationConfig"] == asked["generationConfig"]
    assert "generationConfig" not in sent(asked, own_thinking=True)


def test_the_model_of_the_address_wins_over_the_bodys() -> None:
    assert exchange(talk(*HI, model="models/other")).request.model == "gemini-3.8-flash"


def test_a_system_instruction_may_be_a_bare_string() -> None:
    assert sent(talk(*HI, systemInstruction="s"))["systemInstruction"] == {"parts": [{"text": "s"}]}
    assert "systemInstruction" not in sent(talk(*HI, systemInstruction={"role": "system"}))


@pytest.mark.parametrize(
    ("body", "where", "words"),
    [
        ({}, "contents", "not specified"),
        ({"contents": []}, "contents", "not specified"),
        ({"contents": [{"role": "assistant", "parts": []}]}, "contents[0].role", "valid role"),
        ({"contents": HI, "contents.x": 1}, "", "Unknown name"),
        ({"contents": HI, "generationConfig": {"a.b": 1}}, "generationConfig", "Unknown name"),
        ({"contents": HI, "generationConfig": {"topK": "NaN"}}, "generationConfig.topK", "not a number"),
        ({"contents": HI, "generationConfig": {"seed": "inf"}}, "generationConfig.seed", "not a number"),
        ({"contents": [{"parts": 5}]}, "contents[0].parts", "Expected"),
        (talk(user({"text": 5})), "contents[0].parts[0].text", "Expected `str`"),
        (talk(user({"functionCall": {}})), "contents[0].parts[0].functionCall", "needs a name"),
        (
            talk(user({"functionCall": {"name": "f", "args": "{}"}})),
            "contents[0].parts[0].functionCall.args",
            "object",
        ),
        (
            talk(user({"functionResponse": {"name": "f", "response": []}})),
            "contents[0].parts[0].functionResponse.response",
            "object",
        ),
        (talk(*HI, tools=[{"functionDeclarations": [{}]}]), "tools[0].functionDeclarations[0].name", "name"),
        (
            talk(*HI, toolConfig={"functionCallingConfig": {"mode": "SOME"}}),
            "toolConfig.functionCallingConfig.mode",
            "AUTO, ANY",
        ),
        (talk(*HI, generationConfig={"topK": 1.5}), "generationConfig.topK", "whole number"),
        (talk(*HI, generationConfig={"temperature": "warm"}), "generationConfig.temperature", "Expected"),
        (
            talk(*HI, generationConfig={"candidateCount": 2}),
            "generationConfig.candidateCount",
            "one candidate",
        ),
        (
            talk(*HI, systemInstruction={"parts": [{"inlineData": {}}]}),
            "systemInstruction.parts[0]",
            "text parts",
        ),
    ],
)
def test_a_mistake_is_named_with_its_place(body: dict[str, Any], where: str, words: str) -> None:
    with pytest.raises(InvalidRequest, match=words) as caught:
        exchange(body)
    assert caught.value.where == where


@pytest.mark.parametrize("raw", [b"", b"[1]", b"{", b'{"contents": "\xff"}', b'{"contents":' + b"[" * 5000])
def test_what_is_no_json_object_is_refused_politely(raw: bytes) -> None:
    with pytest.raises(InvalidRequest):
        exchange(raw)


def test_half_an_emoji_costs_one_character_only() -> None:
    found = sent(b'{"contents":[{"parts":[{"text":"a\\ud83d"}]}],"labels":{"a":"\\udc00"}}')
    assert found["contents"][0]["parts"] == [{"text": "a\ufffd"}]
    assert found["labels"] == {"a": "\ufffd"}


def test_tokens_are_counted_of_contents_alone_or_of_a_whole_request() -> None:
    plain = exchange(json.dumps({"contents": HI}).encode(), "count")
    inner = {"model": "models/other", "contents": HI, "systemInstruction": "s"}
    wrapped = exchange(json.dumps({"generateContentRequest": inner}).encode(), "count")
    assert plain.request.messages == wrapped.request.messages
    assert wrapped.request.system[0].text == "s"
