"""An HTTP request as far as the emulator reads it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_NOTHING: Mapping[str, str] = {}


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """Header names are lower case, `query` has the last value of each parameter, `now` is RFC 3339."""

    verb: str
    path: str
    alt: str = ""
    key: str = ""
    body: bytes = b""
    headers: Mapping[str, str] = _NOTHING
    query: Mapping[str, str] = _NOTHING
    now: str = "2026-01-01T00:00:00Z"
