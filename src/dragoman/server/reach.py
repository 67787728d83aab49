"""State that is needed for an answer, and state that is only nice to have."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, TypeVar

from dragoman.errors import DragomanError
from dragoman.store import StoreUnavailable

T = TypeVar("T")


async def quietly(work: Awaitable[Any]) -> None:
    try:
        await work
    except StoreUnavailable:
        return


async def reach(work: Awaitable[T]) -> T:
    """State that is needed and cannot be had: nothing wrong is answered, the client may come again."""
    try:
        return await work
    except StoreUnavailable as error:
        why = f"the state of this conversation cannot be reached: {error}"
        raise DragomanError(why, kind="overloaded", retry_after_s=2) from error
