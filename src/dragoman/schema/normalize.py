"""Normalize a schema node: drafts 3 to 2020-12, OpenAPI 3.0 and common mistakes become one form.

The form is that of draft 2020-12, with fewer alternatives: `type` is a list and `const` is an `enum`. `merge` combines
two nodes of that form into one that requires both: the simple cases of `allOf`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from dragoman.notes import Note, NoteKind
from dragoman.schema.walk import Schema, is_schema, step

# Type names that tools use in practice, mapped to the seven of JSON Schema.
TYPES: Final = {
    name: kind
    for kind, names in {
        "string": "string str text",
        "number": "number float double",
        "integer": "integer int long",
        "boolean": "boolean bool",
        "array": "array list tuple",
        "object": "object dict map",
        "null": "null none",
    }.items()
    for name in names.split()
}

# Keywords that do not constrain a value: dropped without a note.
_SILENT: Final = frozenset((
    "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema",
    "$vocabulary", "definitions", "id",
))  # fmt: skip

_WRONG: Final = object()


def _text(value: Any) -> Any:
    return value if isinstance(value, str) else _WRONG


def _flag(value: Any) -> Any:
    return value if isinstance(value, bool) else _WRONG


def _number(value: Any) -> Any:
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return value if real and (isinstance(value, int) or math.isfinite(value)) else _WRONG


def _bound(value: Any) -> Any:
    return value if isinstance(value, bool) else _number(value)


def _factor(value: Any) -> Any:
    return value if _number(value) is not _WRONG and value > 0 else _WRONG


def _count(value: Any) -> Any:
    whole = _number(value) is not _WRONG and value >= 0 and value == int(value)
    return int(value) if whole else _WRONG


def _list(value: Any) -> Any:
    return value if isinstance(value, list) and value else _WRONG


def _names(value: Any) -> Any:
    if not isinstance(value, list):
        return _WRONG
    return list(dict.fromkeys(name for name in value if isinstance(name, str)))


def _map(value: Any) -> Any:
    return value if isinstance(value, dict) else _WRONG


def _one(value: Any) -> Any:
    return value if is_schema(value) else _WRONG


def _many(value: Any) -> Any:
    schemas = [sub for sub in value if is_schema(sub)] if isinstance(value, list) else []
    return schemas or _WRONG


def _items(value: Any) -> Any:
    return value if isinstance(value, list) else _one(value)


def _any(value: Any) -> Any:
    return value


#: keyword -> function that returns the valid value, or `_WRONG`
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    key: read
    for read, keys in (
        (_any, "const default example examples type"),
        (_bound, "exclusiveMaximum exclusiveMinimum"),
        (_count, "maxContains maxItems maxLength maxProperties minContains minItems minLength minProperties"),
        (_factor, "multipleOf"),
        (_flag, "deprecated nullable readOnly uniqueItems writeOnly"),
        (_items, "items"),
        (_list, "enum enumDescriptions"),
        (_many, "allOf anyOf oneOf prefixItems"),
        (_map, "dependencies dependentRequired dependentSchemas patternProperties properties"),
        (_names, "propertyOrdering required"),
        (_number, "maximum minimum"),
        (_one, "additionalItems additionalProperties contains contentSchema else if not propertyNames then"),
        (_one, "unevaluatedItems unevaluatedProperties"),
        (_text, "$ref contentEncoding contentMediaType description format pattern title"),
    )
    for key in keys.split()
}


def normalize(raw: Schema, where: str, notes: list[Note]) -> Schema:
    """Return the normalized node: `type` is a list, `const` an `enum`, tuples are `prefixItems`, no `nullable`.

    Unknown keywords and invalid values are dropped, with notes. Subschemas are not normalized.
    """

    def note(kind: NoteKind, key: object, why: str) -> None:
        notes.append(Note(kind, step(where, (str(key),)), why))

    schema: Schema = {}
    for key, value in raw.items():
        read = _READ.get(key)
        if key in _SILENT or (read is _text and value == "") or (read is _names and isinstance(value, bool)):
            continue  # draft 3 has `required: true` on the property itself: `plain._object` reads it
        if read is None:
            note("dropped", key, "not a JSON Schema keyword that Gemini knows")
        elif (good := read(value)) is _WRONG:
            note("dropped", key, "the value is not what the keyword takes")
        else:
            schema[key] = good
    _normalize_type(schema, note)
    _normalize_const(schema)
    _normalize_bounds(schema)
    _normalize_tuple(schema)
    _normalize_nullable(schema)
    return schema


def _normalize_type(schema: Schema, note: Callable[[NoteKind, object, str], None]) -> None:
    if "type" not in schema:
        return
    given = schema.pop("type")
    names = given if isinstance(given, list) else [given]
    if "any" in names:
        return
    known = [TYPES.get(name.lower()) if isinstance(name, str) else None for name in names]
    types = list(dict.fromkeys(name for name in known if name))
    if len(types) != len(names):
        note("repaired", "type", "not a list of different JSON types")
    if "number" in types and "integer" in types:
        types.remove("integer")
    if types:
        schema["type"] = types


def _normalize_const(schema: Schema) -> None:
    if "const" in schema:
        schema["enum"] = [schema.pop("const")]
    if "enum" in schema:
        schema["enum"] = distinct(schema["enum"])
    if "example" in schema:
        schema.setdefault("examples", [schema.pop("example")])
        schema.pop("example", None)


def _normalize_bounds(schema: Schema) -> None:
    """Convert draft 4, where `exclusiveMinimum: true` modifies `minimum`."""
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(schema.get(exclusive), bool) and schema.pop(exclusive) and inclusive in schema:
            schema[exclusive] = schema.pop(inclusive)


def _normalize_tuple(schema: Schema) -> None:
    """Convert draft 7, where `items` is a list and `additionalItems` applies to the rest."""
    rest = schema.pop("additionalItems", None)
    if isinstance(schema.get("items"), list):
        first = [sub for sub in schema.pop("items") if is_schema(sub)]
        if first:
            schema["prefixItems"] = first
        if rest is not None:
            schema["items"] = rest


def _normalize_nullable(schema: Schema) -> None:
    """Convert OpenAPI 3.0, where `nullable` allows null in addition to the rest."""
    if not schema.pop("nullable", False):
        return
    if "enum" in schema:
        schema["enum"] = distinct([*schema["enum"], None])
    if "type" in schema:
        schema["type"] = list(dict.fromkeys([*schema["type"], "null"]))
    union = next((key for key in ("anyOf", "oneOf") if key in schema), None)
    if union:
        schema[union] = [*schema[union], {"type": "null"}]
    elif "$ref" in schema:
        schema["anyOf"] = [{"$ref": schema.pop("$ref")}, {"type": "null"}]


def same(a: object, b: object) -> bool:
    """Whether two JSON values are equal: 1 equals 1.0 but not true."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a == b


def distinct(values: list[Any]) -> list[Any]:
    """Return the JSON values without duplicates, in order."""
    return list(
        {msgspec.json.encode(value, order="deterministic"): value for value in reversed(values)}.values()
    )[::-1]


def type_of(value: object) -> str:
    """Return the JSON type of a decoded value; a float is a `number` even without a fraction."""
    return _TYPE_NAMES.get(type(value), "object")


_TYPE_NAMES: Final[dict[type, str]] = {
    bool: "boolean", int: "integer", float: "number", str: "string", list: "array", type(None): "null",
}  # fmt: skip


def fits(value: object, kind: str) -> bool:
    """Whether the value is of this JSON type; 1.0 is an integer too, as in JSON Schema since draft 6."""
    actual = type_of(value)
    if actual == kind:
        return True
    if kind == "integer":
        return isinstance(value, float) and value.is_integer()
    return kind == "number" and actual == "integer"


ANNOTATIONS: Final[tuple[str, ...]] = ("title", "description", "default")


def merge(a: Schema, b: Schema) -> tuple[Schema, Schema] | None:
    """Merge two normalized schemas; return the result and the keywords of `b` that could not be merged.

    Return None if no value can satisfy both.
    """
    out, rest = dict(a), dict[str, Any]()
    for key, value in b.items():
        if key not in out or same(out[key], value):
            out[key] = value
        elif (combine := _COMBINE.get(key)) is None:
            rest[key] = value
        else:
            out[key] = combine(out[key], value)
    if out.get("type") == [] or out.get("enum") == []:
        return None
    return out, rest


def overlay(over: Schema, schema: Schema) -> Schema:
    """Return the schema with the annotations of `over`; its own description is appended to that of `over`."""
    out = {**schema, **{key: over[key] for key in ANNOTATIONS if key in over}}
    if "description" in over and "description" in schema:
        out["description"] = join_text(over["description"], schema["description"])
    return out


def join_text(first: str, second: str) -> str:
    """Join two descriptions with a line break, without repeating the second."""
    if not first or not second or first == second:
        return first or second
    return first if first.endswith(f"\n{second}") else f"{first}\n{second}"


def _types(a: list[str], b: list[str]) -> list[str]:
    wide = {*b, "integer"} if "number" in b else {*b}
    common = [name for name in a if name in wide]
    return common + [name for name in b if name == "integer" and "number" in a and name not in common]


def _values(a: list[Any], b: list[Any]) -> list[Any]:
    return [value for value in a if any(same(value, other) for other in b)]


def _both_names(a: list[str], b: list[str]) -> list[str]:
    return list(dict.fromkeys([*a, *b]))


def _both(a: Any, b: Any) -> Any:
    if a is False or b is False:
        return False
    return b if a is True else a if b is True else {"allOf": [a, b]}


def _maps(a: Schema, b: Schema) -> Schema:
    return {**a, **{name: _both(a[name], sub) if name in a else sub for name, sub in b.items()}}


def _either(a: bool, b: bool) -> bool:
    return a or b


def _first(a: Any, _b: Any) -> Any:
    return a


_COMBINE: Final[dict[str, Callable[[Any, Any], Any]]] = {
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
    **dict.fromkeys(("uniqueItems", "deprecated", "readOnly", "writeOnly"), _either),
    **dict.fromkeys(("title", "default", "examples", "propertyOrdering", "enumDescriptions"), _first),
    **dict.fromkeys(("additionalProperties", "items"), _both),
    "description": join_text,
    "enum": _values,
    "properties": _maps,
    "required": _both_names,
    "type": _types,
}
