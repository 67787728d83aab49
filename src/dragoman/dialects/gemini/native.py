"""Function declarations that a Gemini client sent in Google's `Schema` form.

A declaration that Google accepts is passed on unchanged; otherwise its `parameters` are compiled again.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Target
from dragoman.dialects.gemini.client.wire import camel
from dragoman.ir import Tool
from dragoman.notes import Note
from dragoman.schema import compile_schema

_FIELDS = frozenset(
    "type format title description nullable enum items minItems maxItems properties required minProperties "
    "maxProperties minimum maximum minLength maxLength pattern example default anyOf propertyOrdering".split()
)
_VERTEX_FIELDS = _FIELDS | {"additionalProperties", "ref", "defs"}
_TYPES = frozenset("STRING NUMBER INTEGER BOOLEAN ARRAY OBJECT NULL".split())
_STRING_FORMATS = ("enum", "date-time")


def native_declaration(tool: Tool, target: Target) -> tuple[Any, tuple[Note, ...]]:
    """Return the declaration unchanged, or with compiled `parameters` if they break a rule of Google's (3.1)."""
    vertex = target.backend == "vertex"
    fields, accepted = jsontext.decode(partial(_read_declaration, vertex=vertex), tool.native, tool.where)
    if accepted:
        return msgspec.Raw(tool.native), ()
    where = f"{tool.where}.parameters"
    schema = msgspec.json.decode(tool.schema)
    fields["parameters"], notes = compile_schema(schema, where=where, vertex=vertex)
    return {name: value for name, value in fields.items() if value is not None}, notes


def _read_declaration(native: bytes | msgspec.Raw, vertex: bool) -> tuple[dict[str, Any], bool]:
    """Return the fields of a declaration and whether Google accepts its `parameters`."""
    fields = {camel(name): value for name, value in msgspec.json.decode(native).items()}
    parameters = fields.get("parameters")
    return fields, parameters is None or _is_accepted(parameters, vertex)


def _is_accepted(node: Any, vertex: bool) -> bool:
    if not isinstance(node, dict):
        return False
    schema = {camel(key): value for key, value in node.items() if value is not None}
    kind = schema.get("type", "OBJECT" if "ref" in schema else "")
    if schema.keys() - (_VERTEX_FIELDS if vertex else _FIELDS) or not isinstance(kind, str):
        return False
    valid = _follows_rules(schema, kind.upper(), vertex)
    return valid and all(_is_accepted(child, vertex) for child in _children(schema))


def _follows_rules(schema: dict[str, Any], kind: str, vertex: bool) -> bool:
    """Whether one node follows Google's rules; a node with `anyOf` needs no type."""
    properties, required, words = (schema.get(key) or [] for key in ("properties", "required", "enum"))
    properties = properties or {}
    if not isinstance(properties, dict) or not isinstance(required, list) or not isinstance(words, list):
        return False
    return all(
        (
            kind in _TYPES or (not kind and bool(schema.get("anyOf"))),
            ("items" in schema) == (kind == "ARRAY"),
            bool(properties) == (kind == "OBJECT") or (vertex and kind == "OBJECT"),
            "" not in properties,
            all(isinstance(name, str) and name in properties for name in required),
            not words or (kind == "STRING" and all(isinstance(word, str) for word in words)),
            kind != "STRING" or vertex or schema.get("format", "enum") in _STRING_FORMATS,
        )
    )


def _children(schema: dict[str, Any]) -> list[Any]:
    """Return the direct subschemas; Google accepts a single object where a list is expected."""
    properties, choices = schema.get("properties") or {}, schema.get("anyOf") or []
    return [*properties.values(), *(choices if isinstance(choices, list) else [choices]), *_items(schema)]


def _items(schema: dict[str, Any]) -> list[Any]:
    return [schema["items"]] if "items" in schema else []
