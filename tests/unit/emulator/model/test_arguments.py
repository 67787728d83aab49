"""Arguments that validate against the declared schema."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.emulator.model.arguments import fill_arguments, fill_value


def properties(required: list[str] | None = None, **nodes: Any) -> dict[str, Any]:
    return {"type": "object", "properties": nodes, "required": list(nodes) if required is None else required}


STRING = {"type": "string"}
WORDS = [
    ("read /etc/hosts now", properties(file_path=STRING), {"file_path": "/etc/hosts"}),
    ("copy a/b.txt to ./c.txt", properties(source_path=STRING, target_path=STRING), None),
    ("open https://x.org/a?b=1", properties(url=STRING), {"url": "https://x.org/a?b=1"}),
    ('search for "red shoes"', properties(query=STRING), {"query": "red shoes"}),
    ("find red shoes", properties(query=STRING), {"query": "find red shoes"}),
    ("set it to 21.5 degrees", properties(degrees={"type": "number"}), {"degrees": 21.5}),
    ("in celsius please", properties(unit={"enum": ["kelvin", "celsius"]}), {"unit": "celsius"}),
    ("whatever", properties(unit={"enum": ["kelvin", "celsius"]}), {"unit": "kelvin"}),
    ("mail bob@x.org", properties(to={"type": "string", "format": "email"}), {"to": "bob@x.org"}),
    ("run `ls -la`", properties(command=STRING), {"command": "ls -la"}),
    (
        "read /a with limit 5",
        properties(["path"], path=STRING, limit={"type": "integer"}),
        {"path": "/a", "limit": 5},
    ),
    ("read /a", properties(["path"], path=STRING, limit={"type": "integer"}), {"path": "/a"}),
    ("nothing here", properties([], note=STRING, deep=properties(x=STRING)), {}),
    (
        "go",
        {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "minimum": 7}}, "required": ["n"]},
        {"n": 7},
    ),
    ("go", {}, {}),
]


@pytest.mark.parametrize(("words", "schema", "expected"), WORDS)
def test_words_become_arguments(words: str, schema: dict[str, Any], expected: dict[str, Any] | None) -> None:
    filled = fill_arguments(schema, words)
    if expected is None:
        expected = {"source_path": "a/b.txt", "target_path": "./c.txt"}
    assert filled == expected


HARD = {
    "reference": {**properties(a={"$ref": "#/$defs/b"}), "$defs": {"b": properties(c=STRING)}},
    "recursion": {
        "$ref": "#/$defs/n",
        "$defs": {"n": properties(["v"], v=STRING, next={"$ref": "#/$defs/n"})},
    },
    "needed recursion": {
        "$ref": "#/$defs/n",
        "$defs": {"n": properties(kids={"type": "array", "items": {"$ref": "#/$defs/n"}})},
    },
    "union": properties(a={"anyOf": [{"type": "null"}, {"type": "integer", "exclusiveMinimum": 3}]}),
    "type list": properties(a={"type": ["null", "integer"]}),
    "all of": {"allOf": [properties(a=STRING), properties(b={"type": "boolean"})]},
    "lengths": properties(a={"type": "string", "minLength": 9, "maxLength": 10}),
    "bounds": properties(a={"type": "number", "exclusiveMaximum": 0}, b={"type": "integer", "multipleOf": 5}),
    "array": properties(a={"type": "array", "minItems": 2, "items": properties(x={"const": 4})}),
    "tuple": properties(a={"type": "array", "prefixItems": [STRING, {"type": "integer"}]}),
    "null": properties(a={"type": "null"}),
    "pattern": properties(a={"type": "string", "pattern": "^[a-z]$"}),
    "mixed enum": properties(a={"enum": [None, 3, "x"]}),
    "untyped": properties(a={}),
}


@pytest.mark.parametrize("schema", HARD.values(), ids=HARD.keys())
@pytest.mark.parametrize("words", ["", 'hello 5 /tmp "quoted" World'])
def test_filled_arguments_are_valid(schema: dict[str, Any], words: str) -> None:
    if schema is not HARD["needed recursion"]:
        jsonschema.validate(fill_arguments(schema, words), schema)
        jsonschema.validate(fill_value(schema, words), schema)
    assert isinstance(fill_value(schema, words), dict)


LEAF = st.sampled_from([STRING, {"type": "integer"}, {"type": "boolean"}, {"type": "number", "minimum": 2}])
NODES = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.dictionaries(st.text("abc_", min_size=1, max_size=3), inner, max_size=3).map(
            lambda d: properties(**d)
        ),
        inner.map(lambda node: {"type": "array", "items": node, "minItems": 1}),
        st.lists(inner, min_size=1, max_size=3).map(lambda nodes: {"anyOf": nodes}),
    ),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(["path", "url", "query", "n"]), NODES), st.text(max_size=60))
def test_any_schema_is_filled_validly(nodes: dict[str, Any], words: str) -> None:
    schema = properties(**nodes)
    jsonschema.validate(fill_arguments(schema, words), schema)
