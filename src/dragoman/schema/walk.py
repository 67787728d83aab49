"""The grammar of JSON Schema: which keywords hold schemas, and which hold plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

Schema = dict[str, Any]
Path = tuple[str | int, ...]

# Everything not named here is data: `default`, `enum`, `const`, `required`… are never entered (B3),
# and below a MAP keyword the keys are names, not keywords (B4).
ONE: Final = frozenset((
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items",
    "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
))  # fmt: skip
LIST: Final = frozenset(["allOf", "anyOf", "oneOf", "prefixItems", "items"])  # `items`: draft 7 and older
MAP: Final = frozenset((
    "$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties",
))  # fmt: skip


def is_schema(value: object) -> bool:
    """True for what may stand where a schema is due."""
    return isinstance(value, dict | bool)


def children(schema: Schema) -> Iterator[tuple[Path, Any]]:
    """The direct subschemas, each with the keys that lead to it."""
    for key, value in schema.items():
        if key in ONE and is_schema(value):
            yield (key,), value
        elif key in LIST and isinstance(value, list):
            yield from (((key, i), sub) for i, sub in enumerate(value) if is_schema(sub))
        elif key in MAP and isinstance(value, dict):
            yield from (((key, name), sub) for name, sub in value.items() if is_schema(sub))


def rebuild(schema: Schema, visit: Callable[[Any, Path], Any]) -> Schema:
    """A copy in which every direct subschema is replaced by what `visit(subschema, path)` returns."""
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
    """`where` extended by a path, as notes spell it: `tools[0].input_schema.properties.x.anyOf[1]`."""
    return where + "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)


def too_deep(value: object, levels: int) -> bool:
    """Whether JSON data nests deeper than `levels`; works on any depth without recursion."""
    row = [value]
    for _ in range(levels + 1):
        row = [sub for item in row for sub in _inside(item)]
        if not row:
            return False
    return True


def cut(value: Any, levels: int) -> Any:
    """A copy of JSON data in which containers below `levels` are empty."""
    if isinstance(value, dict):
        return {key: cut(sub, levels - 1) for key, sub in value.items()} if levels else {}
    if isinstance(value, list):
        return [cut(sub, levels - 1) for sub in value] if levels else []
    return value


def _inside(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
