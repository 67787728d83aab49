"""Builders for the tests of `clean_schema`."""

from __future__ import annotations

from typing import Any

from dragoman.schema import clean_schema
from tests.corpus import check

EMPTY: dict[str, Any] = {"type": "object", "properties": {}}
STRING, INTEGER, NUMBER = ({"type": kind} for kind in ("string", "integer", "number"))


def clean(schema: Any) -> tuple[dict[str, Any], list[str]]:
    out, notes = clean_schema(schema, where="s")
    assert check.jsonschema_problems(out) == []
    assert clean_schema(out, where="s")[0] == out
    return out, [str(note) for note in notes]


def prop(schema: Any, **root: Any) -> tuple[Any, list[str]]:
    """The clean form of one property `x`, and the notes."""
    out, notes = clean({"type": "object", "properties": {"x": schema}, **root})
    return out["properties"].get("x"), [note.replace("s.properties.x", "x") for note in notes]
