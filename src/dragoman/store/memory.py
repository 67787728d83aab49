"""A store for tests and for the library: forgets everything with the process."""

from __future__ import annotations

from collections.abc import Collection, Sequence


class MemoryStore:
    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        return {key: self._kept[key] for key in keys if key in self._kept}

    async def remember(self, items: Sequence[tuple[str, str]]) -> None:
        self._kept.update(items)

    async def close(self) -> None:
        self._kept.clear()
