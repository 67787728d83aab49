"""Traverse a JSON Schema: which keywords contain schemas, which contain plain data, and what a local `$ref` names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final
from urllib.parse import unquote

Schema = dict[str, Any]
Path = tuple[str | int, ...]

# ONE holds a schema, LIST a list of schemas, MAP schemas by name. All other keywords hold data: `default`, `enum`,
# `const`, `required`… are never traversed (known problem B3). The keys below a MAP keyword are names, not keywords (B4).
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


Target = tuple[str, ...]  # the unescaped tokens of a JSON Pointer (RFC 6901); () is the document itself

_CONTAINERS = frozenset({"$defs", "definitions"})


class Refs:
    """The references of one document."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self._circular: frozenset[Target] | None = None

    def find(self, ref: object) -> Target | None:
        """Return the target of a local reference; None if it is remote, dangling or not a schema."""
        if not isinstance(ref, str) or not ref.startswith("#"):
            return None
        pointer = unquote(ref[1:])
        if pointer and not pointer.startswith("/"):
            return None
        target = tuple(token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:])
        try:
            found = self.value(target)
        except (KeyError, IndexError, ValueError, TypeError):
            return None
        return target if isinstance(found, dict | bool) else None

    def value(self, target: Target) -> Any:
        """Return the value at the target."""
        here: Any = self._document
        for token in target:
            here = here[int(token)] if isinstance(here, list) else here[token]
        return here

    def is_recursive(self, target: Target) -> bool:
        """Whether following references from the target can lead back to it."""
        if self._circular is None:
            self._circular = _cycles(self._graph())
        return target in self._circular

    def _graph(self) -> dict[Target, set[Target]]:
        """Return, for every target reachable from the root, the targets that it refers to."""
        graph: dict[Target, set[Target]] = {}
        waiting: list[Target] = [()]
        while waiting:
            target = waiting.pop()
            if target not in graph:
                graph[target] = self._references_in(target)
                waiting.extend(graph[target])
        return graph

    def _references_in(self, target: Target) -> set[Target]:
        found: set[Target] = set()
        waiting = [self.value(target)]
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, dict):
                continue
            seen = self.find(schema.get("$ref"))
            if seen is not None:
                found.add(seen)
            waiting.extend(sub for path, sub in children(schema) if path[0] not in _CONTAINERS)
        return found


def _cycles(graph: dict[Target, set[Target]]) -> frozenset[Target]:
    """Return the nodes that lie on a cycle, or on a path between two cycles.

    Repeatedly remove nodes without successors, then nodes without predecessors (Kahn's algorithm, both ways).
    """
    backwards: dict[Target, set[Target]] = {target: set() for target in graph}
    for target, nexts in graph.items():
        for other in nexts:
            backwards[other].add(target)
    left = set(graph)
    for ahead, behind in ((graph, backwards), (backwards, graph)):
        count = {target: len(ahead[target] & left) for target in left}
        waiting = [target for target in left if not count[target]]
        while waiting:
            target = waiting.pop()
            left.discard(target)
            for other in behind[target] & left:
                count[other] -= 1
                if not count[other]:
                    waiting.append(other)
    return frozenset(left)
