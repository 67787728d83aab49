"""Encode errors as the Messages API does.

See https://docs.anthropic.com/en/api/errors.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.base import Reply, error_headers
from dragoman.errors import DragomanError, ErrorKind

#: kind -> HTTP status, error type. 529 is Anthropic's own status for "overloaded"; its SDKs retry it.
_TABLE: dict[ErrorKind, tuple[int, str]] = {
    "invalid_request": (400, "invalid_request_error"),
    "overflow": (400, "invalid_request_error"),
    "authentication": (401, "authentication_error"),
    "permission": (403, "permission_error"),
    "not_found": (404, "not_found_error"),
    "wrong_method": (405, "invalid_request_error"),
    "conflict": (409, "invalid_request_error"),
    "too_large": (413, "request_too_large"),
    "rate_limit": (429, "rate_limit_error"),
    "quota": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "timeout": (504, "timeout_error"),
    "cancelled": (499, "api_error"),
    "internal": (500, "api_error"),
}


def encode_error(error: DragomanError) -> Reply:
    status, _ = _TABLE[error.kind]
    return Reply(status, error_body(error), error_headers(error))


def error_body(error: DragomanError) -> bytes:
    _, kind = _TABLE[error.kind]
    inner: dict[str, Any] = {"type": kind, "message": str(error)}
    if error.code.startswith("thread_"):
        inner["details"] = {"error_code": error.code}
    return msgspec.json.encode({"type": "error", "error": inner})
