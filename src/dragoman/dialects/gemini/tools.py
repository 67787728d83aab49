"""Encode tools and tool choice as `functionDeclarations` and `toolConfig`.

A declaration that a Gemini client sent in Google's `Schema` form is passed on unchanged if Google accepts it; otherwise
its `parameters` are compiled again.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec

from dragoman import jsontext
from dragoman.dialects.base import Target
from dragoman.dialects.gemini.client.protojson import camel
from dragoman.errors import InvalidRequest
from dragoman.incremental.lru import LruCache
from dragoman.ir import Tool, ToolChoice
from dragoman.notes import Note
from dragoman.schema import NameMap, clean_schema, compile_schema, relax_schema

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


_MODE: dict[str, str] = {"any": "ANY", "none": "NONE", "validated": "VALIDATED"}
_ENCODER = msgspec.json.Encoder()


class Declarations(msgspec.Struct, frozen=True):
    """The `functionDeclarations` of a set of tools as JSON, and the mapping of their names."""

    json: msgspec.Raw
    names: NameMap
    declared: frozenset[str]
    notes: tuple[Note, ...]


#: Every turn of a conversation repeats the same tools: translate each schema and each set once. A tool that is
#: added later changes the set, but not the schemas of the others.
_PARAMETERS: LruCache[tuple[bytes, bool, bool, bool], tuple[msgspec.Raw | None, tuple[Note, ...]]] = LruCache(
    16 * 1024 * 1024, "schemas"
)
_DECLARATIONS: LruCache[tuple[tuple[Tool, ...], str, bool, bool], Declarations] = LruCache(
    32 * 1024 * 1024, "declarations"
)


def declare(tools: tuple[Tool, ...], target: Target) -> Declarations:
    """Return the declarations of the tools, from the cache if possible."""
    key = (tools, target.backend, target.proto_schemas, target.relaxed_schemas)
    known = _DECLARATIONS.find(key)
    if known is None:
        known = _declare(tools, target)
        weight = sum(len(tool.schema) + len(tool.description) + len(tool.native) + 200 for tool in tools)
        _DECLARATIONS.put(key, weight, known)
    return known


def _declare(tools: tuple[Tool, ...], target: Target) -> Declarations:
    names = NameMap.of(tool.name for tool in tools)
    notes: list[Note] = []
    declarations: dict[str, dict[str, Any] | msgspec.Raw] = {}
    for tool in tools:
        wire = names.to_wire(tool.name)
        if tool.name in declarations:
            notes.append(
                Note("dropped", tool.where, f"{tool.name!r} is declared twice; the first one counts")
            )
            continue
        if wire != tool.name:
            notes.append(Note("renamed", f"{tool.where}.name", f"{tool.name!r} is {wire!r} for Gemini"))
        unchanged = not (target.proto_schemas or target.relaxed_schemas)
        if tool.native and wire == tool.name and unchanged:
            declarations[tool.name], lost = native_declaration(tool, target)
        else:
            declarations[tool.name], lost = _declaration(tool, wire, target)
        notes += lost
    json = msgspec.Raw(_ENCODER.encode(list(declarations.values())))
    return Declarations(json, names, frozenset(declarations), tuple(notes))


def _declaration(tool: Tool, wire: str, target: Target) -> tuple[dict[str, Any], tuple[Note, ...]]:
    declaration: dict[str, Any] = {"name": wire}
    if tool.description:
        declaration["description"] = tool.description
    where = f"{tool.where}.input_schema"
    proto, relaxed, vertex = target.proto_schemas, target.relaxed_schemas, target.backend == "vertex"
    parameters, notes = _PARAMETERS.get(
        (tool.schema, proto, relaxed, vertex),
        3 * len(tool.schema),
        lambda: _parameters(tool.schema, where, proto=proto, relaxed=relaxed, vertex=vertex),
    )
    if parameters is not None:
        declaration["parameters" if proto else "parametersJsonSchema"] = parameters
    return declaration, tuple(Note(note.kind, where + note.where, note.why) for note in notes)


def _parameters(
    schema: bytes, where: str, *, proto: bool, relaxed: bool, vertex: bool
) -> tuple[msgspec.Raw | None, tuple[Note, ...]]:
    """Translate a JSON Schema for Google; the places in the notes are relative to the schema."""
    decoded = jsontext.decode(msgspec.json.decode, schema, where)
    decoded, relaxed_notes = relax_schema(decoded, where="") if relaxed else (decoded, ())
    translate = compile_schema if proto else clean_schema
    parameters, notes = translate(decoded, where="", vertex=vertex)
    notes = (*relaxed_notes, *notes)
    return None if parameters is None else msgspec.Raw(_ENCODER.encode(parameters)), notes


def encode_tool_choice(choice: ToolChoice, declarations: Declarations) -> dict[str, Any] | None:
    """Return `toolConfig`, or None for the default (AUTO) or if nothing is declared (known problem B15).

    Raise `InvalidRequest` if the choice names a tool that is not declared.
    """
    if not declarations.declared:
        return None
    for name in choice.names:
        if name not in declarations.declared:
            raise InvalidRequest(f"there is no tool named {name!r} in this request", where="tool_choice")
    config: dict[str, Any] = {}
    if choice.names and choice.mode != "none":
        config = {
            "mode": "ANY" if choice.mode == "any" else "VALIDATED",
            "allowedFunctionNames": [declarations.names.to_wire(name) for name in choice.names],
        }
    elif choice.mode in _MODE:
        config = {"mode": _MODE[choice.mode]}
    return {"functionCallingConfig": config} if config else None
