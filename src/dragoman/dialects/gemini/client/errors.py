"""Encode errors in Google's format (`google.rpc.Status`).

An error that came from Google is passed on unchanged; one of the gateway's gets the same form.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec

from dragoman.dialects.base import Reply
from dragoman.errors import DragomanError, ErrorKind, UpstreamError

_TABLE: dict[ErrorKind, tuple[int, str]] = {
    "invalid_request": (400, "INVALID_ARGUMENT"),
    "overflow": (400, "INVALID_ARGUMENT"),
    "authentication": (401, "UNAUTHENTICATED"),
    "permission": (403, "PERMISSION_DENIED"),
    "not_found": (404, "NOT_FOUND"),
    "wrong_method": (405, "INVALID_ARGUMENT"),
    "conflict": (409, "ABORTED"),
    "too_large": (413, "INVALID_ARGUMENT"),
    "rate_limit": (429, "RESOURCE_EXHAUSTED"),
    "quota": (429, "RESOURCE_EXHAUSTED"),
    "cancelled": (499, "CANCELLED"),
    "internal": (500, "INTERNAL"),
    "overloaded": (503, "UNAVAILABLE"),
    "timeout": (504, "DEADLINE_EXCEEDED"),
}
_JSON = (("content-type", "application/json; charset=UTF-8"),)


def encode_error(error: DragomanError, *, in_array: bool = False) -> Reply:
    """Encode an error response; `in_array` wraps it in a list, as `streamGenerateContent` without SSE does."""
    body = error_body(error)
    status, _ = _TABLE[error.kind]
    headers: tuple[tuple[str, str], ...] = _JSON
    if error.kind == "wrong_method":
        headers += (("allow", error.code),)
    return Reply(_google_status(error) or status, b"[%b]" % body if in_array else body, headers)


def error_body(error: DragomanError) -> bytes:
    """Return Google's original body, or a new one with the same fields."""
    if isinstance(error, UpstreamError) and error.native:
        return error.native
    status, word = _TABLE[error.kind]
    inner: dict[str, Any] = {"code": status, "message": str(error), "status": word}
    if error.retry_after_s is not None:
        delay = f"{math.ceil(error.retry_after_s)}s"
        inner["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}]
    return msgspec.json.encode({"error": inner})


def _google_status(error: DragomanError) -> int | None:
    """Return Google's HTTP status if the body is Google's too, otherwise None."""
    return error.status if isinstance(error, UpstreamError) and error.native else None
