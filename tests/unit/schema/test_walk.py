"""The grammar itself."""

from __future__ import annotations

from typing import Any

from dragoman.schema.walk import children, cut, rebuild, step, too_deep

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"items": {"type": "string"}, "bad": 5},
    "items": [{"type": "null"}, 7],
    "additionalProperties": False,
    "not": {"const": 1},
    "default": {"properties": {"x": {"type": "y"}}},
    "enum": [{"items": {}}],
    "anyOf": "nonsense",
    "dependencies": {"a": ["b"], "c": {}},
}


def test_b4_children_are_found_by_grammar() -> None:
    """known problem B4"""
    assert [path for path, _ in children(SCHEMA)] == [
        ("properties", "items"),
        ("items", 0),
        ("additionalProperties",),
        ("not",),
        ("dependencies", "c"),
    ]


def test_rebuild_replaces_children_and_nothing_else() -> None:
    before = repr(SCHEMA)
    out = rebuild(SCHEMA, lambda sub, path: path)
    assert repr(SCHEMA) == before
    assert out["properties"] == {"items": ("properties", "items"), "bad": 5}
    assert out["items"] == [("items", 0), 7]
    assert out["not"] == ("not",)
    assert out["default"] is SCHEMA["default"]
    two = rebuild({"properties": {"a": {}, "b": {}}}, lambda sub, path: path[1])
    assert two == {"properties": {"a": "a", "b": "b"}}


def test_paths_are_spelled_as_in_notes() -> None:
    assert (
        step("tools[0].input_schema", ("properties", "-A", "anyOf", 1))
        == "tools[0].input_schema.properties.-A.anyOf[1]"
    )


def test_depth_is_measured_and_cut() -> None:
    assert not too_deep({"a": [1]}, 2)
    assert too_deep({"a": [1]}, 1)
    assert cut({"a": [1, {"b": 2}], "c": 3}, 2) == {"a": [1, {}], "c": 3}
    assert cut([[[]]], 1) == [[]]
