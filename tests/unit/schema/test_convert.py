"""What `clean_schema` makes of the keywords of a node."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.schema import clean_schema
from tests.corpus import check
from tests.unit.schema.builders import EMPTY, INTEGER, NUMBER, STRING, clean, prop


@pytest.mark.parametrize("nonsense", [None, [], "x", 5, False])
def test_nonsense_is_an_object_without_properties(nonsense: Any) -> None:
    assert clean(nonsense) == (EMPTY, ["repaired s: not a schema: taken as an object without properties"])


@pytest.mark.parametrize(
    "open_", [True, {}, {"$schema": "x"}, {"type": "object"}, {"type": ["object", "null"]}]
)
def test_an_open_root_is_an_object_without_properties(open_: Any) -> None:
    assert clean(open_) == (EMPTY, [])


def test_b1_bookkeeping_goes_silently_and_unknown_keywords_with_a_note() -> None:
    """known problem B1"""
    schema = {
        "$schema": "s",
        "$id": "i",
        "$comment": "c",
        **EMPTY,
        "~optional": 1,
        "x-y": 2,
        "encrypted": True,
    }
    out, notes = clean(schema)
    assert out == EMPTY
    assert [note.split(":")[0] for note in notes] == [
        "dropped s.~optional",
        "dropped s.x-y",
        "dropped s.encrypted",
    ]


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"type": "integer", "multipleOf": 5}, "Must be a multiple of 5."),
        ({"type": "number", "exclusiveMaximum": 1}, "Must be less than 1."),
        ({"type": "string", "contentMediaType": "text/html"}, "Holds text/html."),
        (
            {"type": "string", "contentSchema": {"type": "object"}},
            'The decoded content must match {"type":"object"}.',
        ),
        ({"not": {"type": "null"}}, 'Must not match {"type":"null"}.'),
        (
            {"if": STRING, "then": {"minLength": 1}},
            'If it matches {"type":"string"}, then it must match {"minLength":1}.',
        ),
        ({"if": STRING, "else": False}, 'If it matches {"type":"string"}, otherwise it must match false.'),
        ({"type": "array", "contains": STRING}, 'Must contain at least 1 matching {"type":"string"}.'),
        (
            {"type": "array", "contains": STRING, "minContains": 2, "maxContains": 3},
            'Must contain 2 to 3 matching {"type":"string"}.',
        ),
        ({"type": "array", "unevaluatedItems": False}, "No other items are allowed."),
        (
            {"type": "object", "propertyNames": {"pattern": "^x"}},
            'Property names must match {"pattern":"^x"}.',
        ),
        ({"type": "object", "propertyNames": False}, "Must be empty."),
        (
            {"type": "object", "unevaluatedProperties": STRING},
            'Other properties must match {"type":"string"}.',
        ),
        ({"type": "object", "dependentRequired": {"a": ["b", "c"]}}, "With `a`, `b`, `c` must be given too."),
        (
            {"type": "object", "dependencies": {"a": {"minProperties": 2}}},
            'With `a`, it must match {"minProperties":2}.',
        ),
        ({"type": "object", "dependentSchemas": {"a": True}}, "With `a`, it must match true."),
        ({"type": "string", "examples": ["a"]}, 'Examples: ["a"]'),
        ({"type": "string", "example": {"type": "x"}}, 'Examples: [{"type":"x"}]'),
        ({"type": "string", "deprecated": True}, "Deprecated."),
        ({"type": "string", "writeOnly": True}, "Write-only."),
        ({"type": "boolean", "const": True}, "Must be true."),
        ({"enum": [{"a": 1}, {"b": 2}]}, 'Allowed values: {"a":1}, {"b":2}.'),
        ({"type": "string", "enum": [1, 2]}, "Allowed values: 1, 2."),
        ({"enum": ["a", "b"], "enumDescriptions": ["A", 2]}, '"a": A; "b": 2'),
        (
            {"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}]},
            'Must also match {"pattern":"b"}.',
        ),
        (
            {"anyOf": [STRING, INTEGER], "oneOf": [STRING, NUMBER]},
            'Must also match {"oneOf":[{"type":"string"},{"type":"number"}]}.',
        ),
    ],
)
def test_b3_what_cannot_be_said_is_described_and_noted(schema: Any, sentence: str) -> None:
    """known problem B3"""
    out, notes = prop({**schema, "description": "D."})
    assert out["description"] == f"D.\n{sentence}"
    assert [note.split()[0] for note in notes] == ["moved"]
    assert prop(schema)[0]["description"] == sentence


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "deprecated": False, "contentSchema": True},
        {"type": "string", "if": {"minLength": 1}},
        {"type": "string", "contentSchema": False},
    ],
)
def test_b3_keywords_that_say_nothing_are_not_described(schema: Any) -> None:
    """known problem B3"""
    assert prop(schema) == (STRING, [])


def test_b3_long_rules_are_shortened() -> None:
    """known problem B3"""
    out, _ = prop({"not": {"enum": ["x" * 500]}})
    assert 400 < len(out["description"]) < 440
    assert out["description"].endswith("….")


def test_b3_payloads_are_never_read_as_schemas() -> None:
    """known problem B3"""
    payload = {"type": ["string", "null"], "$ref": "#/nowhere", "const": 1, "properties": {"": {}}}
    assert prop({"type": "object", "default": payload})[0]["default"] == payload
    assert prop({"type": "string", "default": ""})[0]["default"] == ""


def test_b4_properties_named_like_keywords_are_properties() -> None:
    """known problem B4"""
    names = "pattern type items $ref -A properties format description title required enum nullable const $defs".split()
    properties = {name: {"type": "string", "description": name} for name in names}
    schema = {"type": "object", "properties": properties, "required": ["pattern", "-A", "$ref"]}
    assert clean(schema) == (schema, [])


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        (
            {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 9},
            {"type": "integer", "minimum": 1, "maximum": 8},
        ),
        ({"type": "integer", "exclusiveMinimum": 0.5, "minimum": 5}, {"type": "integer", "minimum": 5}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": True}, {"type": "integer", "maximum": 8}),
        ({"type": "integer", "maximum": 9, "exclusiveMaximum": False}, {"type": "integer", "maximum": 9}),
        ({"type": "integer", "exclusiveMaximum": True}, INTEGER),
        ({"type": "integer", "minimum": 2**70}, {"type": "integer", "minimum": 2**70}),
        ({"type": "array", "items": [STRING, INTEGER]}, {"type": "array", "prefixItems": [STRING, INTEGER]}),
        (
            {"type": "array", "items": [STRING], "additionalItems": False},
            {"type": "array", "prefixItems": [STRING], "maxItems": 1},
        ),
        (
            {"type": "array", "items": [STRING], "additionalItems": INTEGER},
            {"type": "array", "prefixItems": [STRING], "items": INTEGER},
        ),
        ({"type": "array", "items": []}, {"type": "array", "items": {}}),
        ({"type": "array", "items": False}, {"type": "array", "maxItems": 0, "items": {}}),
        ({"type": "array", "items": True, "minItems": 1.0}, {"type": "array", "items": {}, "minItems": 1}),
        ({"properties": {"a": STRING}}, {"type": "object", "properties": {"a": STRING}}),
        ({"items": STRING}, {"type": "array", "items": STRING}),
        ({"pattern": "x"}, {"type": "string", "pattern": "x"}),
        ({"minimum": 1}, {"type": "number", "minimum": 1}),
        (
            {"type": "object", "propertyOrdering": ["a", "b"], "properties": {"a": {}}},
            {"type": "object", "properties": {"a": {}}, "propertyOrdering": ["a"]},
        ),
        (
            {"type": "object", "additionalProperties": {"type": ["string", "null"]}},
            {"type": "object", "additionalProperties": {"type": "string", "nullable": True}},
        ),
        (
            {"type": "object", "additionalProperties": False, "patternProperties": {}},
            {"type": "object", "additionalProperties": False},
        ),
        ({"type": "string", "description": "", "title": ""}, STRING),
    ],
)
def test_older_drafts_and_loose_spellings(schema: Any, wanted: Any) -> None:
    assert prop(schema) == (wanted, [])


def test_names_that_match_a_pattern_are_not_shut_out() -> None:
    one = {"type": "object", "patternProperties": {"^x": STRING}, "additionalProperties": False}
    assert prop(one)[0]["additionalProperties"] == STRING
    two = {**one, "patternProperties": {"^x": STRING, "^y": INTEGER}}
    assert prop(two)[0]["additionalProperties"] is True


@pytest.mark.parametrize(
    ("schema", "wanted", "note"),
    [
        (
            {"type": "string", "minimum": 1},
            STRING,
            "dropped x.minimum: it says nothing about a value of type string",
        ),
        (
            {"type": "string", "properties": {"a": {}}},
            STRING,
            "dropped x.properties: it says nothing about a value of type string",
        ),
        ({"type": "string", "enum": []}, STRING, "dropped x.enum: the value is not what the keyword takes"),
        (
            {"type": "integer", "minimum": "1"},
            INTEGER,
            "dropped x.minimum: the value is not what the keyword takes",
        ),
        (
            {"type": "integer", "multipleOf": 0},
            INTEGER,
            "dropped x.multipleOf: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "minLength": 1.5},
            STRING,
            "dropped x.minLength: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "minLength": -1},
            STRING,
            "dropped x.minLength: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "maxLength": True},
            STRING,
            "dropped x.maxLength: the value is not what the keyword takes",
        ),
        (
            {"type": "number", "maximum": float("inf")},
            NUMBER,
            "dropped x.maximum: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "pattern": 5},
            STRING,
            "dropped x.pattern: the value is not what the keyword takes",
        ),
        (
            {"type": "object", "required": "a"},
            {"type": "object"},
            "dropped x.required: the value is not what the keyword takes",
        ),
        (
            {"type": "object", "properties": []},
            {"type": "object"},
            "dropped x.properties: the value is not what the keyword takes",
        ),
        ({"type": "string", "anyOf": {}}, STRING, "dropped x.anyOf: the value is not what the keyword takes"),
        (
            {"type": "array", "items": 5},
            {"type": "array", "items": {}},
            "dropped x.items: the value is not what the keyword takes",
        ),
        (
            {"type": "string", "nullable": "yes"},
            STRING,
            "dropped x.nullable: the value is not what the keyword takes",
        ),
        ({"type": ["str", 5]}, STRING, "repaired x.type: not a list of different JSON types"),
        ({"type": "file"}, {}, "repaired x.type: not a list of different JSON types"),
        ({"allOf": [STRING, INTEGER]}, STRING, "dropped x: no value can satisfy all of its parts"),
        (
            {"type": "array", "items": {"anyOf": [False]}},
            {"type": "array", "items": {}},
            "dropped x.items: no branch of anyOf can hold",
        ),
    ],
)
def test_mistakes_are_dropped_with_a_note(schema: Any, wanted: Any, note: str) -> None:
    out, notes = prop(schema)
    assert {key: value for key, value in out.items() if key != "description"} == wanted
    assert note in notes


def test_b9_required_names_only_what_is_defined() -> None:
    """known problem B9"""
    out, notes = prop({"type": "object", "properties": {"a": STRING}, "required": ["a", "b", 5, "a"]})
    assert out["required"] == ["a"]
    assert notes == ["dropped x.required: 'b' is not among the properties"]
    assert prop({"type": "object", "required": ["b"]})[0] == {"type": "object"}


def test_b9_required_on_the_property_itself_counts() -> None:
    """known problem B9"""
    out, notes = clean({"properties": {"a": {"type": "string", "required": True}, "b": {"required": False}}})
    assert out == {"type": "object", "properties": {"a": STRING, "b": {}}, "required": ["a"]}
    assert notes == []


def test_properties_without_a_name_or_a_value_go() -> None:
    out, notes = clean({"properties": {"": STRING, "no": False, "bad": 5, "any": True}, "required": ["no"]})
    assert out == {"type": "object", "properties": {"any": {}}}
    assert len(notes) == 4


def test_the_order_of_properties_is_kept() -> None:
    names = ["z", "a", "m", "b"]
    assert list(clean({"properties": dict.fromkeys(names, STRING)})[0]["properties"]) == names


def test_b11_nothing_is_wrapped() -> None:
    """known problem B11"""
    deep: Any = STRING
    for _ in range(25):
        deep = {"type": "object", "properties": {"x": deep}, "required": ["x"]}
    assert clean(deep) == (deep, [])


def test_a_root_for_something_else_is_described() -> None:
    out, notes = clean({"type": "array", "items": STRING, "title": "T"})
    assert out == {
        **EMPTY,
        "title": "T",
        "description": 'Meant as {"type":"array","items":{"type":"string"}}.',
    } or (out["description"].startswith("Meant as"))
    assert notes == ["dropped s: arguments are always an object: the schema is for something else"]


def test_hostile_depth_ends_with_a_note() -> None:
    for link in ("items", "properties", "allOf", "not", "default"):
        deep: Any = {}
        for _ in range(10_000):
            deep = {link: {"x": deep} if link == "properties" else [deep] if link == "allOf" else deep}
        out, notes = clean_schema({"type": "object", "properties": {"x": deep}}, where="s")
        assert check.jsonschema_problems(out) == []
        assert any("nesting" in str(note) for note in notes)
