"""Handling of an unavailable store: fail the request, or ignore it if the state is optional."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar

from dragoman.errors import DragomanError
from dragoman.store import StoreUnavailable

T = TypeVar("T")


async def ignore_store_errors(work: Awaitable[Any]) -> None:
    """Await a store operation and ignore that the store is unavailable."""
    try:
        await work
    except StoreUnavailable:
        return


async def require_store(work: Awaitable[T]) -> T:
    """Await a store operation; raise DragomanError of kind `overloaded` if the store is unavailable.

    Without its state a request would be answered wrongly; the client may retry.
    """
    try:
        return await work
    except StoreUnavailable as error:
        why = f"the state of this conversation cannot be reached: {error}"
        raise DragomanError(why, kind="overloaded", retry_after_s=2) from error
