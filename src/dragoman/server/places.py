"""Limits on concurrency: the number of running requests, and the bytes of their bodies."""

from __future__ import annotations

from dragoman.errors import DragomanError

_RETRY_AFTER_S = 1.0
_RESERVE = 8  # one slot in eight is reserved for callers that have no running request
_UNPROVEN_SHARE = 8  # unauthenticated requests get additional slots, an eighth of max_requests


class Places:
    """A limit on concurrent requests.

    The last eighth of the slots is reserved for callers without a running request, so that one caller cannot
    lock out the others.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = most - most // _RESERVE
        self._taken = 0
        self._of: dict[str, int] = {}

    def take(self, caller: str) -> None:
        """Take a slot; raise DragomanError of kind `overloaded` if there is none for this caller."""
        own = self._of.get(caller, 0)
        if self._taken >= (self._open if own else self._most):
            why = f"{self._taken} requests are being answered here already (server.max_requests)"
            raise DragomanError(why, kind="overloaded", retry_after_s=_RETRY_AFTER_S)
        self._taken += 1
        self._of[caller] = own + 1

    def leave(self, caller: str) -> None:
        self._taken -= 1
        left = self._of.pop(caller) - 1
        if left:
            self._of[caller] = left

    def __len__(self) -> int:
        return self._taken


def places_for_unproven(most: int) -> Places:
    """Return the separate limit for signed requests whose body is still being read.

    Their signature is not verified yet, so they must not take slots from authenticated callers.
    """
    return Places(max(1, most // _UNPROVEN_SHARE))


class Room:
    """A budget of bytes that is shared by all requests."""

    def __init__(self, most: int) -> None:
        self.left = most

    def hold(self) -> Hold:
        return Hold(self)

    def take(self, size: int) -> None:
        """Take bytes; raise DragomanError of kind `overloaded` if fewer are left."""
        if size > self.left:
            why = "the requests that are being answered here fill the memory for them (server.max_inflight_bytes)"
            raise DragomanError(why, kind="overloaded", retry_after_s=_RETRY_AFTER_S)
        self.left -= size


class Hold:
    """The bytes that one request has taken from a `Room`; a context manager that gives them back."""

    _size = 0

    def __init__(self, room: Room) -> None:
        self._room = room

    def more(self, size: int) -> None:
        self._room.take(size)
        self._size += size

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()

    def give_back(self) -> None:
        self._room.left += self._size
        self._size = 0


class Stay(Hold):
    """Everything that one request has taken, a concurrency slot and bytes, until the end of the block."""

    _places: Places | None = None
    _caller = ""

    def take_place(self, places: Places, caller: str) -> None:
        """Take a slot, and give back the one that the request had before."""
        places.take(caller)
        if self._places is not None:
            self._places.leave(self._caller)
        self._places, self._caller = places, caller

    def __enter__(self) -> Stay:
        return self

    def __exit__(self, *_: object) -> None:
        self.give_back()
        if self._places is not None:
            self._places.leave(self._caller)
