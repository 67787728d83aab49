"""What was computed of a thing, kept with it."""

from __future__ import annotations

from typing import Any, Self, overload


class Notebook:
    """A dictionary of an object's own, made when it is first asked for; as `cached_property`, without its lock.

    Entries are pure functions of the object and of what stands beside them, and end with it.
    """

    @overload
    def __get__(self, owner: None, kind: type) -> Self: ...

    @overload
    def __get__(self, owner: object, kind: type) -> dict[str, Any]: ...

    def __get__(self, owner: object | None, kind: type) -> dict[str, Any] | Self:
        """Asked once: from then on the object has an attribute of that name."""
        return self if owner is None else owner.__dict__.setdefault("notebook", {})
