"""What `clean_schema` makes of alternatives and of parts that all hold."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.schema import clean_schema
from tests.unit.schema.builders import INTEGER, NUMBER, STRING, clean, prop


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": "string", "nullable": True}, {"type": "string", "nullable": True}),
        ({"anyOf": [STRING, {"type": "null"}]}, {"type": "string", "nullable": True}),
        ({"oneOf": [{"type": "null"}, STRING]}, {"type": "string", "nullable": True}),
        ({"anyOf": [STRING], "nullable": True}, {"type": "string", "nullable": True}),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"enum": ["a"], "nullable": True}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"type": ["string", "null"], "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"nullable": True}, {}),
        ({"anyOf": [{}, {"type": "null"}]}, {}),
        ({"type": ["null"]}, {"type": "null"}),
        ({"type": "null", "description": "none"}, {"type": "null", "description": "none"}),
        (
            {"anyOf": [STRING, {"type": "null", "description": "unset"}]},
            {"type": "string", "nullable": True, "description": "unset"},
        ),
        ({"type": ["string", "number"]}, {"anyOf": [STRING, NUMBER]}),
        ({"type": ["integer", "number"]}, NUMBER),
        ({"type": ["string", "integer", "null"]}, {"anyOf": [STRING, INTEGER, {"type": "null"}]}),
        ({"anyOf": [{"type": ["string", "null"]}, INTEGER]}, {"anyOf": [STRING, INTEGER, {"type": "null"}]}),
        ({"anyOf": [STRING, STRING]}, STRING),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, {"type": "string", "enum": ["a", "b"]}),
        (
            {"anyOf": [{"const": "a"}, {"const": 1}]},
            {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer", "enum": [1]}]},
        ),
        (
            {"anyOf": [{"anyOf": [STRING, INTEGER], "title": "T"}, NUMBER]},
            {"anyOf": [{"type": "string", "title": "T"}, {"type": "integer", "title": "T"}, NUMBER]},
        ),
        (
            {"type": ["string", "array"], "maxLength": 2, "items": STRING},
            {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "array", "items": STRING}]},
        ),
        (
            {"type": "string", "anyOf": [{"maxLength": 2}, {"pattern": "x"}]},
            {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "string", "pattern": "x"}]},
        ),
        ({"type": "string", "anyOf": [{"minLength": 2}, False]}, {"type": "string", "minLength": 2}),
        ({"enum": [1, 2.5]}, {"type": "number", "enum": [1, 2.5]}),
        ({"enum": [1, 1, True, False]}, {"anyOf": [{"type": "integer", "enum": [1]}, {"type": "boolean"}]}),
        ({"type": "any"}, {}),
        ({"type": "STRING"}, STRING),
    ],
)
def test_b5_types_and_alternatives(schema: Any, wanted: Any) -> None:
    """known problem B5"""
    assert prop(schema)[0] == wanted


def test_b5_annotations_stand_over_the_alternatives_once() -> None:
    """known problem B5"""
    schema = {"type": ["string", "integer"], "title": "T", "description": "D", "default": 1}
    over = {"title": "T", "description": "D", "default": 1}
    assert prop(schema)[0] == {**over, "anyOf": [STRING, INTEGER]}
    out, _ = clean_schema({"properties": {"x": schema}}, where="s", vertex=True)
    assert out["properties"]["x"] == {"anyOf": [{**STRING, **over}, INTEGER]}


@pytest.mark.parametrize(
    ("members", "wanted"),
    [
        ([{"type": "string"}, {"maxLength": 5}, {"maxLength": 3}], {"type": "string", "maxLength": 3}),
        ([{"type": ["string", "number"]}, {"type": ["integer", "null"]}], INTEGER),
        (
            [{"type": ["integer", "null"]}, {"type": ["number", "null"]}],
            {"type": "integer", "nullable": True},
        ),
        ([{"enum": ["a", "b"]}, {"enum": ["b", "c"]}], {"type": "string", "enum": ["b"]}),
        (
            [{"items": STRING}, {"items": {"maxLength": 2}}],
            {"type": "array", "items": {"type": "string", "maxLength": 2}},
        ),
        ([{"items": STRING}, {"items": True}], {"type": "array", "items": STRING}),
        ([{"items": True}, {"items": STRING}], {"type": "array", "items": STRING}),
        ([{"items": STRING}, {"items": False}], {"type": "array", "items": {}, "maxItems": 0}),
        (
            [{"type": "array", "uniqueItems": True}, {"uniqueItems": False}],
            {"type": "array", "uniqueItems": True, "items": {}},
        ),
        ([{"type": "string", "title": "A"}, {"title": "B"}], {"type": "string", "title": "A"}),
        (
            [{"type": "string", "description": "A"}, {"description": "B"}],
            {"type": "string", "description": "A\nB"},
        ),
        (
            [{"type": "string", "description": "A\nB"}, {"description": "B"}],
            {"type": "string", "description": "A\nB"},
        ),
        (
            [
                {"properties": {"a": STRING}, "required": ["a"]},
                {"properties": {"a": {"maxLength": 1}, "b": INTEGER}, "required": ["b"]},
            ],
            {
                "type": "object",
                "properties": {"a": {"type": "string", "maxLength": 1}, "b": INTEGER},
                "required": ["a", "b"],
            },
        ),
    ],
)
def test_all_of_is_merged(members: list[Any], wanted: Any) -> None:
    assert prop({"allOf": members}) == (wanted, [])


def test_the_root_union_is_one_object() -> None:
    a = {"type": "object", "properties": {"kind": {"const": "a"}, "x": STRING}, "required": ["kind", "x"]}
    b = {"type": "object", "properties": {"kind": {"const": "b"}}, "required": ["kind"]}
    out, notes = clean({"description": "D", "oneOf": [a, b]})
    assert out["properties"] == {"kind": {"type": "string", "enum": ["a", "b"]}, "x": STRING}
    assert out["required"] == ["kind"]
    assert out["description"] == "D\nGive one of these sets of properties: `kind`, `x`; `kind`."
    assert notes == ["moved s: alternatives of the root are one object: the description lists them"]
    closed = [
        {**a, "additionalProperties": False},
        {"properties": {"y": STRING}, "additionalProperties": False},
    ]
    out, _ = clean({"anyOf": closed})
    assert out["additionalProperties"] is False
    assert "required" not in out
    assert out["description"].endswith("`kind`, `x`; nothing (optional `y`).")


def test_a_union_of_required_properties_is_described() -> None:
    schema = {"properties": {"a": STRING, "b": STRING}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}
    out, notes = clean(schema)
    assert out["description"] == "At least one of these must be given: `a`; `b`."
    assert notes == ["moved s: anyOf of required properties, into the description"]
    one, _ = clean({**schema, "oneOf": schema["anyOf"], "anyOf": None})
    assert one["description"] == "Exactly one of these must be given: `a`; `b`."
