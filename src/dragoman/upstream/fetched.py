"""The result and the error of fetching a remote file, importable without the HTTP client."""

from __future__ import annotations

import msgspec

from dragoman.errors import DragomanError


class FetchError(DragomanError):
    """The file cannot be fetched; the message reveals nothing about networks that only the gateway can reach."""

    kind = "invalid_request"


class FetchedFile(msgspec.Struct, frozen=True):
    """A fetched file, with the MIME type that its first bytes show."""

    mime: str
    data: bytes
