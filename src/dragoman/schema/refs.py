"""Local references (`$ref`): find their targets and detect which are recursive."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

from dragoman.schema.walk import Schema, children

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
