"""Arguments that arrive as JSON paths with values (Vertex, `streamFunctionCallArguments`)."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

from dragoman.dialects.gemini.wire import PartialArg

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]")
MAX_LIST_INDEX = 100_000


class PartialArgs:
    """Puts every value at its path; strings for the same path are appended."""

    def __init__(self) -> None:
        self._root: dict[str, Any] = {}

    def feed(self, pieces: list[PartialArg]) -> None:
        for piece in pieces:
            path: list[str | int] = [
                int(number) if number else name or quoted
                for name, number, quoted in _STEP.findall(piece.json_path)
            ]
            if path:
                self._put(path, piece)

    def close(self) -> bytes:
        return msgspec.json.encode(self._root)

    def _put(self, path: list[str | int], piece: PartialArg) -> None:
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


def _value(piece: PartialArg) -> Any:
    for value in (piece.string_value, piece.bool_value, piece.number_value):
        if value is not None:
            return int(value) if isinstance(value, float) and value.is_integer() else value
    return msgspec.UNSET if piece.null_value is msgspec.UNSET else None


def _get(node: Any, step: str | int) -> Any:
    if isinstance(node, list):
        return node[step] if isinstance(step, int) and step < len(node) else None
    return node.get(str(step))


def _set(node: Any, step: str | int, value: Any) -> None:
    if not isinstance(node, list):
        node[str(step)] = value
    elif isinstance(step, int) and step < MAX_LIST_INDEX:
        node.extend([None] * (step + 1 - len(node)))
        node[step] = value
