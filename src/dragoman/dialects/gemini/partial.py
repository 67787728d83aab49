"""Assemble function arguments that arrive as JSON paths with values (Vertex, `streamFunctionCallArguments`)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

from dragoman.dialects.gemini.wire import PartialArg
from dragoman.errors import UpstreamProtocolError

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]""")
_ESCAPE = re.compile(r"\\(.)")
MAX_LIST_INDEX = 100_000
MAX_STEPS = 100

Step = str | int


class PartialArgs:
    """Sets every value at its path; a string for a path that has one already is appended to it."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def feed(self, pieces: list[PartialArg]) -> None:
        for piece in pieces:
            path = _read_path(piece.json_path)
            if path:
                self._put(path, piece)

    def close(self) -> bytes:
        """Return the arguments as JSON."""
        return msgspec.json.encode(self._root)

    def _put(self, path: list[Step], piece: PartialArg) -> None:
        node: Any = self._root
        for step, following in pairwise(path):
            below = _get(node, step)
            if not isinstance(below, dict | list):
                below = [] if isinstance(following, int) else {}
                _set(node, step, below)
            node = below
        value = _value(piece)
        if value is not msgspec.UNSET:
            before = _get(node, path[-1])
            joined = isinstance(value, str) and isinstance(before, str)
            _set(node, path[-1], before + value if joined else value)


def _read_path(path: str) -> list[Step]:
    """Split `$.a.b[0]['c']` into its steps.

    Raise `UpstreamGarbage` for any other syntax: skipping the path would lose an argument (pain C10).
    """
    steps: list[Step] = []
    place = 1
    while place < len(path) and len(steps) < MAX_STEPS:
        found = _STEP.match(path, place)
        if found is None or int(found[2] or 0) >= MAX_LIST_INDEX:
            break
        name, number, single, double = found.groups()
        steps.append(int(number) if number else name or _ESCAPE.sub(r"\1", single or double or ""))
        place = found.end()
    if not path.startswith("$") or place < len(path):
        raise UpstreamProtocolError(
            f"the upstream streams an argument to a place we cannot read: {path[:80]}"
        )
    return steps


def _value(piece: PartialArg) -> Any:
    for value in (piece.string_value, piece.bool_value, piece.number_value):
        if value is not None:
            return int(value) if isinstance(value, float) and value.is_integer() else value
    return msgspec.UNSET if piece.null_value is msgspec.UNSET else None


def _get(node: Any, step: Step) -> Any:
    if not isinstance(node, list):
        return node.get(str(step))
    if not isinstance(step, int):
        raise UpstreamProtocolError(f"the upstream streams an argument {step!r} into a list")
    return node[step] if step < len(node) else None


def _set(node: Any, step: Step, value: Any) -> None:
    """Set `value` at `step`; the caller has called `_get`, which checks that the step fits the node."""
    if isinstance(node, list):
        node.extend([None] * (int(step) + 1 - len(node)))
        node[int(step)] = value
    else:
        node[str(step)] = value
