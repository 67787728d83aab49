"""Convert a node of a single type: drop, convert or describe the keywords that Google does not accept."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from dragoman.notes import Note
from dragoman.schema.describe import SENTENCES, add_sentence, allowed_values, describe_keywords
from dragoman.schema.normalize import fits, type_of
from dragoman.schema.walk import Schema, step

_NUMERIC = ("number", "integer")

# The types that each keyword applies to; the first keyword found determines the type of an untyped node.
_APPLIES: Final[dict[str, tuple[str, ...]]] = {
    key: kinds
    for kinds, keys in (
        (
            ("object",),
            "properties required additionalProperties patternProperties propertyNames minProperties",
        ),
        (("object",), "maxProperties dependencies dependentRequired dependentSchemas propertyOrdering"),
        (("object",), "unevaluatedProperties"),
        (("array",), "items prefixItems minItems maxItems uniqueItems contains minContains maxContains"),
        (("array",), "unevaluatedItems"),
        (("string",), "minLength maxLength pattern contentEncoding contentMediaType contentSchema"),
        (_NUMERIC, "minimum maximum exclusiveMinimum exclusiveMaximum multipleOf"),
        (("string", *_NUMERIC), "format"),
    )
    for key in keys.split()
}

# Keywords of `SAID` that apply to every type; the others apply to one type only.
DESCRIBED_FOR_ANY_TYPE: Final = (
    "not",
    "if",
    "enumDescriptions",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
)
_DESCRIBED_FOR_ONE_TYPE: Final = tuple(key for key in SENTENCES if key not in DESCRIBED_FOR_ANY_TYPE)

# The keywords that are sent, in this order: those that Google documents
# (https://ai.google.dev/gemini-api/docs/structured-output), those it ignores, and `pattern`.
_ORDER: Final = (
    "type", "format", "title", "description", "default", "enum", "pattern", "minLength",
    "maxLength", "minimum", "maximum", "items", "prefixItems", "minItems", "maxItems",
    "uniqueItems", "properties", "required", "additionalProperties", "minProperties",
    "maxProperties", "propertyOrdering",
)  # fmt: skip


def name_types(schema: Schema) -> list[str]:
    """Return the types that a normalized node allows, from its `type`, `enum` or keywords; empty if it allows any."""
    if "type" in schema:
        return list(schema["type"])
    if "enum" in schema:
        types = list(dict.fromkeys(map(type_of, schema["enum"])))
        return [name for name in types if name != "integer" or "number" not in types]
    return next(([kinds[0]] for key, kinds in _APPLIES.items() if key in schema), [])


def narrow(schema: Schema, kind: str) -> Schema:
    """Return a normalized node reduced to one type and the keywords that apply to it."""
    out = {key: value for key, value in schema.items() if kind in _APPLIES.get(key, (kind,))}
    if "enum" in out:
        out["enum"] = [value for value in out["enum"] if fits(value, kind)] or out["enum"]
    return {**out, "type": kind}


def finish(schema: Schema, where: str, notes: list[Note]) -> Schema:
    """Return a normalized node of one type with Google's keywords only; its subschemas are not converted yet."""
    kind = schema.get("type", "")
    notes.extend(
        Note("dropped", step(where, (key,)), f"it says nothing about a value of type {kind}")
        for key in schema
        if kind and kind not in _APPLIES.get(key, (kind,))
    )
    out = narrow(schema, kind) if kind else schema
    if kind in _BY_TYPE:
        out = _BY_TYPE[kind](out, where, notes)
    if "enum" in out:
        out = _enum(out, where, notes)
    out = describe_keywords(out, _DESCRIBED_FOR_ONE_TYPE, where, notes)
    return {key: out[key] for key in _ORDER if key in out}


def _enum(schema: Schema, where: str, notes: list[Note]) -> Schema:
    """Keep an `enum` of strings or numbers, as documented; list other values in the description (known problem B6)."""
    values, kind = schema["enum"], schema["type"]
    if kind in ("string", *_NUMERIC) and fits(values[0], kind):
        return schema
    out = {key: value for key, value in schema.items() if key != "enum"}
    if kind == "null" or (
        kind == "boolean" and {True, False} <= {value for value in values if fits(value, kind)}
    ):
        return out
    notes.append(
        Note("moved", step(where, ("enum",)), "into the description: Gemini takes strings and numbers only")
    )
    return add_sentence(out, allowed_values(values))


def _number(schema: Schema, _where: str, _notes: list[Note]) -> Schema:
    """Convert exclusive bounds, which Google does not document.

    For integers the inclusive bound is exact; for numbers it is wider, and the description states the exact one.
    """
    out = dict(schema)
    whole = out["type"] == "integer"
    if "exclusiveMinimum" in out:
        low = math.floor(out.pop("exclusiveMinimum")) + 1 if whole else out["exclusiveMinimum"]
        out["minimum"] = max(low, out.get("minimum", low))
    if "exclusiveMaximum" in out:
        high = math.ceil(out.pop("exclusiveMaximum")) - 1 if whole else out["exclusiveMaximum"]
        out["maximum"] = min(high, out.get("maximum", high))
    return out


def _array(schema: Schema, _where: str, _notes: list[Note]) -> Schema:
    """Close a tuple with `maxItems` instead of `items: false`; give every other array `items` (known problem B8)."""
    out = dict(schema)
    if out.get("items") is False:
        del out["items"]
        most = len(out.get("prefixItems", ()))
        out["maxItems"] = min(most, out.get("maxItems", most))
    if "prefixItems" not in out:
        out.setdefault("items", {})
    return out


def _object(schema: Schema, where: str, notes: list[Note]) -> Schema:
    out = dict(schema)
    if "properties" in out:
        out["properties"] = _properties(out["properties"], where, notes)
    defined = out.get("properties", {})
    asked = [name for name, sub in defined.items() if isinstance(sub, dict) and sub.get("required") is True]
    required = list(dict.fromkeys([*out.pop("required", ()), *asked]))
    notes.extend(
        Note("dropped", step(where, ("required",)), f"{name!r} is not among the properties")
        for name in required
        if name not in defined
    )
    if any(name in defined for name in required):
        out["required"] = [name for name in required if name in defined]
    if "propertyOrdering" in out:
        out["propertyOrdering"] = [name for name in out["propertyOrdering"] if name in defined]
    _open_patterns(out)
    return out


def _properties(properties: dict[str, Any], where: str, notes: list[Note]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, sub in properties.items():
        if name and isinstance(sub, dict | bool) and sub is not False:
            kept[name] = sub
        else:
            why = "Gemini takes no empty name" if not name else "no value is allowed for it"
            notes.append(Note("dropped", step(where, ("properties", name)), why))
    return kept


def _open_patterns(out: Schema) -> None:
    """Replace `additionalProperties: false` if there are `patternProperties`, which must stay allowed."""
    patterns = out.get("patternProperties")
    if patterns and out.get("additionalProperties") is False:
        subs = list(patterns.values())
        out["additionalProperties"] = subs[0] if len(subs) == 1 and isinstance(subs[0], dict) else True


_BY_TYPE: Final[dict[str, Callable[[Schema, str, list[Note]], Schema]]] = {
    "array": _array,
    "integer": _number,
    "number": _number,
    "object": _object,
}
