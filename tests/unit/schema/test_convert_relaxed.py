"""Fewer rules, the same shape, and nothing lost without a word."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dragoman.schema.clean import relax_schema


def test_b12_bounds_patterns_and_long_enums_move_into_the_description() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9, "description": "How many."},
            "kind": {"enum": [f"k{number}" for number in range(9)]},
            "few": {"enum": ["a", "b"]},
        },
        "required": ["n"],
    }
    relaxed, notes = relax_schema(schema, where="t")
    assert relaxed["properties"]["n"] == {
        "type": "integer",
        "description": "How many.\nAt least 1.\nAt most 9.",
    }
    assert "enum" not in relaxed["properties"]["kind"]
    assert '"k8"' in relaxed["properties"]["kind"]["description"]
    assert relaxed["properties"]["few"] == {"enum": ["a", "b"]}
    assert relaxed["required"] == ["n"]
    assert [note.where for note in notes] == [
        "t.properties.n.minimum",
        "t.properties.n.maximum",
        "t.properties.kind.enum",
    ]


def test_b4_properties_named_like_rules_stay() -> None:
    schema = {"properties": {"pattern": {"type": "string"}, "format": {"type": "string"}}}
    assert relax_schema(schema, where="") == (schema, ())


def test_b3_values_are_not_schemas() -> None:
    schema = {"default": {"pattern": "x"}, "enum": [{"minimum": 1}]}
    assert relax_schema(schema, where="") == (schema, ())


def test_what_is_no_object_stays_as_it_is() -> None:
    assert relax_schema(True, where="") == (True, ())
    schema = {"items": True, "anyOf": [{"minItems": 2}, False]}
    relaxed, _ = relax_schema(schema, where="")
    assert relaxed == {"items": True, "anyOf": [{"description": "At least 2 items."}, False]}


SCHEMAS: Any = st.recursive(
    st.fixed_dictionaries(
        {}, optional={"type": st.just("string"), "pattern": st.text(), "minimum": st.integers()}
    ),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={"properties": st.dictionaries(st.text(), inner), "items": inner, "maxItems": st.integers()},
    ),
)


@given(SCHEMAS)
def test_it_is_done_once_and_for_all(schema: Any) -> None:
    relaxed, notes = relax_schema(schema, where="")
    assert relax_schema(relaxed, where="") == (relaxed, ())
    assert bool(notes) == (relaxed != schema)
