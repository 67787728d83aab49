"""Encode errors: as an HTTP response, and as the `response.failed` event of a stream.

See https://platform.openai.com/docs/guides/error-codes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.base import Reply, error_headers
from dragoman.errors import DragomanError, ErrorKind, InvalidRequest

#: kind -> HTTP status, error type, error code
_TABLE: dict[ErrorKind, tuple[int, str, str | None]] = {
    "invalid_request": (400, "invalid_request_error", None),
    "overflow": (400, "invalid_request_error", "context_length_exceeded"),
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "permission": (403, "invalid_request_error", "permission_denied"),
    "not_found": (404, "invalid_request_error", "not_found"),
    "wrong_method": (405, "invalid_request_error", None),
    "conflict": (409, "invalid_request_error", "conversation_locked"),
    "too_large": (413, "invalid_request_error", None),
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota", "insufficient_quota"),
    "overloaded": (503, "server_error", "server_error"),
    "timeout": (504, "server_error", "server_error"),
    "cancelled": (499, "server_error", "server_error"),
    "internal": (500, "server_error", "server_error"),
}

#: kind -> code in `response.failed`. Codex gives up on `invalid_prompt` and on `server_is_overloaded`, and retries on
#: `server_error`.
_IN_STREAM: dict[ErrorKind, str] = {
    "invalid_request": "invalid_prompt",
    "overflow": "context_length_exceeded",
    "authentication": "invalid_prompt",
    "permission": "invalid_prompt",
    "not_found": "invalid_prompt",
    "wrong_method": "invalid_prompt",
    "conflict": "server_error",
    "too_large": "invalid_prompt",
    "rate_limit": "rate_limit_exceeded",
    "quota": "insufficient_quota",
    "overloaded": "server_error",
    "timeout": "server_error",
    "cancelled": "server_error",
    "internal": "server_error",
}

#: Errors reported inside a stream even if it has not started yet: Codex gives up on a plain status 429 and shows a
#: plain 400 to the user, but waits, stops or compacts on the same error in `response.failed` (known problem G5).
fails_in_stream: frozenset[ErrorKind] = frozenset({"rate_limit", "quota", "overflow"})


def encode_error(error: DragomanError) -> Reply:
    status, kind, code = _TABLE[error.kind]
    if isinstance(error, InvalidRequest):
        code = error.code or code
    inner = {"message": str(error), "type": kind, "param": error.where or None, "code": code}
    return Reply(status, msgspec.json.encode({"error": inner}), error_headers(error))


def stream_error(error: DragomanError) -> dict[str, Any]:
    """Encode the `error` of a failed response; Codex parses the time to wait from its message."""
    message = str(error)
    if error.kind == "rate_limit" and error.retry_after_s is not None:
        message = f"{message.rstrip('. ')}. Please try again in {error.retry_after_s:g}s."
    return {"code": _IN_STREAM[error.kind], "message": message}
