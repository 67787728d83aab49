"""Leases on conversations: only one request at a time runs in each, across all processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from dragoman.gateway.store_errors import ignore_store_errors, require_store
from dragoman.ids import new_id
from dragoman.store import StoreUnavailable, Turns

ReleaseLease = Callable[[], Awaitable[None]]

#: A conversation stays locked this long after the process that holds it has died.
_LEASE_S = 30.0
_MAX_UNRELEASED = 10_000  # names come from clients


class ConversationLeases:
    """The leases of one process.

    If the store fails while a lease is acquired or released, the lease may still exist there. Its holder id
    is remembered, and the next request of this process takes the lease over instead of waiting for its
    expiry.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._unreleased: dict[str, str] = {}

    @asynccontextmanager
    async def acquire(self, name: str) -> AsyncIterator[ReleaseLease | None]:
        """Hold the lease of a conversation; yield a function to release it early, or None if it is taken."""
        holder = self._unreleased.pop(name, "") or new_id()
        try:
            acquired = await require_store(self._lease(name, holder))
        except BaseException:
            self._remember_unreleased(name, holder)
            raise
        if not acquired:
            yield None
            return
        renewal = asyncio.get_running_loop().create_task(self._renew(name, holder), name=f"lease {name}")

        async def release() -> None:
            renewal.cancel()
            await asyncio.shield(self._release(name, holder))

        try:
            yield release
        finally:
            await release()

    def _lease(self, name: str, holder: str) -> Awaitable[bool]:
        return self._turns.acquire_lease(name, holder, _LEASE_S)

    async def _renew(self, name: str, holder: str) -> None:
        """Renew the lease until cancelled. A failed renewal is detected when the turn is saved."""
        while True:
            await asyncio.sleep(_LEASE_S / 3)
            await ignore_store_errors(self._lease(name, holder))

    async def _release(self, name: str, holder: str) -> None:
        try:
            await self._turns.release_lease(name, holder)
        except StoreUnavailable:
            self._remember_unreleased(name, holder)

    def _remember_unreleased(self, name: str, holder: str) -> None:
        if len(self._unreleased) >= _MAX_UNRELEASED:
            self._unreleased.clear()
        self._unreleased[name] = holder
