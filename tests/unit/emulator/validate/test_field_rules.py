"""Stage 2: every field's rule, all bullets of a request together."""

from __future__ import annotations

import pytest

from tests.unit.emulator.builders import (
    VERTEX,
    Json,
    ask,
    declare,
    function_responses,
    hello,
    message,
    model_calls,
    talk,
    user,
)

PARAMETERS = "tools[0].function_declarations[0].parameters"


def config(**settings: object) -> Json:
    return hello(generationConfig=settings)


def schema(node: Json) -> Json:
    return hello(tools=declare("f", parameters={"type": "object", "properties": {"x": node}}))


RULE = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
)
X = f"{PARAMETERS}.properties[x]"
EMPTY = "contents.parts must not be empty."
NO_DATA = "required oneof field 'data' must have one initialized field"

REFUSED = {
    "no contents": ({}, "contents: contents is not specified"),
    "no parts": (talk({"role": "user", "parts": []}), f"contents[0].parts: {EMPTY}"),
    "empty part": (talk({"role": "user", "parts": [{}]}), f"contents[0].parts[0].data: {NO_DATA}"),
    "only a signature": (
        talk({"role": "user", "parts": [{"thoughtSignature": "abcd"}]}),
        f"contents[0].parts[0].data: {NO_DATA}",
    ),
    "empty system instruction": (
        hello(systemInstruction={"parts": []}),
        f"system_instruction.parts: {EMPTY}",
    ),
    "nameless response": (
        talk(user("x"), model_calls("f"), function_responses("")),
        "contents[2].parts[0].function_response.name: Name cannot be empty.",
    ),
    "nameless call": (
        talk(user("x"), model_calls(""), function_responses("f")),
        "contents[1].parts[0].function_call.name: Name cannot be empty.",
    ),
    "bad function name": (hello(tools=declare("1a")), f"tools[0].function_declarations[0].name: {RULE}"),
    "space in a name": (hello(tools=declare("a b")), f"tools[0].function_declarations[0].name: {RULE}"),
    "long function name": (
        hello(tools=declare("a" * 129)),
        f"tools[0].function_declarations[0].name: {RULE}",
    ),
    "empty tool": (
        hello(tools=[{}]),
        "tools[0].tool_type: required one_of 'tool_type' must have one initialized field",
    ),
    "empty declarations": (
        hello(tools=[{"functionDeclarations": []}]),
        "tools[0].tool_type: required one_of 'tool_type' must have one initialized field",
    ),
    "both schemas": (
        hello(
            tools=declare(
                "f",
                parameters={"type": "object", "properties": {"a": {"type": "string"}}},
                schema={"type": "object"},
            )
        ),
        "tools[0].function_declarations[0].parameters_json_schema: "
        "only one of parameters and parameters_json_schema can be set",
    ),
    "json schema of no object": (
        hello(tools=declare("f", schema={"type": "string"})),
        "tools[0].function_declarations[0].parameters_json_schema: schema must describe an object "
        "at its root",
    ),
    "union at the root": (
        hello(tools=declare("f", schema={"anyOf": [{"type": "object"}]})),
        "tools[0].function_declarations[0].parameters_json_schema: schema must describe an object "
        "at its root",
    ),
    "parameters that are no object": (
        hello(tools=declare("f", parameters={"type": "string"})),
        f"{PARAMETERS}.type: should be OBJECT type",
    ),
    "array without items": (schema({"type": "array"}), f"{X}.items: missing field."),
    "items without array": (
        schema({"type": "string", "items": {"type": "string"}}),
        f"{X}.items: field predicate failed: $type == Type.ARRAY",
    ),
    "properties without object": (
        schema({"properties": {"a": {"type": "string"}}}),
        f"{X}.properties: only allowed for OBJECT type",
    ),
    "required without object": (
        schema({"type": "string", "required": ["a"]}),
        f"{X}.required: only allowed for OBJECT type",
    ),
    "object without properties": (
        schema({"type": "object"}),
        f"{X}.properties: should be non-empty for OBJECT type",
    ),
    "root object without properties": (
        hello(tools=declare("f", parameters={"type": "object", "properties": {}})),
        f"{PARAMETERS}.properties: should be non-empty for OBJECT type",
    ),
    "enum on an integer": (
        schema({"type": "integer", "enum": ["1"]}),
        f"{X}.enum: only allowed for STRING type",
    ),
    "enum in a branch": (
        schema({"anyOf": [{"type": "integer", "enum": ["1"]}]}),
        f"{X}.any_of[0].enum: only allowed for STRING type",
    ),
    "string format": (
        schema({"type": "string", "format": "uri"}),
        f"{X}.format: only 'enum' and 'date-time' are supported for STRING type",
    ),
    "undefined required property": (
        schema({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]}),
        f"{X}.required[1]: property is not defined",
    ),
    "empty property name": (
        schema({"type": "object", "properties": {"": {"type": "string"}}}),
        f"{X}.properties[]: key cannot be empty",
    ),
    "inside items": (
        schema({"type": "array", "items": {"type": "array"}}),
        f"{X}.items.items: missing field.",
    ),
    "response schema": (
        config(responseMimeType="application/json", responseSchema={"type": "ARRAY"}),
        "generation_config.response_schema.items: missing field.",
    ),
    "allowed names": (
        hello(
            tools=declare("f"),
            toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f", "g"]}},
        ),
        "tool_config.function_calling_config.allowed_function_names: "
        "allowed_function_names should be a subset of the provided function_declarations",
    ),
    "allowed names in mode AUTO": (
        hello(
            tools=declare("f"),
            toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}},
        ),
        "tool_config.function_calling_config.allowed_function_names: "
        "allowed_function_names can only be set when the mode is ANY or VALIDATED",
    ),
    "temperature": (
        config(temperature=2.1),
        "generation_config.temperature: temperature must be in the range [0.0, 2.0].",
    ),
    "top_p": (config(topP=1.5), "generation_config.top_p: top_p must be in the range [0.0, 1.0]."),
    "top_k": (config(topK=0), "generation_config.top_k: top_k must be positive."),
    "output cap": (
        config(maxOutputTokens=0),
        "generation_config.max_output_tokens: max_output_tokens must be positive.",
    ),
    "stop sequences": (
        config(stopSequences=list("abcdef")),
        "generation_config.stop_sequences: the number of stop_sequences must not exceed 5",
    ),
    "candidates": (
        config(candidateCount=0),
        "generation_config.candidate_count: candidate_count must be in the range [1, 8].",
    ),
    "response mime type": (
        config(responseMimeType="text/html"),
        "generation_config.response_mime_type: allowed mimetypes are `text/plain`, `application/json`, "
        "`application/xml`, `application/yaml` and `text/x.enum`.",
    ),
    "thinking budget": (
        config(thinkingConfig={"thinkingBudget": 70000}),
        "generation_config.thinking_config.thinking_budget: thinking_budget must be in the range [-1, 65535]",
    ),
    "logprobs": (
        config(logprobs=2),
        "generation_config.logprobs: logprobs can only be set when response_logprobs is true",
    ),
}


@pytest.mark.parametrize(("body", "line"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_a_bullet(body: Json, line: str) -> None:
    assert message(body) == f"* GenerateContentRequest.{line}\n"


def test_all_bullets_come_together() -> None:
    body = hello(tools=declare("1", "2"), generationConfig={"temperature": 3})
    assert message(body).count("* GenerateContentRequest.") == 3


def test_unsupported_safety_category_is_named() -> None:
    settings = [{"category": "HARM_CATEGORY_MEDICAL", "threshold": "BLOCK_NONE"}]
    assert "safety_settings[0]: element predicate failed" in message(hello(safetySettings=settings))


ACCEPTED = {
    "longest function name": hello(tools=declare("a" * 128)),
    "dots, colons, dashes": hello(tools=declare("_a.b:c-d")),
    "no schema at all": hello(tools=declare("f")),
    "thought part alone": talk(user("a"), {"role": "model", "parts": [{"thought": True}]}, user("b")),
    "raw schema with anything inside": hello(
        tools=declare(
            "f", schema={"$schema": "x", "type": "object", "additionalProperties": False, "$defs": {}}
        )
    ),
    "root reference": hello(
        tools=declare("f", schema={"$ref": "#/$defs/a", "$defs": {"a": {"type": "object"}}})
    ),
    "nullable leaf without type": schema({"nullable": True, "description": "x"}),
    "date-time": schema({"type": "string", "format": "date-time"}),
    "zero penalty": config(presencePenalty=0),
    "five stops": config(stopSequences=list("abcde")),
}


@pytest.mark.parametrize("body", ACCEPTED.values(), ids=ACCEPTED.keys())
def test_accepted(body: Json) -> None:
    ask(body)


VERTEX_REFUSED = {
    "leaf without type": (
        schema({"description": "x"}),
        "Unable to submit request because `f` functionDeclaration `parameters.x` schema didn't "
        "specify the schema "
        "type field.",
    ),
    "beside any_of": (
        schema({"description": "x", "anyOf": [{"type": "string"}]}),
        "Unable to submit request because `f` functionDeclaration `parameters.x` schema specified "
        "other fields "
        "alongside any_of. When using any_of, it must be the only field set.",
    ),
    "stop sequences": (
        config(stopSequences=list("abcdefghij")),
        "Unable to submit request because it has a stopSequences value of 10 but the supported "
        "range is from 1 "
        "(inclusive) to 6 (exclusive).",
    ),
    "output cap": (
        config(maxOutputTokens=70000),
        "Unable to submit request because it has a maxOutputTokens value of 70000 but the "
        "supported range is from 1 "
        "(inclusive) to 65537 (exclusive).",
    ),
}


@pytest.mark.parametrize(("body", "start"), VERTEX_REFUSED.values(), ids=VERTEX_REFUSED.keys())
def test_vertex_says_it_in_its_own_words(body: Json, start: str) -> None:
    assert message(body, path=VERTEX).startswith(start)
