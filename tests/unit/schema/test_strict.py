"""The judge of strict mode: what it says, what it leaves to the lenient one, and the bounds of its work."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from dragoman.schema import check_args_strictly
from dragoman.schema.strict import Verdict, validate_strictly

OBJECT: dict[str, Any] = {"type": "object"}
INTEGER = {"type": "integer"}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
DRAFT_2019 = {"$schema": "https://json-schema.org/draft/2019-09/schema"}
TWO = "arguments: the value is valid under more than one of the schemas listed in the 'oneOf' keyword"


def check(value: Any, schema: Any) -> tuple[tuple[str, ...], list[str]]:
    problems, notes = check_args_strictly(
        json.dumps(value).encode(), json.dumps(schema).encode(), where="call"
    )
    return problems, [str(note) for note in notes]


def verdict(value: Any, schema: Any) -> Verdict:
    return validate_strictly(value, json.dumps(schema).encode())


def properties(**named: Any) -> dict[str, Any]:
    return {"type": "object", "properties": named}


ITEM = properties(b=INTEGER)


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        ({"a": "x"}, properties(a=INTEGER), 'a: the value is not of type "integer"'),
        ({"a": [{"b": ""}]}, properties(a={"items": ITEM}), 'a[0].b: the value is not of type "integer"'),
        ({}, {"required": ["a"]}, 'arguments: "a" is a required property'),
        ({"a": "x"}, properties(a={"pattern": "^[0-9]+$"}), 'a: the value does not match "^[0-9]+$"'),
        ({"a": "xy"}, properties(a={"pattern": "^(?!x)"}), 'a: the value does not match "^(?!x)"'),
        ({"a": 3}, properties(a={"multipleOf": 2}), "a: the value is not a multiple of 2"),
        ({"a": [1, 1]}, properties(a={"uniqueItems": True}), "a: the value has non-unique elements"),
        ({"a": 1}, properties(a={"not": INTEGER}), 'a: {"type":"integer"} is not allowed for the value'),
        ({"a": 1, "b": 1}, {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, TWO),
        ([], OBJECT, "arguments: expected object, got array"),
    ],
)  # fmt: skip
def test_a_problem_names_its_place_and_what_is_wrong(value: Any, schema: Any, problem: str) -> None:
    assert check(value, schema) == ((problem,), [])


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        ({"a": 5.0}, properties(a=INTEGER)),
        ({"a": "no address"}, properties(a={"format": "email"})),
        ({"a": "no address"}, {**DRAFT_7, **properties(a={"format": "email"})}),
        ({"a": [1, "x"]}, {**DRAFT_7, **properties(a={"items": [INTEGER]})}),
        ({"a": 1}, True),
    ],
)  # fmt: skip
def test_what_is_valid_passes(value: Any, schema: Any) -> None:
    assert check(value, schema) == ((), [])


def test_what_is_no_json_is_refused() -> None:
    assert check_args_strictly(b'{"a": ', b"{}", where="call") == (("arguments: not valid JSON",), ())


def test_messages_are_short_and_few() -> None:
    many, _ = check({f"name{i}": 1 for i in range(100)}, {"additionalProperties": {"type": "string"}})
    assert len(many) == 20
    for value, schema in (
        ({"a": "y" * 100_000}, properties(a={"enum": ["x" * 100_000]})),
        ({"n" * 100_000: 1}, {"additionalProperties": {"type": "string"}}),
    ):
        (problem,), _ = check(value, schema)
        assert len(problem) < 1000
        assert "y" not in problem


def test_too_many_errors_to_make_are_told_by_the_lenient_judge() -> None:
    items = {"a": ["x"] * 5000}
    assert verdict(items, properties(a={"items": INTEGER})) == Verdict(valid=False)
    assert check(items, properties(a={"items": INTEGER}))[0][0] == "a[0]: expected integer, got string"
    assert check(items, properties(a={"uniqueItems": True, "items": True}))[0] == (
        "arguments: do not match the schema",
    )


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ({"$ref": "https://example.com/schema.json"}, "Retrieval is disabled"),
        ({"$ref": "file:///etc/passwd"}, "Retrieval is disabled"),
        ({"$ref": "#/nowhere"}, "does not exist"),
        ({"$ref": 5}, "cannot be compiled"),
        ({"$schema": "https://example.com/draft"}, "Unknown meta-schema"),
        (properties(a={"type": "STRING"}), "cannot be compiled"),
        (properties(a={"pattern": "("}), "is not a \"regex\""),
        ({"description": "x" * 200_000}, "larger than 128 KB"),
        ({"$defs": {f"d{i}": {"$id": f"http://x/{i}"} for i in range(50)}}, "too many steps"),
        ({"patternProperties": {f"^{i}$": True for i in range(500)}}, "too many steps"),
    ],
)  # fmt: skip
def test_a_schema_that_cannot_be_compiled_is_left_to_the_lenient_judge(schema: Any, why: str) -> None:
    schema = {"properties": {"n": INTEGER}, **schema} if "properties" not in schema else schema
    problems, (note,) = check({"a": "x"}, schema)
    assert problems == ()
    assert note.startswith("dropped call: not validated strictly: ")
    assert why in note


def test_the_lenient_judge_still_refuses() -> None:
    problems, notes = check(
        {"n": "x"}, {"$ref": "https://example.com/schema.json", "properties": {"n": INTEGER}}
    )
    assert problems == ("n: expected integer, got string",)
    assert len(notes) == 1


def test_a_schema_that_is_no_json_is_left_to_the_lenient_judge() -> None:
    problems, (note,) = check_args_strictly(b"{}", b"{nonsense", where="call")
    assert problems == ()
    assert "cannot be compiled" in note.why


def laughs(keyword: str, leaf: Any, **root: Any) -> dict[str, Any]:
    """Sixty definitions, each of which refers twice to the next."""
    defs = {f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(60)}
    return {"$defs": {**defs, "d60": leaf}, **root}


def nested(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = {"a": value}
    return value


def unevaluated(levels: int) -> Any:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(levels):
        schema = {"allOf": [schema], "unevaluatedProperties": {"type": "integer"}}
    return schema


REF = {"$ref": "#/$defs/d0"}
CHAIN = {
    "$defs": {
        **{f"d{i}": {"allOf": [{"$ref": f"#/$defs/d{i + 1}"}]} for i in range(1000)},
        "d1000": {"properties": {"a": REF}},
    },
    **REF,
}
#: Each of these would run for hours, or overflow the native stack and kill the process.
HOSTILE: dict[str, tuple[Any, Any]] = {
    "allOf": (laughs("allOf", INTEGER, properties={"a": REF}), {"a": 1}),
    "anyOf": (laughs("anyOf", INTEGER, properties={"a": REF}), {"a": "x"}),
    "oneOf": (laughs("oneOf", INTEGER, properties={"a": REF}), {"a": 1}),
    "property names": (laughs("allOf", {"minLength": 1}, propertyNames=REF), {"a": 1}),
    "items": (laughs("allOf", INTEGER, properties={"a": {"items": REF}}), {"a": [1]}),
    "tuple": (laughs("allOf", INTEGER, properties={"a": {"prefixItems": [REF]}}), {"a": [1]}),
    "other properties": (laughs("allOf", INTEGER, additionalProperties=REF), {"a": 1}),
    "unevaluated, compiled": (laughs("allOf", OBJECT, unevaluatedProperties=False, **REF), {}),
    "unevaluated, nested": (unevaluated(40), {}),
    "unevaluated, of many": (unevaluated(6), {f"p{i}": 1 for i in range(10)}),
    "chain of references": (CHAIN, nested({}, 100)),
    "backtracking": (properties(a={"pattern": "(?!x)(a+)+$"}), {"a": "a" * 20_000 + "b"}),
    "large pattern": (properties(a={"pattern": "(a|aa){500}b"}), {"a": "a" * 100_000}),
    "names": ({"patternProperties": {"(a|aa){500}b": True}}, {"a" * 100_000: 1}),
    "deep value": ({"enum": [1]}, nested({}, 900)),
}


ONE = {"maxProperties": 1}
TOO_MANY = {"a": {"b": 1, "c": 1}}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_are_not_judged(name: str) -> None:
    schema, value = HOSTILE[name]
    assert verdict(value, schema).not_checked


@pytest.mark.parametrize(
    ("schema", "value", "valid"),
    [
        ({"$ref": "#"}, {}, True),
        ({"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}] * 2}}, "$ref": "#/$defs/A"}, {}, True),
        ({**ONE, "properties": {"a": {"$ref": "#"}}}, nested({}, 100), True),
        ({**ONE, "properties": {"a": {"$ref": "#"}}}, nested(TOO_MANY, 100), False),
        ({**ONE, "properties": {"a": {"$dynamicRef": "#x"}}, "$dynamicAnchor": "x"}, TOO_MANY, False),
        ({**ONE, **DRAFT_2019, "properties": {"a": {"$recursiveRef": "#"}}}, TOO_MANY, False),
        (unevaluated(2), {"a": 1, "b": "x"}, False),
    ],
)  # fmt: skip
def test_recursion_that_ends_is_judged(schema: Any, value: Any, valid: bool) -> None:
    found = verdict(value, schema)
    assert (found.valid, found.not_checked) == (valid, "")


def test_a_match_that_backtracks_too_much_is_no_reason_to_refuse() -> None:
    found = verdict({"a": "a" * 60 + "c"}, properties(a={"pattern": "((a+)+)+$(?!x)"}))
    assert found.valid
    assert "backtracking" in found.not_checked


def test_jsonschema_rs_is_loaded_with_the_first_judgement() -> None:
    code = "import sys, dragoman.translation.exchange; sys.exit('jsonschema_rs' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
