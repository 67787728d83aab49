"""Tools as MCP servers bring them: schemas that break naive translations, with arguments for the odd parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LONG_NAME = "mcp__hostile__a_tool_with_a_name_far_beyond_the_sixty_four_characters_that_older_back_ends_"

TREE = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {"root": {"$ref": "#/definitions/node"}, "other": {"$ref": "#/definitions/a"}},
    "required": ["root"],
    "definitions": {
        "node": {
            "type": "object",
            "properties": {
                "label": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/definitions/node"}},
                "parent": {"$ref": "#/definitions/node"},
            },
            "required": ["label"],
        },
        "a": {"type": "object", "properties": {"b": {"$ref": "#/definitions/b"}}},
        "b": {"type": "object", "properties": {"a": {"$ref": "#/definitions/a"}, "end": {"type": "boolean"}}},
    },
}
SELF = {
    "type": "object",
    "properties": {"and": {"type": "array", "items": {"$ref": "#"}}, "equals": {"type": "string"}},
}
CONDITION = {
    "type": "object",
    "properties": {"kind": {"enum": ["file", "url"]}, "path": {"type": "string"}, "url": {"type": "string"}},
    "required": ["kind"],
    "if": {"properties": {"kind": {"const": "file"}}},
    "then": {"required": ["path"]},
    "else": {"required": ["url"], "not": {"required": ["path"]}},
    "dependentRequired": {"path": ["kind"]},
    "unevaluatedProperties": False,
}
PATTERNS = {
    "type": "object",
    "properties": {
        "headers": {
            "type": "object",
            "patternProperties": {"^x-": {"type": "string"}, "^n-": {"type": "integer"}},
            "additionalProperties": False,
        },
        "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
    },
    "patternProperties": {"^extra_": {"type": ["string", "null"]}},
}
KEYWORDS = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "pattern": "^.*$"},
        "type": {"type": "string", "enum": ["a", "b"]},
        "items": {"type": "array", "items": {"type": "object", "properties": {"items": {"type": "number"}}}},
        "-A": {"type": "integer"},
        "-i": {"type": "boolean"},
        "properties": {"type": "object", "properties": {"properties": {"type": "string"}}},
        "required": {"type": "array", "items": {"type": "string"}},
        "$ref": {"type": "string"},
        "enum": {"type": "integer", "enum": [1, 2, 3]},
        "default": {"type": "string", "default": "d"},
        "anyOf": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "additionalProperties": {"type": "boolean"},
        "description": {"type": "string", "description": ""},
        "title": {"type": "string", "title": "Title"},
        "format": {"type": "string", "format": "no-such-format"},
        "$schema": {"type": "string"},
        "id": {"type": "string"},
    },
    "required": ["pattern", "type", "items", "-A"],
}
UNIONS = {
    "oneOf": [
        {
            "type": "object",
            "properties": {"by": {"const": "id"}, "id": {"type": "integer"}},
            "required": ["by"],
        },
        {"type": "object", "properties": {"by": {"const": "name"}, "name": {"type": ["string", "null"]}}},
    ],
    "allOf": [{"properties": {"limit": {"type": "integer", "exclusiveMinimum": 0, "multipleOf": 5}}}],
}

Args = Mapping[str, Any]

#: name -> schema, two argument objects
HOSTILE: dict[str, tuple[Mapping[str, Any], Args, Args]] = {
    "mcp__hostile__cycle": (
        TREE,
        {"root": {"label": "a", "children": [{"label": "b", "children": [{"label": "c"}]}, {"label": "d"}]}},
        {"root": {"label": "a", "parent": {"label": "p"}}, "other": {"b": {"a": {"b": {"end": True}}}}},
    ),
    "mcp__hostile__self": (SELF, {"equals": "x"}, {"and": [{"equals": "y"}, {"and": [{"equals": "z"}]}]}),
    "mcp__hostile__if-then": (CONDITION, {"kind": "file", "path": "/a"}, {"kind": "url", "url": "http://b"}),
    "mcp__hostile__patterns": (
        PATTERNS,
        {"headers": {"x-a": "1", "n-b": 2}, "extra_one": None},
        {"pair": ["a", 1], "extra_two": "t", "headers": {}},
    ),
    "mcp__hostile__keywords": (
        KEYWORDS,
        {"pattern": "^a.*$", "type": "b", "items": [{"items": 1.5}], "-A": 0, "-i": True, "enum": 2},
        {
            "pattern": "",
            "type": "a",
            "items": [],
            "-A": -3,
            "properties": {"properties": "p"},
            "required": ["pattern", "type"],
            "$ref": "#/definitions/none",
            "default": "e",
            "anyOf": None,
            "additionalProperties": False,
            "description": "d",
            "title": "t",
            "format": "f",
            "$schema": "s",
            "id": "i",
        },
    ),
    "mcp__hostile__unions": (UNIONS, {"by": "id", "id": 7, "limit": 10}, {"by": "name", "name": None}),
    "mcp__hostile__nothing": ({}, {}, {"free": {"form": [1, "two", None]}}),
    "mcp__hostile__bare": ({"type": "object"}, {"a": 1}, {"b": {"c": []}}),
    LONG_NAME: ({"type": "object", "properties": {"x": {"type": "string"}}}, {"x": "1"}, {"x": "2"}),
}
