"""Values derived from messages and other decoded items, cached on the objects they are derived from.

The same message object is in every later turn of its conversation, so that a value derived from it in one turn is
found again in the next, and is deleted together with the message. The values are in the object's `__dict__`, which
plays no part in comparing, encoding or copying it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dragoman.ir import Message

V = TypeVar("V")


def derived_values(owner: object) -> dict[str, Any]:
    """Return the dictionary of the values derived from `owner`."""
    return owner.__dict__


def derive(owner: object, name: str, key: object, make: Callable[..., V], *args: Any) -> V:
    """Return `make(*args)`, or its cached result if it was derived from `owner` with an equal `key` before.

    `make` must be a pure function of `owner` and `key`. Neither the key nor the result may refer to `owner`: the
    reference cycle would keep both alive until the garbage collector runs.
    """
    values = owner.__dict__
    found: tuple[object, V] | None = values.get(name)
    if found is None or found[0] != key:
        found = values[name] = key, make(*args)
    return found[1]


def join_messages(first: Message, second: Message) -> Message:
    """Return both messages as one, with the role of the first; the same object in every turn."""
    return derive(first, "joined", (second,), _join, first, second)


def _join(first: Message, second: Message) -> Message:
    return Message(role=first.role, parts=first.parts + second.parts)
