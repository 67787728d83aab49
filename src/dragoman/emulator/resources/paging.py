"""Pagination by `pageSize` and `pageToken`."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.emulator.refusal import ApiError, field_violations_error


def paginate(
    field: str, items: Sequence[Any], query: Mapping[str, str], *, default: int, most: int
) -> dict[str, Any]:
    """Return `{field: […], nextPageToken}`. Google's JSON omits an empty list, so this does too."""
    size = min(_page_size(query) or default, most)
    start = _decode_page_token(query)
    page = list(items[start : start + size])
    answer: dict[str, Any] = {field: page} if page else {}
    if start + size < len(items):
        answer["nextPageToken"] = _encode_page_token(start + size)
    return answer


def _page_size(query: Mapping[str, str]) -> int:
    text = query.get("pageSize") or query.get("page_size") or "0"
    try:
        size = int(text)
    except ValueError:
        line = f"Invalid value at 'page_size' (TYPE_INT32), \"{text}\""
        raise field_violations_error([("page_size", line)]) from None
    if size < 0:
        raise ApiError("page_size must be non-negative.")
    return size


def _encode_page_token(start: int) -> str:
    return base64.urlsafe_b64encode(f"from:{start}".encode()).decode().rstrip("=")


def _decode_page_token(query: Mapping[str, str]) -> int:
    token = query.get("pageToken") or query.get("page_token") or ""
    if not token:
        return 0
    try:
        prefix, _, start = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode().partition(":")
        if prefix == "from" and start.isdecimal():
            return int(start)
    except ValueError:  # not base64, not text, or too many digits
        pass
    raise ApiError("The page token is invalid.")
