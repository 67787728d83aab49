"""What `compile_schema` makes: Google's message `Schema`, from an allow-list."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.schema import compile_schema
from dragoman.schema.args import PLACEHOLDER
from tests.corpus import check

STRING, INTEGER = {"type": "string"}, {"type": "integer"}
HOLLOW = {"type": "OBJECT", "properties": {PLACEHOLDER: {"type": "NULL", "description": "Never set."}}}


def compiled(schema: Any, *, vertex: bool = False) -> tuple[Any, list[str]]:
    out, notes = compile_schema(schema, where="s", vertex=vertex)
    assert out is None or check.openapi_problems(out) == []
    return out, [str(note) for note in notes]


def prop(schema: Any, *, vertex: bool = False, defs: Any = None) -> tuple[Any, list[str]]:
    out, notes = compiled({"type": "object", "properties": {"x": schema}, "$defs": defs}, vertex=vertex)
    return out["properties"]["x"], [note.replace("s.properties.x", "x") for note in notes]


@pytest.mark.parametrize(
    "schema", [None, {}, {"type": "object"}, {"type": "object", "additionalProperties": False}]
)
def test_b7_no_arguments_are_no_parameters(schema: Any) -> None:
    """known problem B7"""
    assert compiled(schema)[0] is None


def test_b7_a_free_form_root_still_takes_arguments() -> None:
    """known problem B7"""
    assert compiled({"type": "object", "additionalProperties": True})[0] == HOLLOW


@pytest.mark.parametrize("schema", [{"type": "object"}, {"type": "object", "properties": {}}])
def test_b7_a_nested_bare_object_has_a_property_that_nobody_needs(schema: Any) -> None:
    """known problem B7"""
    assert prop(schema) == (HOLLOW, [])


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ({"type": "string", "format": "date-time"}, {"type": "STRING", "format": "date-time"}),
        ({"type": "string", "format": "uri"}, {"type": "STRING", "description": "Format: uri."}),
        ({"type": "integer", "format": "int64"}, {"type": "INTEGER", "format": "int64"}),
        ({"type": "number", "format": "money"}, {"type": "NUMBER", "description": "Format: money."}),
        ({"type": "string", "enum": ["a", "b"]}, {"type": "STRING", "enum": ["a", "b"]}),
        (
            {"type": "string", "enum": ["a", ""]},
            {"type": "STRING", "enum": ["a"], "description": "May be empty."},
        ),
        ({"type": "string", "enum": [""]}, {"type": "STRING", "description": "May be empty."}),
        ({"enum": [1, 2]}, {"type": "INTEGER", "description": "Allowed values: 1, 2."}),
        ({"type": ["string", "null"]}, {"type": "STRING", "nullable": True}),
        (
            {"type": "string", "minLength": 1, "pattern": "x"},
            {"type": "STRING", "minLength": 1, "pattern": "x"},
        ),
        ({"type": "array"}, {"type": "ARRAY", "items": {}}),
        (
            {"type": "array", "items": STRING, "uniqueItems": True},
            {"type": "ARRAY", "items": {"type": "STRING"}, "description": "Items must be unique."},
        ),
        (
            {"type": "array", "prefixItems": [STRING]},
            {"type": "ARRAY", "items": {}, "description": 'In this order: [{"type":"string"}]'},
        ),
        (
            {"type": "array", "prefixItems": [STRING], "items": STRING},
            {
                "type": "ARRAY",
                "items": {"type": "STRING"},
                "description": 'In this order: [{"type":"string"}]',
            },
        ),
        (
            {"type": "array", "prefixItems": [STRING, INTEGER], "maxItems": 2},
            {
                "type": "ARRAY",
                "maxItems": 2,
                "items": {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
                "description": 'In this order: [{"type":"string"},{"type":"integer"}]',
            },
        ),
        (
            {"type": "object", "additionalProperties": STRING},
            {**HOLLOW, "description": 'Other properties: {"type":"string"}'},
        ),
        (
            {"anyOf": [STRING, INTEGER], "description": "D"},
            {"description": "D", "anyOf": [{"type": "STRING"}, {"type": "INTEGER"}]},
        ),
        (
            {"type": ["string", "integer", "null"]},
            {"anyOf": [{"type": "STRING"}, {"type": "INTEGER"}, {"type": "NULL"}]},
        ),
        ({"description": "anything"}, {"description": "anything"}),
        (
            {"type": "object", "properties": {"a": STRING}, "required": ["a", "b"]},
            {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}, "required": ["a"]},
        ),
    ],
)
def test_b2_only_what_the_message_has(schema: Any, wanted: Any) -> None:
    """known problem B2"""
    assert prop(schema)[0] == wanted


def test_b3_what_is_moved_is_noted() -> None:
    """known problem B3"""
    _, notes = prop({"enum": [1, 2], "format": "x"})
    assert notes == [
        "moved x.format: into the description: no such field at Google",
        "moved x.enum: into the description: no such field at Google",
    ]


def test_vertex_wants_a_type_everywhere_and_nothing_beside_any_of() -> None:
    out, _ = prop({"description": "anything", "default": 1}, vertex=True)
    assert set(out) == {"anyOf"}
    assert out["anyOf"][0] == {"type": "STRING", "description": "anything", "default": 1}
    assert [branch["type"] for branch in out["anyOf"]] == ["STRING", "NUMBER", "BOOLEAN", "ARRAY", "OBJECT"]
    out, _ = prop(
        {"anyOf": [{"type": "string", "description": "inner"}, INTEGER], "description": "D"}, vertex=True
    )
    assert out == {"anyOf": [{"type": "STRING", "description": "D\ninner"}, {"type": "INTEGER"}]}


def test_vertex_puts_words_where_they_can_stand() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "description": "D"}}}
    out, _ = prop({"$ref": "#/$defs/N"}, defs={"N": node}, vertex=True)
    inner = out["properties"]["next"]["properties"]["next"]
    assert inner["anyOf"][0]["anyOf"][0] == {"type": "STRING", "description": "D"}


def test_b10_recursion_is_unrolled_twice_then_left_open() -> None:
    """known problem B10"""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "nullable": True}}}
    out, notes = prop({"$ref": "#/$defs/N"}, defs={"N": node})
    open_ = {"anyOf": [{}, {"type": "NULL"}]}
    inner = {"type": "OBJECT", "properties": {"next": open_}, "nullable": True}
    assert out == {"type": "OBJECT", "properties": {"next": inner}}
    assert any("'N' is recursive: left open after 2 rounds" in note for note in notes)


def test_b10_a_description_beside_a_circle_is_kept() -> None:
    """known problem B10"""
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/N", "description": "D"}}}
    out, _ = prop({"$ref": "#/$defs/N"}, defs={"N": node})
    assert out["properties"]["next"]["description"] == "D"
    assert out["properties"]["next"]["type"] == "OBJECT"


@pytest.mark.parametrize("vertex", [False, True])
def test_b11_nesting_stays_within_google_s_limit(vertex: bool) -> None:
    """known problem B11"""
    deep: Any = STRING
    for _ in range(40):
        deep = {"type": "object", "properties": {"x": deep}, "required": ["x"]}
    out, notes = compiled(deep, vertex=vertex)
    assert depth(out) <= 30
    assert any("left open" in note for note in notes)


def depth(node: Any) -> int:
    subs = [
        *node.get("properties", {}).values(),
        *node.get("anyOf", ()),
        *([node["items"]] if "items" in node else []),
    ]
    return 1 + max(map(depth, subs), default=0)


def test_hostile_width_is_cut() -> None:
    node = {"type": "object", "properties": {f"p{i}": {"$ref": "#/$defs/N"} for i in range(60)}}
    _, notes = prop({"$ref": "#/$defs/N"}, defs={"N": node})
    assert any("too large" in note for note in notes)
