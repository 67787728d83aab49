"""Traverse a JSON Schema: which keywords contain schemas, and which contain plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

Schema = dict[str, Any]
Path = tuple[str | int, ...]

# ONE holds a schema, LIST a list of schemas, MAP schemas by name. All other keywords hold data: `default`, `enum`,
# `const`, `required`… are never traversed (B3). The keys below a MAP keyword are names, not keywords (B4).
ONE: Final = frozenset((
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
    "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
))  # fmt: skip
LIST: Final = frozenset(["allOf", "anyOf", "oneOf", "prefixItems", "items"])  # `items`: draft 7 and older
MAP: Final = frozenset((
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties",
))  # fmt: skip


def is_schema(value: object) -> bool:
    """Whether the value is a schema: an object or a boolean."""
    return isinstance(value, dict | bool)


def children(schema: Schema) -> Iterator[tuple[Path, Any]]:
    """Yield the direct subschemas, each with its path."""
    for key, value in schema.items():
        if key in ONE and is_schema(value):
            yield (key,), value
        elif key in LIST and isinstance(value, list):
            yield from (((key, i), sub) for i, sub in enumerate(value) if is_schema(sub))
        elif key in MAP and isinstance(value, dict):
            yield from (((key, name), sub) for name, sub in value.items() if is_schema(sub))


def rebuild(schema: Schema, visit: Callable[[Any, Path], Any]) -> Schema:
    """Return a copy in which every direct subschema is replaced by the result of `visit(subschema, path)`."""
    copy = dict(schema)
    for path, sub in children(schema):
        if len(path) == 1:
            copy[str(path[0])] = visit(sub, path)
            continue
        key = str(path[0])
        if copy[key] is schema[key]:
            copy[key] = schema[key].copy()
        copy[key][path[1]] = visit(sub, path)
    return copy


def step(where: str, path: Path) -> str:
    """Append a path to `where`, as in notes: `tools[0].input_schema.properties.x.anyOf[1]`."""
    return where + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)


def too_deep(value: object, levels: int) -> bool:
    """Whether JSON data is nested deeper than `levels`; not recursive, so any depth is safe."""
    row = [value]
    for _ in range(levels + 1):
        row = [sub for item in row for sub in _inside(item)]
        if not row:
            return False
    return True


def cut(value: Any, levels: int) -> Any:
    """Return a copy of JSON data in which containers at depth `levels` are empty."""
    if isinstance(value, dict):
        return {key: cut(sub, levels - 1) for key, sub in value.items()} if levels else {}
    if isinstance(value, list):
        return [cut(sub, levels - 1) for sub in value] if levels else []
    return value


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
