"""Arguments that are plainly right are known by their members alone; whatever else they are, the rules judge."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.schema.validate import Document, Validator

READ: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "minLength": 1},
        "offset": {"type": "integer", "minimum": 0},
        "ratio": {"type": "number"},
        "mode": {"type": ["string", "null"], "enum": ["a", "b", None]},
        "lines": {"type": "array", "items": {"type": "integer"}},
        "any": True,
        "free": {},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def quick(value: dict[str, Any], schema: dict[str, Any] = READ, *, whole: bool = True) -> bool:
    """Whether no rule of the object had to be asked."""
    document = Document(schema)
    node = document.spelled(schema)
    flat = document.flat(node)
    return flat is not None and Validator(document, whole=whole)._fits(value, flat, 1)


@pytest.mark.parametrize(
    "value",
    [
        {"path": "x"},
        {"path": "x", "offset": 0, "ratio": 1},
        {"path": "x", "ratio": 0.5, "mode": "b"},
        {"path": "x", "mode": None},
    ],
)
def test_plain_members_are_judged_by_themselves(value: dict[str, Any]) -> None:
    assert quick(value)
    assert Validator(Document(READ), whole=True).ok(value, READ)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"offset": 1},
        {"path": ""},
        {"path": 1},
        {"path": "x", "offset": -1},
        {"path": "x", "offset": 1.0},
        {"path": "x", "offset": True},
        {"path": "x", "mode": "c"},
        {"path": "x", "other": 1},
    ],
)
def test_what_is_wrong_is_never_plainly_right(value: dict[str, Any]) -> None:
    assert not quick(value)
    assert not Validator(Document(READ), whole=True).ok(value, READ)


@pytest.mark.parametrize(
    "value", [{"path": "x", "lines": [1]}, {"path": "x", "any": 1}, {"path": "x", "free": 1}]
)
def test_members_that_are_more_than_a_type_are_left_to_the_rules(value: dict[str, Any]) -> None:
    assert not quick(value)
    assert Validator(Document(READ), whole=True).ok(value, READ)


@pytest.mark.parametrize(
    "more",
    [
        {"anyOf": [{"required": ["offset"]}]},
        {"allOf": [{"required": ["offset"]}]},
        {"oneOf": [{"required": ["offset"]}]},
        {"minProperties": 2},
        {"enum": [{"path": "y"}]},
        {"$ref": "#/$defs/more", "$defs": {"more": {"required": ["offset"]}}},
    ],
)
def test_an_object_with_rules_of_its_own_is_left_to_them(more: dict[str, Any]) -> None:
    schema = {**READ, **more}
    assert not quick({"path": "x"}, schema)
    assert not Validator(Document(schema)).ok({"path": "x"}, schema)


def test_an_integer_spelled_with_a_fraction_is_right_where_that_is_no_matter() -> None:
    value = {"path": "x", "offset": 1.0}
    assert Validator(Document(READ)).ok(value, READ)
    assert not quick(value, whole=False)


def test_objects_in_a_list_are_judged_so_too() -> None:
    schema = {"type": "array", "items": READ}
    validator = Validator(Document(schema))
    assert validator.ok([{"path": "x"}, {"path": "y", "offset": 1}], schema)
    assert len(validator.document.flats) == 1
    assert validator._steps == 1 + 2 + 3  # as the rules would have taken


def test_a_schema_deeper_than_python_reaches_is_read_one_level_at_a_time() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(2_000):
        schema = {"type": "object", "properties": {"a": schema, "b": {"type": "string"}}}
    assert Validator(Document(schema)).ok({"b": "x"}, schema)
    assert not Validator(Document(schema)).ok({"b": 1}, schema)
