"""Merge two schemas into one that requires both: the simple cases of `allOf`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dragoman.schema.spell import same
from dragoman.schema.walk import Schema

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
