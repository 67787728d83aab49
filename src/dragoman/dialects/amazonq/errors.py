"""Errors in Amazon's shape: before a stream with a status, inside it as an exception."""

from __future__ import annotations

import msgspec

from dragoman.dialects.base import Reply, error_headers
from dragoman.errors import DragomanError, ErrorKind

_TOO_LONG = "CONTENT_LENGTH_EXCEEDS_THRESHOLD"

#: kind -> HTTP status, type, reason. 5xx only where trying again helps: the SDKs do it by themselves.
_TABLE: dict[ErrorKind, tuple[int, str, str]] = {
    "invalid_request": (400, "ValidationException", "REQUEST_BODY_INVALID"),
    "overflow": (400, "ValidationException", _TOO_LONG),
    "authentication": (403, "AccessDeniedException", ""),
    "permission": (403, "AccessDeniedException", ""),
    "not_found": (404, "UnknownOperationException", ""),
    "wrong_method": (405, "UnknownOperationException", ""),
    "conflict": (409, "ConflictException", ""),
    "too_large": (400, "ValidationException", _TOO_LONG),
    "rate_limit": (429, "ThrottlingException", ""),
    "quota": (402, "ServiceQuotaExceededException", "MONTHLY_REQUEST_COUNT"),
    "overloaded": (429, "ThrottlingException", "INSUFFICIENT_MODEL_CAPACITY"),
    "timeout": (503, "ServiceUnavailableException", ""),
    "cancelled": (500, "InternalServerException", ""),
    "internal": (500, "InternalServerException", ""),
}
_UNKNOWN_MODEL = (400, "ValidationException", "INVALID_MODEL_ID")
#: Nobody answered, or not this gateway: there another model helps nobody.
_OUT_OF_REACH = _TABLE["timeout"]

#: What was wrong with a request -> Amazon's reason for it; the first four are complaints of Google's.
_REASONS = {
    "schema_form": "TOOL_SCHEMA_INVALID",
    "states": "TOOL_SCHEMA_INVALID",
    "pairing": "TOOL_USE_RESULT_MISMATCH",
    "signature": "THINKING_SIGNATURE_INVALID",
    "tool_schema": "TOOL_SCHEMA_INVALID",
    "image_format": "IMAGE_FORMAT_UNSUPPORTED",
    "file_type": "DISALLOWED_FILE_TYPE",
}
#: Byte for byte what makes the clients compact their history and go on.
_TOO_LONG_WORDS = "Input is too long."

#: Failures that Kiro's model names; everybody else knows one name for all.
_KIRO = {
    "ThrottlingException": "throttlingError",
    "ValidationException": "validationError",
    "ServiceUnavailableException": "serviceUnavailableError",
}


def encode_error(error: DragomanError) -> Reply:
    status, kind, reason = _shape(error)
    headers = (*error_headers(error), ("x-amzn-errortype", kind))
    return Reply(status, _body(kind, reason, error), headers)


def stream_error(error: DragomanError, *, kiro: bool) -> tuple[str, bytes]:
    """The name of an exception and its payload."""
    _, kind, reason = _shape(error)
    if kiro and kind in _KIRO:
        return _KIRO[kind], _body(kind, reason, error)
    return "error", _body("InternalServerException", "", error)


def _shape(error: DragomanError) -> tuple[int, str, str]:
    google_says = error.status is not None or error.code == "breaker"
    if error.where == "model" or (error.kind == "not_found" and google_says):
        return _UNKNOWN_MODEL
    if error.kind == "internal" and google_says:  # another model may be well
        return _TABLE["overloaded"]
    if error.kind == "overloaded" and not google_says:
        return _OUT_OF_REACH
    status, kind, reason = _TABLE[error.kind]
    return status, kind, _REASONS.get(error.code, reason) if error.kind == "invalid_request" else reason


def _body(kind: str, reason: str, error: DragomanError) -> bytes:
    message = _TOO_LONG_WORDS if _TABLE[error.kind][2] == _TOO_LONG else str(error)
    body = {"__type": kind, "message": message}
    return msgspec.json.encode({**body, "reason": reason} if reason else body)
