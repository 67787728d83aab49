"""Encode errors in Amazon's format, as HTTP responses and as exceptions inside a stream."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.dialects.base import Reply, error_headers
from dragoman.errors import DragomanError, ErrorKind
from dragoman.http.aws_eventstream import encode_exception

#: kind -> HTTP status and exception name; the SDKs retry 429 and 5xx.
_TABLE: dict[ErrorKind, tuple[int, str]] = {
    "invalid_request": (400, "ValidationException"),
    "overflow": (400, "ValidationException"),
    "authentication": (403, "AccessDeniedException"),
    "permission": (403, "AccessDeniedException"),
    "not_found": (404, "ResourceNotFoundException"),
    "wrong_method": (405, "ValidationException"),
    "conflict": (409, "ConflictException"),
    "too_large": (413, "ValidationException"),
    "rate_limit": (429, "ThrottlingException"),
    "quota": (400, "ServiceQuotaExceededException"),
    "overloaded": (503, "ServiceUnavailableException"),
    "timeout": (408, "ModelTimeoutException"),
    "cancelled": (424, "ModelErrorException"),
    "internal": (500, "InternalServerException"),
}
#: kind -> exception inside a stream; all other kinds are a `validationException`.
_IN_STREAM: dict[ErrorKind, str] = {
    "rate_limit": "throttlingException",
    "quota": "throttlingException",
    "overloaded": "serviceUnavailableException",
    "timeout": "modelStreamErrorException",
    "cancelled": "modelStreamErrorException",
    "internal": "internalServerException",
}
_MODEL_ERRORS = frozenset({"ModelErrorException", "modelStreamErrorException"})


def encode_error(error: DragomanError) -> Reply:
    """Encode an error response; the exception name is a header, which is the only place boto3 reads."""
    status, name = _TABLE[error.kind]
    headers = (*error_headers(error), ("x-amzn-errortype", name))
    return Reply(status, _body(error, name), headers)


def encode_stream_error(error: DragomanError) -> bytes:
    """Encode an exception message: SDKs take a stream that only ends for a success (known problem E7)."""
    name = _IN_STREAM.get(error.kind, "validationException")
    return encode_exception(name, _body(error, name))


def _body(error: DragomanError, name: str) -> bytes:
    body: dict[str, Any] = {"message": str(error)}
    if name in _MODEL_ERRORS and error.status is not None:
        body["originalStatusCode"] = error.status
    return msgspec.json.encode(body)
