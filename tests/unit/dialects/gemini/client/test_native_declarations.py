"""A declaration in Gemini's own form is sent as it came if Google takes it, and mended if it would not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.gemini.client.decode import json_schema
from dragoman.emulator.service import EmulatorService, HttpRequest
from dragoman.errors import InvalidRequest
from tests.unit.dialects.gemini.client.builders import HI, MODEL, sent, talk

STRING = {"type": "STRING"}


def declared(parameters: Any, **target: Any) -> Any:
    body = talk(
        *HI,
        tools=[{"functionDeclarations": [{"name": "f", "behavior": "BLOCKING", "parameters": parameters}]}],
    )
    return sent(body, **target)["tools"][0]["functionDeclarations"][0]


def is_taken(declaration: Any) -> bool:
    body = json.dumps({"contents": HI, "tools": [{"functionDeclarations": [declaration]}]}).encode()
    path = f"/v1beta/models/{MODEL}:generateContent"
    return EmulatorService("s").handle(HttpRequest(method="POST", path=path, body=body)).status == 200


@pytest.mark.parametrize(
    "parameters",
    [
        {"type": "OBJECT", "properties": {"a": STRING}, "required": ["a"], "propertyOrdering": ["a"]},
        {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "integer", "format": "int32"}}},
        },
        {
            "type": "OBJECT",
            "properties": {
                "a": {"anyOf": [STRING, {"type": "NULL"}]},
                "b": {**STRING, "format": "enum", "enum": ["x"]},
            },
        },
        {
            "type": "OBJECT",
            "properties": {
                "a": {**STRING, "example": "x", "default": "y", "min_length": "2", "nullable": True}
            },
        },
    ],
)
def test_what_google_takes_is_not_touched(parameters: Any) -> None:
    assert is_taken({"name": "f", "parameters": parameters})
    assert declared(parameters)["parameters"] == parameters


@pytest.mark.parametrize(
    "broken",
    [
        {"enum": ["file", "url"]},
        {**STRING, "format": "no-such-format"},
        {"type": "object"},
        {"type": "array"},
        {**STRING, "items": STRING},
        {"type": "INTEGER", "enum": ["1"]},
        {**STRING, "enum": [1]},
        {"type": ["string", "null"]},
        {**STRING, "additionalProperties": False},
        {"type": "OBJECT", "properties": {"a": STRING}, "required": ["b"]},
        {"type": "OBJECT", "properties": {"": STRING}},
        {"anyOf": [{"enum": ["x"]}]},
        True,
        {"type": "SOMETHING"},
        {"type": "OBJECT", "properties": ["a"]},
        {"type": "OBJECT", "properties": 40},
        {"type": "OBJECT", "properties": {"a": STRING}, "required": [{"a": 1}, ["b"], 3]},
        {"type": "OBJECT", "properties": {"a": STRING}, "required": 5},
        {**STRING, "enum": 1.5},
    ],
)
def test_b_a_schema_google_would_refuse_costs_no_refused_call(broken: Any) -> None:
    parameters = {"type": "OBJECT", "properties": {"good": STRING, "odd": broken}}
    assert not is_taken({"name": "f", "parameters": parameters})
    mended = declared(parameters)
    assert is_taken({"name": "f", "parameters": mended["parameters"]})
    assert mended["parameters"]["properties"]["good"] == STRING
    assert mended["behavior"] == "BLOCKING"


def parts_with(number: str) -> Any:
    """Every place where Gemini's own words are passed on as they came."""
    call, result = {"name": "f", "args": {}, "id": "c"}, {"name": "f", "id": "c"}
    mark = {"n": "HERE"}
    bodies = [
        talk(*HI, tools=[{"functionDeclarations": [{"name": "f", "parameters": mark}]}]),
        talk(*HI, tools=[{"functionDeclarations": [{"name": "f", "parametersJsonSchema": mark}]}]),
        talk(*HI, tools=[{"functionDeclarations": [{"name": "f", "x": mark}]}]),
        talk({"role": "user", "parts": [{"text": "x", "videoMetadata": mark}]}),
        talk(
            *HI,
            {"role": "model", "parts": [{"functionCall": call, "partMetadata": mark}]},
            {"role": "user", "parts": [{"functionResponse": {**result, "response": {}}}]},
        ),
        talk(
            *HI,
            {"role": "model", "parts": [{"functionCall": call}]},
            {"role": "user", "parts": [{"functionResponse": {**result, "response": mark}}]},
        ),
    ]
    return [json.dumps(body).replace('"HERE"', number).encode() for body in bodies]


def refused_at(body: bytes) -> str:
    try:
        sent(body)
    except InvalidRequest as error:
        return str(error)
    return ""


@pytest.mark.parametrize("number", ["9" * 5000, "-" + "9" * 5000])
def test_a_number_no_machine_has_is_refused_at_its_place(number: str) -> None:
    places = [place for body in parts_with(number) if (place := refused_at(body))]
    assert len(places) >= 4  # the rest is passed on unread
    assert all(place.startswith(("contents", "tools[0].functionDeclarations[0]")) for place in places)


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ('{"anyOf": [', "]}"),
        ('{"type": "ARRAY", "items": ', "}"),
        ('{"type": "OBJECT", "properties": {"a": ', "}}"),
    ],
)
@pytest.mark.parametrize("depth", [300, 450, 600, 3000])
def test_a_schema_nested_beyond_reason_is_refused_at_its_place(begin: str, end: str, depth: int) -> None:
    deep = begin * depth + '{"type": "STRING"}' + end * depth
    body = json.dumps(talk(*HI, tools=[{"functionDeclarations": [{"name": "f", "parameters": "DEEP"}]}]))
    refusal = refused_at(body.replace('"DEEP"', deep).encode())
    assert "nested too deeply" in refusal or (depth < 600 and not refusal)


@pytest.mark.parametrize("limit", ["²", "1" * 5000, "-1", "", "٣"])
def test_a_limit_that_is_no_number_is_left_as_it_is(limit: str) -> None:
    kept = json_schema({"type": "STRING", "minLength": limit, "max_length": "7"})
    assert kept == {"type": "string", "minLength": limit, "maxLength": 7}


def test_an_object_without_properties_takes_no_arguments() -> None:
    assert declared({"type": "object"}) == {"name": "f", "behavior": "BLOCKING"}


def test_vertex_knows_more_than_ai_studio() -> None:
    open_ended = {
        "type": "OBJECT",
        "properties": {
            "a": {"type": "OBJECT", "additionalProperties": True},
            "b": {**STRING, "format": "uri"},
        },
    }
    assert declared(open_ended, backend="vertex")["parameters"] == open_ended
    assert declared(open_ended)["parameters"] != open_ended
    linked = {"type": "OBJECT", "properties": {"a": {"ref": "#/defs/x"}}, "defs": {"x": STRING}}
    assert declared(linked, backend="vertex")["parameters"] == linked
