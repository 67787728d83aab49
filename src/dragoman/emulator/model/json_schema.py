"""Read JSON Schema nodes and validate values, for the keywords that the generator needs.

Reading a node follows references, merges `allOf`, and finds the type and the minimal depth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dragoman.emulator.model.regex import matches

SchemaNode = Mapping[str, Any]

_MAX_REFERENCES = 16
_MAX_BRANCHES = 16
#: The height of a schema whose values always contain themselves.
INFINITE_HEIGHT = 99
_MAX_HEIGHT = 5

_IMPOSSIBLE: SchemaNode = {"not": {}}
_KEYWORD_TYPES: dict[str, Any] = {
    **dict.fromkeys(("properties", "patternProperties", "dependentRequired"), Mapping),
    **dict.fromkeys(("required", "enum", "anyOf", "oneOf", "allOf", "prefixItems"), list),
    **dict.fromkeys(
        ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), int
    ),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), int | float
    ),
    "pattern": str,
}
_LARGEST: dict[Any, float] = {int: 1_000_000, int | float: 1e300}
_TYPE_KEYWORDS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "uniqueItems"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}


def resolve(root: SchemaNode, schema: Any, hops: int = 0) -> dict[str, Any]:
    """Return the node with references followed and `allOf` merged. Unions stay."""
    node = as_node(schema)
    for _ in range(_MAX_REFERENCES):
        reference = node.get("$ref") or node.get("ref")
        if isinstance(reference, str):
            node = merge(without(node, "$ref", "ref"), as_node(follow_reference(root, reference)))
        elif parts := node.get("allOf"):
            node = without(node, "allOf")
            for part in parts if hops < _MAX_REFERENCES else ():
                node = merge(node, resolve(root, part, hops + 1))
        else:
            break
    return node


def follow_reference(root: SchemaNode, reference: str) -> Any:
    """Return the target of a JSON pointer within the document; an empty schema if there is none."""
    node: Any = root
    for piece in reference.removeprefix("#").split("/"):
        if piece:
            key = piece.replace("~1", "/").replace("~0", "~")
            node = node[int(key)] if isinstance(node, list) and key.isdecimal() else _get(node, key)
    return node


def as_node(schema: Any) -> dict[str, Any]:
    """Return a schema as a mapping, without keywords of a wrong type, which Google accepts unchecked."""
    if isinstance(schema, Mapping):
        return {
            key: value
            for key, value in schema.items()
            if _has_keyword_type(value, _KEYWORD_TYPES.get(key, object))
        }
    return dict(_IMPOSSIBLE) if schema is False else {}


def _has_keyword_type(value: Any, expected: Any) -> bool:
    # Ignore absurd limits, such as a minLength of a billion or an infinite bound.
    return isinstance(value, expected) and (expected not in _LARGEST or abs(value) <= _LARGEST[expected])


def union_of(node: SchemaNode) -> tuple[str, list[Any]]:
    """Return the keyword of the node's union and its branches, or an empty keyword and no branches."""
    for keyword in ("anyOf", "oneOf"):
        if node.get(keyword):
            return keyword, list(node[keyword])
    return "", []


def without(node: SchemaNode, *keys: str) -> dict[str, Any]:
    return {key: value for key, value in node.items() if key not in keys}


def merge(first: SchemaNode, second: SchemaNode) -> dict[str, Any]:
    """Return a node that requires both; where only one value is possible, the first wins."""
    merged = dict(first)
    for key, value in second.items():
        join = _JOINS.get(key)
        if key not in merged:
            merged[key] = value
        elif join is not None and merged[key] != value:
            merged[key] = join(merged[key], value)
    return merged


def type_of(node: SchemaNode) -> str:
    """Return the type to generate.

    That is the first declared type other than null, else the type that the keywords imply, else string.
    """
    declared = types_of(node)
    if declared:
        return next((kind for kind in declared if kind != "null"), "null")
    return next((kind for kind, keys in _TYPE_KEYWORDS.items() if any(key in node for key in keys)), "string")


def types_of(node: SchemaNode) -> tuple[str, ...]:
    """Return the declared types in lower case; empty if none is declared."""
    kind = node.get("type")
    kinds = kind if isinstance(kind, list) else [kind]
    return tuple(item.lower() for item in kinds if isinstance(item, str))


def height(root: SchemaNode, schema: Any, seen: tuple[str, ...] = ()) -> int:
    """Return the depth of the smallest value: 0 for a scalar, ENDLESS if it always contains itself."""
    reference = as_node(schema).get("$ref")
    if (reference and reference in seen) or len(seen) > _MAX_HEIGHT:
        return INFINITE_HEIGHT
    seen = (*seen, reference or "")
    node = resolve(root, schema)
    _, branches = union_of(node)
    if branches:
        return _shortest(root, branches, seen)
    if node.get("enum") or "const" in node or "null" in types_of(node):
        return 0
    kind = type_of(node)
    below: list[Any] = []
    if kind == "object":
        named = node.get("properties") or {}
        below = [named[name] for name in node.get("required") or () if name in named]
    elif kind == "array" and node.get("minItems", 0) > 0:
        below = [node.get("items", {})]
    deepest = -1
    for item in below:
        deepest = max(deepest, height(root, item, seen))
        if deepest >= INFINITE_HEIGHT:
            return INFINITE_HEIGHT
    return 1 + deepest


def _shortest(root: SchemaNode, branches: Sequence[Any], seen: tuple[str, ...]) -> int:
    found = INFINITE_HEIGHT
    for branch in branches:
        found = min(found, height(root, branch, seen))
        if found == 0:
            break
    return found


def _get(node: Any, key: str) -> Any:
    # Vertex's `defs` needs no special case: its references use the same spelling.
    return node.get(key, {}) if isinstance(node, Mapping) else {}


def _both(first: Any, second: Any) -> Any:
    return {"allOf": [first, second]}


def _join_properties(first: SchemaNode, second: SchemaNode) -> dict[str, Any]:
    shared = {name: _both(first[name], second[name]) for name in first if name in second}
    return {**first, **second, **shared}


def _join_required(first: Sequence[str], second: Sequence[str]) -> list[str]:
    return list(dict.fromkeys([*first, *second]))


def _join_enums(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [value for value in first if value in second] or list(first)


def _join_types(first: Any, second: Any) -> Any:
    ones, others = types_of({"type": first}), types_of({"type": second})
    kept = [kind for kind in ones if kind in others or (kind == "integer" and "number" in others)]
    kept += [kind for kind in others if kind == "integer" and "number" in ones and kind not in kept]
    return kept or first


def _join_unions(first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    return [_both(one, other) for one in first for other in second][:_MAX_BRANCHES]


def _join_extra(first: Any, second: Any) -> Any:
    return False if first is False or second is False else _both(first, second)


_JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "properties": _join_properties,
    "required": _join_required,
    "enum": _join_enums,
    "type": _join_types,
    "anyOf": _join_unions,
    "oneOf": _join_unions,
    "items": _both,
    "additionalProperties": _join_extra,
    **dict.fromkeys(("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"), max),
    **dict.fromkeys(("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"), min),
}


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
