"""A bounded cache for the results of deterministic tools."""

from __future__ import annotations

from typing import Any

from dragoman.memo import Memo
from dragoman.tools.definition import ToolDefinition, ToolOutput
from dragoman.tools.results import canonical, size_of

_OVERHEAD_BYTES = 300


class ResultCache:
    """Caches results of tools declared deterministic, but no errors: a failed call may succeed the next time."""

    def __init__(self, max_bytes: int) -> None:
        self._memo: Memo[tuple[object, bytes], ToolOutput] = Memo(max_bytes)

    def find(self, definition: ToolDefinition, args: dict[str, Any]) -> ToolOutput | None:
        return self._memo.find(_key(definition, args)) if definition.deterministic else None

    def keep(self, definition: ToolDefinition, args: dict[str, Any], output: ToolOutput) -> None:
        if definition.deterministic and not output.is_error:
            key = _key(definition, args)
            self._memo.put(key, size_of(output) + len(key[1]) + _OVERHEAD_BYTES, output)


def _key(definition: ToolDefinition, args: dict[str, Any]) -> tuple[object, bytes]:
    """Key by the executor, not by the name: a tool that replaces another must not see its results."""
    return definition.execute, canonical(args)
