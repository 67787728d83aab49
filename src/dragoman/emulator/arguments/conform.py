"""A JSON Schema validator for the keywords that the generator needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dragoman.emulator.arguments.nodes import SchemaNode, resolve, types_of
from dragoman.emulator.arguments.pattern import matches

_MAX_VALIDATION_DEPTH = 24

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: _TYPES["number"](value) and float(value).is_integer(),
}


def conforms(value: Any, schema: Any, root: SchemaNode, depth: int = 0) -> bool:
    """Whether a value fits a schema. Below the depth of any real schema, everything fits."""
    if schema is True or depth > _MAX_VALIDATION_DEPTH:
        return True
    node = resolve(root, schema)
    kinds = types_of(node)
    if kinds and not any(_TYPES.get(kind, lambda _: True)(value) for kind in kinds):
        return value is None and node.get("nullable") is True
    if "const" in node and not json_equal(value, node["const"]):
        return False
    if node.get("enum") and not any(json_equal(value, member) for member in node["enum"]):
        return False
    return _fits_kind(value, node, root, depth) and _fits_unions(value, node, root, depth)


def json_equal(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1, at any depth."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(json_equal, one, other))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(json_equal(one[key], other[key]) for key in one)
    return bool(one == other)


def bounds(node: SchemaNode) -> tuple[float | None, bool, float | None, bool]:
    """Return (minimum, whether it is exclusive, maximum, whether it is exclusive).

    Reads both spellings of exclusive bounds: the boolean of draft 4 and the number of later drafts.
    """
    low, low_open = _bound(node, "minimum", "exclusiveMinimum", max)
    high, high_open = _bound(node, "maximum", "exclusiveMaximum", min)
    return low, low_open, high, high_open


def _bound(
    node: SchemaNode, plain: str, exclusive: str, tighter: Callable[[float, float], float]
) -> tuple[float | None, bool]:
    limit: float | None = node.get(plain)
    excluded: float | bool | None = node.get(exclusive)
    if excluded is None or isinstance(excluded, bool):
        return limit, excluded is True
    if limit is None or tighter(limit, excluded) == excluded:
        return excluded, True
    return limit, False


def _fits_unions(value: Any, node: SchemaNode, root: SchemaNode, depth: int) -> bool:
    def fits(schema: Any) -> bool:
        return conforms(value, schema, root, depth + 1)

    if node.get("anyOf") and not any(map(fits, node["anyOf"])):
        return False
    if node.get("oneOf") and sum(map(fits, node["oneOf"])) != 1:
        return False
    return "not" not in node or not fits(node["not"])


def _fits_kind(value: Any, node: SchemaNode, root: SchemaNode, depth: int) -> bool:
    if isinstance(value, str):
        return _fits_text(value, node)
    if isinstance(value, Mapping):
        return _fits_object(value, node, root, depth)
    if isinstance(value, list):
        return _fits_array(value, node, root, depth)
    return not _TYPES["number"](value) or fits_number(value, node)


def _fits_text(value: str, node: SchemaNode) -> bool:
    if not _within(len(value), node, "minLength", "maxLength"):
        return False
    pattern = node.get("pattern")
    return not isinstance(pattern, str) or matches(pattern, value)


def fits_number(value: float, node: SchemaNode) -> bool:
    low, low_open, high, high_open = bounds(node)
    if low is not None and (value < low or (low_open and value == low)):
        return False
    if high is not None and (value > high or (high_open and value == high)):
        return False
    step = node.get("multipleOf")
    return not step or float(value / step).is_integer()


def _fits_object(value: Mapping[str, Any], node: SchemaNode, root: SchemaNode, depth: int) -> bool:
    named = node.get("properties") or {}
    if not _within(len(value), node, "minProperties", "maxProperties"):
        return False
    if any(name not in value for name in node.get("required") or ()):
        return False
    patterns = node.get("patternProperties") or {}
    for name, item in value.items():
        schemas = [schema for pattern, schema in patterns.items() if matches(pattern, name)]
        schemas += [named[name]] if name in named else []
        for schema in schemas or [node.get("additionalProperties", True)]:
            if not conforms(item, schema, root, depth + 1):
                return False
    return True


def _fits_array(value: list[Any], node: SchemaNode, root: SchemaNode, depth: int) -> bool:
    if not _within(len(value), node, "minItems", "maxItems"):
        return False
    if node.get("uniqueItems") and any(
        json_equal(one, other) for index, one in enumerate(value) for other in value[:index]
    ):
        return False
    first, rest = items_of(node)
    schemas = [*first, *[rest] * (len(value) - len(first))]
    return all(conforms(item, schema, root, depth + 1) for item, schema in zip(value, schemas, strict=False))


def items_of(node: SchemaNode) -> tuple[list[Any], Any]:
    """Return the schemas of the first items, and the schema of all others, in either draft's spelling."""
    items = node.get("items", True)
    if isinstance(items, list):
        return items, node.get("additionalItems", True)
    return list(node.get("prefixItems") or ()), items


def _within(size: int, node: SchemaNode, least: str, most: str) -> bool:
    return bool(node.get(least, 0) <= size <= node.get(most, size))
