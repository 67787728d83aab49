"""The parts of an HTTP request that the emulator reads."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_NO_FIELDS: Mapping[str, str] = {}


class HttpRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request.

    Header names are in lower case, `query` has the last value of each parameter, and `now` is an RFC 3339
    timestamp.
    """

    method: str
    path: str
    alt: str = ""
    key: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = _NO_FIELDS
    query: Mapping[str, str] = _NO_FIELDS
    now: str = "2026-01-01T00:00:00Z"
