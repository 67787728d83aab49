"""A bounded cache for the results of deterministic tools."""

from __future__ import annotations

from typing import Any

from dragoman.memo import LruCache
from dragoman.tools.definition import ToolDefinition, ToolOutput
from dragoman.tools.results import canonical, size_of

_CACHE_ENTRY_OVERHEAD_BYTES = 300


class ResultCache:
    """Caches results of tools declared deterministic, but no errors: a failed call may succeed the next time."""

    def __init__(self, max_bytes: int) -> None:
        self._memo: LruCache[tuple[object, bytes], ToolOutput] = LruCache(max_bytes)

    def get(self, definition: ToolDefinition, args: dict[str, Any]) -> ToolOutput | None:
        return self._memo.find(_cache_key(definition, args)) if definition.deterministic else None

    def put(self, definition: ToolDefinition, args: dict[str, Any], output: ToolOutput) -> None:
        if definition.deterministic and not output.is_error:
            key = _cache_key(definition, args)
            self._memo.put(key, size_of(output) + len(key[1]) + _CACHE_ENTRY_OVERHEAD_BYTES, output)


def _cache_key(definition: ToolDefinition, args: dict[str, Any]) -> tuple[object, bytes]:
    """Key by the executor, not by the name: a tool that replaces another must not see its results."""
    return definition.execute, canonical(args)
