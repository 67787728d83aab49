"""What comes of fetching a file; the fetching itself needs much more than that."""

from __future__ import annotations

import msgspec

from dragoman.errors import DragomanError


class CannotFetch(DragomanError):
    """The file cannot be had; the words tell nothing about networks that only we can see."""

    kind = "invalid_request"


class Fetched(msgspec.Struct, frozen=True):
    """A file and what it really is."""

    mime: str
    data: bytes
