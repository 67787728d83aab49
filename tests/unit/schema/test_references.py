"""What `clean_schema` makes of references, circles and hostile webs of them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.schema import clean_schema
from tests.unit.schema.builders import EMPTY, INTEGER, STRING, clean, prop


def test_b10_references_are_inlined_with_their_siblings() -> None:
    """known problem B10"""
    defs = {"A": {"type": "string", "description": "def"}, "B/~%": {"$ref": "#/$defs/A"}}
    assert prop({"$ref": "#/$defs/A"}, **{"$defs": defs}) == (defs["A"], [])
    assert prop({"$ref": "#/definitions/A"}, definitions=defs) == (defs["A"], [])
    both = {"type": "string", "description": "here\ndef", "default": "d"}
    assert prop({"$ref": "#/%24defs/B~1~0%25", "description": "here", "default": "d"}, **{"$defs": defs}) == (
        both,
        [],
    )
    assert prop({"$ref": "#/allOf/0"}, allOf=[STRING | {"type": "object"}])[0] == {"type": "object"}


@pytest.mark.parametrize(
    "ref", ["#/nowhere", "#/allOf/x", "#/type", "#/type/x", "#anchor", "https://example.com/x.json"]
)
def test_b10_references_that_lead_nowhere_leave_the_place_open(ref: str) -> None:
    """known problem B10"""
    out, notes = prop({"$ref": ref, "description": "D"}, allOf=[{}])
    assert out == {"description": "D"}
    assert notes == [
        f"dropped x: the reference {ref!r} points nowhere in this schema: anything is allowed here"
    ]


def test_b10_a_root_reference_keeps_its_parameters() -> None:
    """known problem B10"""
    schema = {"$ref": "#/$defs/Args", "$defs": {"Args": {"properties": {"a": STRING}, "required": ["a"]}}}
    assert clean(schema) == ({"type": "object", "properties": {"a": STRING}, "required": ["a"]}, [])


def test_b10_circles_stay_references_to_definitions() -> None:
    """known problem B10"""
    node = {"type": "object", "properties": {"next": {"$ref": "#/definitions/my node"}}}
    out, notes = clean(
        {"properties": {"x": {"$ref": "#/definitions/my node"}}, "definitions": {"my node": node}}
    )
    kept = {"type": "object", "properties": {"next": {"$ref": "#/$defs/my_node"}}}
    assert out == {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/my_node"}},
        "$defs": {"my_node": kept},
    }
    assert notes == []


def test_b10_the_root_may_contain_itself() -> None:
    """known problem B10"""
    out, _ = clean({"type": "object", "properties": {"child": {"$ref": "#"}, "v": INTEGER}})
    again = {"type": "object", "properties": {"child": {"$ref": "#/$defs/root"}, "v": INTEGER}}
    assert out == {**again, "$defs": {"root": again}}


def test_b10_a_circle_without_properties_stays_small() -> None:
    """known problem B10"""
    out, _ = clean({"type": "object", "additionalProperties": {"$ref": "#"}})
    ref = {"additionalProperties": {"$ref": "#/$defs/root"}}
    assert out == {**EMPTY, **ref, "$defs": {"root": {"type": "object", **ref}}}
    rows = {"type": "array", "items": {"$ref": "#/$defs/R"}}
    out, _ = clean({"properties": {"x": {"$ref": "#/$defs/R"}}, "required": ["x"], "$defs": {"R": rows}})
    assert "required" not in out


def test_b10_a_recursive_property_is_not_required_but_asked_for() -> None:
    """known problem B10"""
    node = {
        "type": "object",
        "properties": {"v": INTEGER, "kids": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
        "required": ["v", "kids"],
    }
    out, notes = clean({"properties": {"n": {"$ref": "#/$defs/N"}}, "required": ["n"], "$defs": {"N": node}})
    assert out["required"] == ["n"]
    assert out["properties"]["n"] == out["$defs"]["N"]
    assert out["$defs"]["N"]["required"] == ["v"]
    assert out["$defs"]["N"]["description"] == "Required: `kids`."
    assert "moved s.$defs.N.required: 'kids' is recursive: only the description asks for it" in notes
    only = {"type": "object", "properties": {"next": {"$ref": "#/$defs/L"}}, "required": ["next"]}
    out, _ = clean({"properties": {"l": {"$ref": "#/$defs/L"}}, "$defs": {"L": only}})
    assert "required" not in out["$defs"]["L"]


def test_b10_mutual_recursion_through_required_properties_ends() -> None:
    """known problem B10"""
    a = {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}, "required": ["b"]}
    b = {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "required": ["a"]}
    out, _ = clean({"properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": a, "B": b}})
    assert list(out["$defs"]) == ["A"]
    assert out["$defs"]["A"]["required"] == ["b"]
    assert out["$defs"]["A"]["properties"]["b"]["properties"]["a"] == {"$ref": "#/$defs/A"}


@pytest.mark.parametrize(
    ("over", "wanted"),
    [
        ({"description": "D"}, {"description": "D", "anyOf": [{"$ref": "#/$defs/N"}]}),
        ({"nullable": True}, {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]}),
        (
            {"nullable": True, "title": "T"},
            {"title": "T", "anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]},
        ),
        (
            {"minProperties": 1},
            {"description": 'Must also match {"minProperties":1}.', "anyOf": [{"$ref": "#/$defs/N"}]},
        ),
    ],
)
def test_b10_nothing_stands_beside_a_reference(over: Any, wanted: Any) -> None:
    """known problem B10"""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", **over}}}
    out, _ = clean({"properties": {"x": {"$ref": "#/$defs/N"}}, "$defs": {"N": node}})
    assert out["$defs"]["N"]["properties"]["next"] == wanted
    vertex, notes = clean_schema(out, where="s", vertex=True)
    assert len(vertex["$defs"]["N"]["properties"]["next"]) == 1
    assert bool(notes) == (len(wanted["anyOf"]) == 1)


def test_b10_a_described_circle_may_be_null_or_one_of_several() -> None:
    """known problem B10"""
    ref = {"$ref": "#/$defs/N"}
    inner = {"anyOf": [{**ref, "description": "D"}, {"type": "null"}]}
    several = {"anyOf": [{**ref, "description": "D"}, STRING]}
    node = {
        "type": "object",
        "properties": {"a": inner, "b": several, "c": {"allOf": [{"maxProperties": 1}, ref]}},
    }
    out, _ = clean({"properties": {"x": ref}, "$defs": {"N": node}})
    properties = out["$defs"]["N"]["properties"]
    assert properties["a"] == {"description": "D", "anyOf": [ref, {"type": "null"}]}
    assert properties["b"] == {"anyOf": [{"description": "D", "anyOf": [ref]}, STRING]}
    assert properties["c"]["anyOf"] == [ref]


def test_b10_definitions_of_the_same_name_stay_apart() -> None:
    """known problem B10"""

    def node(ref: str) -> Any:
        return {"type": "object", "properties": {"n": {"$ref": ref}}}

    refs = ["#/$defs/N", "#/definitions/N", "#/properties/N"]
    out, _ = clean(
        {
            "properties": {"N": node(refs[2]), "b": {"$ref": refs[0]}, "c": {"$ref": refs[1]}},
            "$defs": {"N": node(refs[0])},
            "definitions": {"N": node(refs[1])},
        }
    )
    assert list(out["$defs"]) == ["N", "N_2", "N_3"]


def test_b10_a_reference_to_nothing_but_itself_is_open() -> None:
    """known problem B10"""
    loop = {"A": {"$ref": "#/$defs/B"}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}
    out, notes = prop({"$ref": "#/$defs/A"}, **{"$defs": loop})
    assert out == {}
    assert any("leads only back to itself" in note for note in notes)
    assert clean({"$ref": "#"})[0] == EMPTY


def test_hostile_chains_and_fans_of_references_end() -> None:
    chain = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(5_000)}
    out, notes = prop({"$ref": "#/$defs/d0"}, **{"$defs": chain})
    assert out == {}
    assert any("too large" in note for note in notes)
    fan: dict[str, Any] = {
        f"d{i}": {"type": "object", "properties": {name: {"$ref": f"#/$defs/d{i + 1}"} for name in "abcd"}}
        for i in range(30)
    }
    _, notes = prop({"$ref": "#/$defs/d0"}, **{"$defs": {**fan, "d30": STRING}})
    assert any("too large" in note for note in notes)


def test_a_real_hostile_mcp_schema() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "pattern": {"type": "string", "minLength": 1},
            "-A": {"type": "number", "description": "lines after"},
            "filter": {"$ref": "#/definitions/filter"},
            "env": {
                "type": "object",
                "patternProperties": {"^[A-Z_]+$": STRING},
                "additionalProperties": False,
            },
            "mode": {"oneOf": [{"const": "fast"}, {"const": "slow"}]},
            "range": {"type": "array", "items": [INTEGER, INTEGER], "additionalItems": False},
        },
        "required": ["pattern", "filter"],
        "additionalProperties": False,
        "if": {"properties": {"mode": {"const": "fast"}}},
        "then": {"required": ["range"]},
        "definitions": {
            "filter": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {"and": {"type": "array", "items": {"$ref": "#/definitions/filter"}}},
                    },
                    {"type": "object", "properties": {"field": STRING}, "required": ["field"]},
                ]
            }
        },
    }
    out, notes = clean(schema)
    assert list(out["properties"]) == ["pattern", "-A", "filter", "env", "mode", "range"]
    assert out["required"] == ["pattern", "filter"]
    assert out["properties"]["filter"] == out["$defs"]["filter"]
    assert out["description"].startswith("If it matches")
    assert [note.split(":")[0] for note in notes] == [
        "moved s.if",
        "moved s.properties.env.patternProperties",
    ]
