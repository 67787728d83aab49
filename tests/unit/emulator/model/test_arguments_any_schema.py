"""Whatever the schema, what is filled in is valid against it; jsonschema is the judge."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dragoman.emulator.model.arguments import fill_arguments, fill_value
from dragoman.emulator.model.json_schema import conforms
from dragoman.emulator.model.regex import matches, sample_pattern
from tests.unit.emulator.model.schema_strategies import PATTERNS, Json, documents

WORDS = st.sampled_from(
    [
        "",
        "read a.txt and /b/c.md",
        'send "hi" to bob@x.org at 21.5',
        "in celsius, Paris and 7 red URLs https://x.org",
    ]
)


@settings(deadline=None)
@given(documents(), WORDS)
def test_arguments_are_valid_against_any_schema(schema: Json, words: str) -> None:
    jsonschema.validate(fill_arguments(schema, words), schema)


@settings(deadline=None)
@given(documents(), WORDS)
def test_jschange_responses_are_valid_against_any_schema(schema: Json, words: str) -> None:
    jsonschema.validate(fill_value(schema, words), schema)


VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-60, 60), st.floats(-9, 9), st.text("abc-_.", max_size=9)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("ab"), inner)),
    max_leaves=5,
)


@settings(deadline=None)
@given(documents(), VALUES)
@example({"type": "object", "properties": {"a": {"const": 1}}}, True)
def test_the_emulators_own_judge_agrees_with_jsonschema(schema: Json, value: Any) -> None:
    for name in schema["properties"]:
        node = {**schema["properties"][name], "$defs": schema.get("$defs", {})}
        fits = jsonschema.Draft202012Validator(node).is_valid(value)
        assert conforms(value, node, node) == fits or (value is None and "nullable" in str(node))


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("variant", [0, 3])
def test_simple_patterns_are_met(pattern: str, variant: int) -> None:
    found = [sample_pattern(pattern, more=more, variant=variant) for more in range(4)]
    assert any(re.search(pattern, text) for text in found)


@settings(deadline=None)
@given(st.text("ab1()[]{}|^$*+?\\-.,:=<>!dw", max_size=20))
def test_no_pattern_is_too_odd_to_try(pattern: str) -> None:
    assert len(sample_pattern(pattern, more=2)) <= 4000


FOLDER = Path(__file__).parents[3] / "e2e" / "schemas"


def real_tools() -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        loaded = json.loads(path.read_text("utf-8"))
        tools = loaded if isinstance(loaded, list) else loaded["tools"]
        found += [pytest.param(tool["input_schema"], id=f"{path.stem}-{tool['name']}") for tool in tools]
    return found


@pytest.mark.parametrize("schema", real_tools())
def test_real_tools_get_valid_arguments(schema: Json) -> None:
    for words in ("", 'read /etc/hosts, search "x" in 5 files and write it to b.txt'):
        jsonschema.validate(fill_arguments(schema, words), schema)
        jsonschema.validate(fill_value(schema, words), schema)


ODD: dict[str, Json] = {
    "draft 7 tuple": {
        "type": "array",
        "items": [{"type": "integer"}],
        "additionalItems": False,
        "minItems": 1,
    },
    "draft 4 bounds": {"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 4},
    "small range": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    "float step": {"type": "number", "multipleOf": 0.1},
    "map by pattern": {
        "type": "object",
        "patternProperties": {"^x-": {"type": "integer"}},
        "additionalProperties": False,
        "minProperties": 2,
    },
    "map with named keys": {"type": "object", "propertyNames": {"pattern": "^[a-z]{4}$"}, "minProperties": 2},
    "keys that need keys": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "integer"}},
        "required": ["a"],
        "dependentRequired": {"a": ["b"]},
    },
    "at most one key": {"type": "object", "properties": {"a": {}, "b": {}}, "maxProperties": 1},
    "an undeclared required key": {"type": "object", "required": ["z"]},
    "something it contains": {
        "type": "array",
        "items": {"type": "integer"},
        "contains": {"minimum": 40},
        "minItems": 2,
    },
    "exactly one": {"oneOf": [{"type": "number"}, {"type": "integer"}, {"type": "string"}]},
    "not everything": {"type": "string", "anyOf": [{"const": "a"}, {"const": "b"}], "not": {"const": "a"}},
    "two unions": {"allOf": [{"anyOf": [{"minimum": 5}]}, {"anyOf": [{"type": "integer"}]}]},
    "a reference with siblings": {"$ref": "#/$defs/x", "minLength": 9, "$defs": {"x": {"type": "string"}}},
    "a reference to the root": {"type": "object", "properties": {"again": {"$ref": "#"}}},
    "narrowed types": {"allOf": [{"type": "number"}, {"type": ["integer", "string"]}]},
}


@pytest.mark.parametrize("schema", ODD.values(), ids=ODD.keys())
def test_odd_keywords_are_honoured(schema: Json) -> None:
    dialect = {"draft 7 tuple": jsonschema.Draft7Validator, "draft 4 bounds": jsonschema.Draft4Validator}
    name = next(name for name, odd in ODD.items() if odd is schema)
    dialect.get(name, jsonschema.Draft202012Validator)(schema).validate(fill_value(schema, "word 5"))


BROKEN: list[Json] = [
    {"type": "object", "properties": ["a"], "required": "a"},
    {"type": "array", "items": {"type": "string"}, "minItems": "3"},
    {"anyOf": {"type": "string"}},
    {"enum": "x"},
    {"$ref": "#/nowhere/at/all"},
    {"$ref": "https://example.com/schema"},
    {"$ref": "#"},
    {"type": 5},
    {"type": "string", "pattern": "(["},
    {"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]},
]


@pytest.mark.parametrize("schema", BROKEN, ids=str)
def test_a_broken_schema_is_no_obstacle(schema: Json) -> None:
    assert isinstance(fill_arguments(schema, "hello"), dict)
    fill_value(schema, "hello")


def test_a_schema_that_could_grow_without_end_is_cut_short() -> None:
    itself = {"anyOf": [{"$ref": "#"}, {"type": "string"}]}
    wide = {"type": "object", "properties": {f"p{n}": itself for n in range(30)}, "required": ["p0", "p9"]}
    endless = {
        "type": "object",
        "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#"}},
        "required": ["a", "b"],
    }
    assert len(json.dumps(fill_value(wide, "x"))) < 100_000
    assert len(json.dumps(fill_value(endless, "x"))) < 100_000
    jsonschema.validate(fill_value(wide, "x"), wide)


def test_a_pattern_that_python_reads_with_a_warning_is_only_read() -> None:
    """Warnings are errors in whoever's test run this is part of."""
    assert matches("[[a]", "[")
    assert not matches("[[a]", "b")
