"""Encode errors in Amazon's format, as HTTP responses and as exceptions inside a stream."""

from __future__ import annotations

import msgspec

from dragoman.dialects.base import Reply, error_headers
from dragoman.errors import DragomanError, ErrorKind

_TOO_LONG = "CONTENT_LENGTH_EXCEEDS_THRESHOLD"

#: kind -> HTTP status, type, reason. The SDKs retry 5xx, so it is used only where a retry helps.
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
#: Google did not answer, or the gateway itself is overloaded: changing the model does not help.
_UNREACHABLE = _TABLE["timeout"]

#: Error code -> Amazon's reason; the first four codes are the `Complaint`s of the Gemini dialect.
_REASONS = {
    "schema_form": "TOOL_SCHEMA_INVALID",
    "states": "TOOL_SCHEMA_INVALID",
    "pairing": "TOOL_USE_RESULT_MISMATCH",
    "signature": "THINKING_SIGNATURE_INVALID",
    "tool_schema": "TOOL_SCHEMA_INVALID",
    "image_format": "IMAGE_FORMAT_UNSUPPORTED",
    "file_type": "DISALLOWED_FILE_TYPE",
}
#: Clients compare this exact text to compact their history and continue.
_TOO_LONG_MESSAGE = "Input is too long."

#: Exception type -> Kiro's name inside a stream; all other clients know only `error`.
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
    """Return the name of the exception and its payload; `kiro` selects Kiro's names."""
    _, kind, reason = _shape(error)
    if kiro and kind in _KIRO:
        return _KIRO[kind], _body(kind, reason, error)
    return "error", _body("InternalServerException", "", error)


def _shape(error: DragomanError) -> tuple[int, str, str]:
    """Return HTTP status, type and reason of an error."""
    from_upstream = error.status is not None or error.code == "breaker"
    if error.where == "model" or (error.kind == "not_found" and from_upstream):
        return _UNKNOWN_MODEL
    if error.kind == "internal" and from_upstream:  # another model may work
        return _TABLE["overloaded"]
    if error.kind == "overloaded" and not from_upstream:
        return _UNREACHABLE
    status, kind, reason = _TABLE[error.kind]
    return status, kind, _REASONS.get(error.code, reason) if error.kind == "invalid_request" else reason


def _body(kind: str, reason: str, error: DragomanError) -> bytes:
    message = _TOO_LONG_MESSAGE if _TABLE[error.kind][2] == _TOO_LONG else str(error)
    body = {"__type": kind, "message": message}
    return msgspec.json.encode({**body, "reason": reason} if reason else body)
