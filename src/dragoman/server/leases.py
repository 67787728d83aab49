"""Leases on conversations: only one request at a time runs in each, across all processes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from dragoman.server.reach import quietly, reach
from dragoman.store import StoreUnavailable, Turns
from dragoman.tokens import new_token

LetGo = Callable[[], Awaitable[None]]

#: A conversation stays locked this long after the process that holds it has died.
_LEASE_S = 30.0
_KNOWN_LEFTOVERS = 10_000  # names come from clients


class Leases:
    """The leases of one process.

    If the store fails while a lease is acquired or released, the lease may still exist there. Its holder id
    is remembered, and the next request of this process takes the lease over instead of waiting for its
    expiry.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._leftovers: dict[str, str] = {}

    @asynccontextmanager
    async def hold(self, name: str) -> AsyncIterator[LetGo | None]:
        """Hold the lease of a conversation; yield a function to release it early, or None if it is taken."""
        holder = self._leftovers.pop(name, "") or new_token()
        try:
            held = await reach(self._lease(name, holder))
        except BaseException:
            self._leave(name, holder)
            raise
        if not held:
            yield None
            return
        renewing = asyncio.get_running_loop().create_task(self._renew(name, holder), name=f"lease {name}")

        async def let_go() -> None:
            renewing.cancel()
            await asyncio.shield(self._release(name, holder))

        try:
            yield let_go
        finally:
            await let_go()

    def _lease(self, name: str, holder: str) -> Awaitable[bool]:
        return self._turns.lease(name, holder, _LEASE_S)

    async def _renew(self, name: str, holder: str) -> None:
        """Renew the lease until cancelled. A failed renewal is detected when the turn is saved."""
        while True:
            await asyncio.sleep(_LEASE_S / 3)
            await quietly(self._lease(name, holder))

    async def _release(self, name: str, holder: str) -> None:
        try:
            await self._turns.release(name, holder)
        except StoreUnavailable:
            self._leave(name, holder)

    def _leave(self, name: str, holder: str) -> None:
        if len(self._leftovers) >= _KNOWN_LEFTOVERS:
            self._leftovers.clear()
        self._leftovers[name] = holder
