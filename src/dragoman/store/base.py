"""What must outlive a process: signatures by call id, written before the answer's last byte leaves."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol


class StoreUnavailable(Exception):
    """The disk or the server behind a store does not answer; what can go on without state goes on."""


class Store(Protocol):
    async def recall(self, keys: Collection[str]) -> dict[str, str]:
        """What is known of these keys; unknown ones are simply missing."""
        ...

    async def remember(self, items: Sequence[tuple[str, str]]) -> None: ...

    async def close(self) -> None: ...
