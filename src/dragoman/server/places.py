"""How much is worked on at once: requests and the bytes of their bodies; one too many is refused at the door."""

from __future__ import annotations

from dragoman.errors import DragomanError

_LATER_S = 1.0
_RESERVE = 8  # one place of so many is kept for callers who have none
_UNPROVEN_SHARE = 8  # for one place of so many there is one for callers whom we do not know yet


class Places:
    """Places for running requests.

    The last eighth is for callers who have none: whoever asks for everything does not shut the others out.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = most - most // _RESERVE
        self._taken = 0
        self._of: dict[str, int] = {}

    def take(self, caller: str) -> None:
        own = self._of.get(caller, 0)
        if self._taken >= (self._open if own else self._most):
            why = f"{self._taken} requests are being answered here already (server.max_requests)"
            raise DragomanError(why, kind="overloaded", retry_after_s=_LATER_S)
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
    """For signatures that only a body can prove: strangers have them too, and take no place from anybody else."""
    return Places(max(1, most // _UNPROVEN_SHARE))


class Room:
    """Bytes that may be held together."""

    def __init__(self, most: int) -> None:
        self.left = most

    def hold(self) -> Hold:
        return Hold(self)

    def take(self, size: int) -> None:
        if size > self.left:
            why = "the requests that are being answered here fill the memory for them (server.max_inflight_bytes)"
            raise DragomanError(why, kind="overloaded", retry_after_s=_LATER_S)
        self.left -= size


class Hold:
    """What one request holds of a room; it is given back at the end of the block."""

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
    """What one request takes until the block ends: a place, and room for its body."""

    _places: Places | None = None
    _caller = ""

    def take_place(self, places: Places, caller: str) -> None:
        """In place of the one it has."""
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
