"""Limits on concurrency: the number of running requests, and the bytes of their bodies."""

from __future__ import annotations

from dragoman.errors import DragomanError

_RETRY_AFTER_S = 1.0
_RESERVED_SHARE = 8  # one slot in eight is reserved for callers that have few running requests
_UNAUTHENTICATED_SHARE = 8  # unauthenticated requests get additional slots, an eighth of max_requests


class ConcurrencyLimiter:
    """A limit on concurrent requests.

    The last eighth of the slots is reserved: a caller gets one of them while it has no running request, or fewer than
    its equal share of the reserve, with one share left for a newcomer. So one caller cannot lock out the others.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._unreserved = limit - limit // _RESERVED_SHARE
        self._running = 0
        self._by_caller: dict[str, int] = {}

    def acquire(self, caller: str) -> None:
        """Take a slot; raise DragomanError of kind `overloaded` if there is none for this caller."""
        own_count = self._by_caller.get(caller, 0)
        reserved = self._limit - self._unreserved
        may_use_reserve = own_count == 0 or own_count < reserved // (len(self._by_caller) + 1)
        if self._running >= (self._limit if may_use_reserve else self._unreserved):
            why = f"{self._running} requests are being answered here already (server.max_requests)"
            raise DragomanError(why, kind="overloaded", retry_after_s=_RETRY_AFTER_S)
        self._running += 1
        self._by_caller[caller] = own_count + 1

    def release(self, caller: str) -> None:
        self._running -= 1
        left = self._by_caller.pop(caller) - 1
        if left:
            self._by_caller[caller] = left

    def __len__(self) -> int:
        return self._running


def unauthenticated_limiter(max_requests: int) -> ConcurrencyLimiter:
    """Return the separate limit for signed requests whose body is still being read.

    Their signature is not verified yet, so they must not take slots from authenticated callers.
    """
    return ConcurrencyLimiter(max(1, max_requests // _UNAUTHENTICATED_SHARE))


class ByteBudget:
    """A budget of bytes that is shared by all requests."""

    def __init__(self, limit: int) -> None:
        self.left_bytes = limit

    def lease(self) -> ByteLease:
        return ByteLease(self)

    def take(self, size: int) -> None:
        """Take bytes; raise DragomanError of kind `overloaded` if fewer are left."""
        if size > self.left_bytes:
            why = "the requests that are being answered here fill the memory for them (server.max_inflight_bytes)"
            raise DragomanError(why, kind="overloaded", retry_after_s=_RETRY_AFTER_S)
        self.left_bytes -= size


class ByteLease:
    """The bytes that one request has taken from a `ByteBudget`; a context manager that gives them back."""

    _size = 0

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget

    def take(self, size: int) -> None:
        self._budget.take(size)
        self._size += size

    def __enter__(self) -> ByteLease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def release(self) -> None:
        self._budget.left_bytes += self._size
        self._size = 0


class RequestLease(ByteLease):
    """Everything that one request has taken, a concurrency slot and bytes, until the end of the block."""

    _limiter: ConcurrencyLimiter | None = None
    _caller = ""

    def acquire_slot(self, limiter: ConcurrencyLimiter, caller: str) -> None:
        """Take a slot, and give back the one that the request had before."""
        limiter.acquire(caller)
        if self._limiter is not None:
            self._limiter.release(self._caller)
        self._limiter, self._caller = limiter, caller

    def __enter__(self) -> RequestLease:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        if self._limiter is not None:
            self._limiter.release(self._caller)
