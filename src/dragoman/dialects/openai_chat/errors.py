"""Encode errors as the OpenAI API does.

See https://platform.openai.com/docs/guides/error-codes.
"""

from __future__ import annotations

import msgspec

from dragoman.dialects.base import Reply, error_headers
from dragoman.errors import DragomanError, ErrorKind, UpstreamError

#: kind -> HTTP status, error type, error code. The SDKs choose the exception by the status; clients recognise by the
#: code that they must compact the conversation.
_TABLE: dict[ErrorKind, tuple[int, str, str | None]] = {
    "invalid_request": (400, "invalid_request_error", None),
    "overflow": (400, "invalid_request_error", "context_length_exceeded"),
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "permission": (403, "invalid_request_error", "permission_denied"),
    "not_found": (404, "invalid_request_error", None),
    "wrong_method": (405, "invalid_request_error", "method_not_allowed"),
    "conflict": (409, "invalid_request_error", "conflict"),
    "too_large": (413, "invalid_request_error", "request_too_large"),
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota", "insufficient_quota"),
    "overloaded": (503, "server_error", "overloaded"),
    "timeout": (504, "server_error", "timeout"),
    "cancelled": (499, "server_error", "cancelled"),
    "internal": (500, "server_error", None),
}


def encode_error(error: DragomanError) -> Reply:
    status, _, _ = _TABLE[error.kind]
    return Reply(status, error_body(error), error_headers(error))


def error_body(error: DragomanError) -> bytes:
    _, kind, code = _TABLE[error.kind]
    if error.kind == "not_found" and isinstance(error, UpstreamError):
        code = "model_not_found"
    inner = {"message": str(error), "type": kind, "param": error.where or None, "code": code}
    return msgspec.json.encode({"error": inner})
