"""Stage 1: every violation at once, Google's words and paths, and what Google lets pass."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.emulator.errors import ApiError
from dragoman.emulator.routes import Backend
from dragoman.emulator.validate import parse_request
from tests.unit.emulator.builders import Json, error, hello, message

STUDIO = Backend("studio", "v1beta")
VERTEX = Backend("vertex", "v1beta1")
GOOGLE = "type.googleapis.com/google.ai.generativelanguage.v1beta"


def read(document: Any, backend: Backend = STUDIO) -> Json:
    return parse_request(json.dumps(document).encode(), backend)


def refuse(document: Any, backend: Backend = STUDIO) -> list[str]:
    with pytest.raises(ApiError) as caught:
        read(document, backend)
    return caught.value.message.split("\n")


def function(schema: Any) -> Json:
    return {"tools": [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]}


PARAMETERS = "tools[0].function_declarations[0].parameters"
NOT_FOUND = "Cannot find field."

REFUSED = {
    "unknown root name": ({"foo": 1}, f'Invalid JSON payload received. Unknown name "foo": {NOT_FOUND}'),
    "unknown nested name": (
        {"contents": [{"parts": [{"cache_control": {}}]}]},
        'Invalid JSON payload received. Unknown name "cache_control" at '
        f"'contents[0].parts[0]': {NOT_FOUND}",
    ),
    "json schema keyword": (
        function({"properties": {"a": {}, "b": {"$ref": "#"}}}),
        'Invalid JSON payload received. Unknown name "$ref" at '
        f"'{PARAMETERS}.properties[1].value': {NOT_FOUND}",
    ),
    "type list": (
        function({"type": ["string", "null"]}),
        f"Invalid JSON payload received. Unknown name \"type\" at '{PARAMETERS}': "
        "Proto field is not repeating, cannot start list.",
    ),
    "number in enum": (function({"enum": [0]}), f"Invalid value at '{PARAMETERS}.enum[0]' (TYPE_STRING), 0"),
    "boolean items": (
        function({"items": True}),
        f"Invalid value at '{PARAMETERS}.items' ({GOOGLE}.Schema), true",
    ),
    "tuple items": (
        function({"items": [{}]}),
        f"Invalid JSON payload received. Unknown name \"items\" at '{PARAMETERS}': "
        "Proto field is not repeating, cannot start list.",
    ),
    "boolean property": (
        function({"properties": {"a": True}}),
        f"Invalid value at '{PARAMETERS}.properties[0].value' ({GOOGLE}.Schema), true",
    ),
    "numeric pattern": (
        function({"pattern": 5}),
        f"Invalid value at '{PARAMETERS}.pattern' (TYPE_STRING), 5",
    ),
    "fractional length": (
        function({"minLength": 1.5}),
        f"Invalid value at '{PARAMETERS}.min_length' (TYPE_INT64), 1.5",
    ),
    "exponent in an integer string": (
        {"generationConfig": {"maxOutputTokens": "1e3"}},
        "Invalid value at 'generation_config.max_output_tokens' (TYPE_INT32), \"1e3\"",
    ),
    "integer too large": (
        {"generationConfig": {"seed": 2**31}},
        f"Invalid value at 'generation_config.seed' (TYPE_INT32), {2**31}",
    ),
    "unknown enum": (
        {"generationConfig": {"thinkingConfig": {"thinkingLevel": "extreme"}}},
        "Invalid value at 'generation_config.thinking_config.thinking_level' "
        f"({GOOGLE}.ThinkingConfig.ThinkingLevel), "
        '"extreme"',
    ),
    "unknown schema type": (
        function({"type": "dict"}),
        f"Invalid value at '{PARAMETERS}.type' ({GOOGLE}.Type), \"dict\"",
    ),
    "string for a message": (
        {"systemInstruction": "be brief"},
        f"Invalid value at 'system_instruction' ({GOOGLE}.Content), \"be brief\"",
    ),
    "object for a string": (
        {"contents": [{"parts": [{"text": {"a": 1}}]}]},
        "Invalid value at 'contents[0].parts[0]' (text), Starting an object on a scalar field",
    ),
    "list for a struct": (
        {"contents": [{"parts": [{"functionResponse": {"name": "f", "response": [1]}}]}]},
        'Invalid JSON payload received. Unknown name "response" at '
        "'contents[0].parts[0].function_response': "
        "Proto field is not repeating, cannot start list.",
    ),
    "string for a struct": (
        {"contents": [{"parts": [{"functionCall": {"name": "f", "args": "{}"}}]}]},
        "Invalid value at 'contents[0].parts[0].function_call.args' "
        '(type.googleapis.com/google.protobuf.Struct), "{}"',
    ),
    "two kinds of data": (
        {"contents": [{"parts": [{"text": "a", "inlineData": {}}]}]},
        "Invalid value at 'contents[0].parts[0]' (oneof), oneof field 'data' is already set. "
        "Cannot set 'inlineData'",
    ),
    "nameless field": (
        {"": 1},
        'Invalid JSON payload received. Unknown name "": Proto fields must have a name.',
    ),
    "base64 of impossible length": (
        {"contents": [{"parts": [{"text": "a"}, {"text": "b", "thoughtSignature": "abcde"}]}]},
        "Invalid value at 'contents[0].parts[1].thought_signature' (TYPE_BYTES), Base64 decoding "
        'failed for "abcde"',
    ),
    "not base64": (
        {"contents": [{"parts": [{"text": "b", "thoughtSignature": "no spaces!"}]}]},
        "Invalid value at 'contents[0].parts[0].thought_signature' (TYPE_BYTES), Base64 decoding failed for "
        '"no spaces!"',
    ),
    "mime type where an enum is due": (
        {"generationConfig": {"responseFormat": [{"text": {"mimeType": "application/json"}}]}},
        "Invalid value at 'generation_config.response_format[0].text.mime_type' "
        f'({GOOGLE}.TextResponseFormat.MimeType), "application/json"',
    ),
    "argument streaming on AI Studio": (
        {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}},
        'Invalid JSON payload received. Unknown name "streamFunctionCallArguments" at '
        f"'tool_config.function_calling_config': {NOT_FOUND}",
    ),
}


@pytest.mark.parametrize(("document", "line"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_with_googles_words(document: Json, line: str) -> None:
    assert refuse(document) == [line]


def test_every_violation_is_reported_at_once_with_its_field() -> None:
    found = error(hello(foo=1, generationConfig={"topK": "x", "bar": 2}))
    lines = found["message"].split("\n")
    assert len(lines) == 3
    assert found["details"] == [
        {
            "@type": "type.googleapis.com/google.rpc.BadRequest",
            "fieldViolations": [
                {"description": lines[0]},
                {"field": "generation_config.top_k", "description": lines[1]},
                {"field": "generation_config", "description": lines[2]},
            ],
        }
    ]


ACCEPTED: dict[str, tuple[Json, Json]] = {
    "snake_case": (
        {"system_instruction": {"parts": [{"text": "x"}]}, "generation_config": {"max_output_tokens": 1}},
        {"systemInstruction": {"parts": [{"text": "x"}]}, "generationConfig": {"maxOutputTokens": 1}},
    ),
    "single object for a list": (
        {"contents": {"parts": {"text": "x"}}},
        {"contents": [{"parts": [{"text": "x"}]}]},
    ),
    "numbers as strings": (
        {"generationConfig": {"maxOutputTokens": "8", "temperature": "0.5"}},
        {"generationConfig": {"maxOutputTokens": 8, "temperature": 0.5}},
    ),
    "whole float for an integer": ({"generationConfig": {"topK": 4.0}}, {"generationConfig": {"topK": 4}}),
    "null is absent": ({"tools": None, "contents": [{"role": None}]}, {"contents": [{}]}),
    "enum in any case": (
        {"toolConfig": {"functionCallingConfig": {"mode": "any"}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
    ),
    "enum as a number": (
        {"toolConfig": {"functionCallingConfig": {"mode": 2}}},
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
    ),
    "lower-case service tier": ({"serviceTier": "FLEX"}, {"serviceTier": "flex"}),
    "underscore spelling of the raw response schema": (
        {"generationConfig": {"_responseJsonSchema": {"a": 1}}},
        {"generationConfig": {"responseJsonSchema": {"a": 1}}},
    ),
    "anything in a free value": (
        {"generationConfig": {"responseJsonSchema": {"$ref": ["x", None]}}},
        {"generationConfig": {"responseJsonSchema": {"$ref": ["x", None]}}},
    ),
    "model in the body": ({"model": "models/x"}, {"model": "models/x"}),
}


@pytest.mark.parametrize(("document", "canonical"), ACCEPTED.values(), ids=ACCEPTED.keys())
def test_leniencies_become_canonical(document: Json, canonical: Json) -> None:
    assert read(document) == canonical


@pytest.mark.parametrize("spelling", ["+/+/", "-_-_", "-_-_ \n", "+/8=", "+/8"])
def test_bytes_take_both_alphabets_with_optional_padding(spelling: str) -> None:
    part = read({"contents": [{"parts": [{"inlineData": {"data": spelling}}]}]})["contents"][0]["parts"][0]
    assert part["inlineData"]["data"] in (b"\xfb\xff\xbf", b"\xfb\xff")


VERTEX_ONLY = [
    {"toolConfig": {"functionCallingConfig": {"streamFunctionCallArguments": True}}},
    {"modelArmorConfig": {}},
    function(
        {
            "type": "OBJECT",
            "additionalProperties": False,
            "defs": {"a": {"type": "STRING"}},
            "ref": "#/defs/a",
        }
    ),
]
STUDIO_ONLY = [
    {"serviceTier": "flex"},
    {"model": "models/x"},
    {"store": True},
    {"toolConfig": {"includeServerSideToolInvocations": True}},
    {"contents": [{"parts": [{"text": "x", "partMetadata": {}}]}]},
]


@pytest.mark.parametrize("document", VERTEX_ONLY)
def test_only_vertex_knows_this(document: Json) -> None:
    read(document, VERTEX)
    assert NOT_FOUND in refuse(document)[0]


@pytest.mark.parametrize("document", STUDIO_ONLY)
def test_only_ai_studio_knows_this(document: Json) -> None:
    read(document)
    assert NOT_FOUND in refuse(document, VERTEX)[0]


def test_vertex_names_its_own_types() -> None:
    line = refuse(function({"type": ""}), VERTEX)[0]
    assert line == (
        f"Invalid value at '{PARAMETERS}.type' "
        '(type.googleapis.com/google.cloud.aiplatform.v1beta1.Type), ""'
    )


def nested(levels: int) -> Json:
    schema: Json = {"type": "STRING"}
    for level in range(levels):
        schema = {"type": "OBJECT", "properties": {f"level{level}": schema}}
    return schema


def test_thirty_levels_of_properties_pass_and_thirty_one_do_not() -> None:
    read(function(nested(30)))
    assert refuse(function(nested(31))) == ["Message too deep. Max recursion depth reached for key 'level0'"]


@pytest.mark.parametrize("body", [b"{", b"nonsense", b'{"a": "\\ud83d"}', b"\xff", b"[" * 100_000])
def test_broken_json_is_a_400(body: bytes) -> None:
    assert message(body).startswith("Invalid JSON payload received.")


def test_root_must_be_an_object() -> None:
    assert message(b"[]") == 'Invalid JSON payload received. Unknown name "": Root element must be a message.'
