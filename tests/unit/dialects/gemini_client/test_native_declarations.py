"""A declaration in Gemini's own form is sent as it came if Google takes it, and mended if it would not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.emulator.service import Question, Service
from tests.unit.dialects.gemini_client.asking import HI, MODEL, sent, talk

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
    return Service("s").answer(Question(verb="POST", path=path, body=body)).status == 200


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
    ],
)
def test_b_a_schema_google_would_refuse_costs_no_refused_call(broken: Any) -> None:
    parameters = {"type": "OBJECT", "properties": {"good": STRING, "odd": broken}}
    assert not is_taken({"name": "f", "parameters": parameters})
    mended = declared(parameters)
    assert is_taken({"name": "f", "parameters": mended["parameters"]})
    assert mended["parameters"]["properties"]["good"] == STRING
    assert mended["behavior"] == "BLOCKING"


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
