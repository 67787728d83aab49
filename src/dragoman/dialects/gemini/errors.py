"""Decode Google's error bodies (`google.rpc.Status`) into `UpstreamError`: kind, retry delay, complaint.

This is the only place that searches the text of Google's error messages.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from typing import Any, Literal

import msgspec

from dragoman.dialects.base import Headers
from dragoman.errors import ErrorKind, UpstreamError

_BY_STATUS: dict[int, ErrorKind] = {
    400: "invalid_request",
    401: "authentication",
    403: "permission",
    404: "not_found",
    408: "timeout",
    413: "too_large",
    429: "rate_limit",
    499: "cancelled",
    500: "internal",
    502: "overloaded",
    503: "overloaded",
    504: "timeout",
}
_AUTH_REASONS = frozenset({"API_KEY_INVALID", "ACCESS_TOKEN_TYPE_UNSUPPORTED", "API_KEY_SERVICE_BLOCKED"})
_OVERFLOW = re.compile(
    r"input token count (?:is )?\(?(\d+)\)?\s+"
    r"(?:exceeds the maximum number of tokens allowed|but (?:the )?model only supports up to) \(?(\d+)\)?"
)
Complaint = Literal[
    "", "states", "schema_form", "signature", "thinking", "tool_mix", "pairing", "field", "opaque"
]

#: Classes of 400 errors that a changed form of the same request may avoid (see `UpstreamError.code`).
_COMPLAINTS: dict[Complaint, re.Pattern[str]] = {
    "signature": re.compile(r"thought[_ ]signature", re.IGNORECASE),
    "thinking": re.compile(r"thinking[_ ](level|budget)|only works in thinking mode", re.IGNORECASE),
    "states": re.compile(r"too many states|too complex", re.IGNORECASE),
    "tool_mix": re.compile(
        r"Multiple tools are supported only|Built-in tools with Function calling|Tool use with function calling",
        re.IGNORECASE,
    ),
    "schema_form": re.compile(
        r"parameters_?json_?schema|function_?declarations\S*parameters|nesting depth", re.IGNORECASE
    ),
    "pairing": re.compile(r"function (call|response) (turn|parts)", re.IGNORECASE),
    "field": re.compile(r"""Unknown name "\w+"(: | at '(generation|tool)_config\S*': )Cannot find field"""),
    "opaque": re.compile(r"Request contains an invalid argument\.?"),
}
_UNKNOWN_FIELD = re.compile(r"""Unknown name "(\w+)"(?: at '([^']+)')?: Cannot find field""")
_PERMANENT_QUOTA = re.compile(r"limit: 0\b|credits are depleted")
_RETRY_TEXT = re.compile(r"retry in (\d+(?:\.\d+)?)\s*(ms|s)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")


class QuotaViolation(msgspec.Struct, rename="camel"):
    quota_id: str = ""


class Detail(msgspec.Struct, rename="camel"):
    reason: str = ""
    retry_delay: Any = None
    violations: list[QuotaViolation] = []


class Status(msgspec.Struct, kw_only=True):
    """The readable fields of an error; a field of the wrong type is replaced by an empty value."""

    code: int
    message: str
    status: str
    details: list[Detail]
    error: dict[str, Any]  # the whole object, unchanged


def decode_error(status: int, headers: Headers, body: bytes) -> UpstreamError:
    """Decode an HTTP error response; `Retry-After` counts if the body names no delay."""
    error = decode_error_body(status, body)
    if error.retry_after_s is None:
        found = _NUMBER.fullmatch(headers.get("retry-after", ""))
        error.retry_after_s = _finite(float(found[0])) if found else None
    return error


def decode_error_body(status: int, body: bytes) -> UpstreamError:
    """Decode an error body; `status` is 0 for an error inside a stream, where the body has the status."""
    google = _status(body)
    if google is None:
        said = f"answered HTTP {status}" if status else "sent an error"
        return UpstreamError(
            f"the upstream {said} without an explanation", kind=_kind_of(status), status=status or None
        )
    status = status or google.code or 500
    error = UpstreamError(_message(google), kind=_kind(status, google), status=status)
    error.retry_after_s = _retry_after(google)
    error.code = _complaint(google.message) if error.kind == "invalid_request" else ""
    error.place = _place(google.message) if error.code == "field" else ""
    error.native = msgspec.json.encode({"error": google.error})
    return error


def _complaint(message: str) -> Complaint:
    return next((name for name, pattern in _COMPLAINTS.items() if pattern.search(message)), "")


def _place(message: str) -> str:
    found = _UNKNOWN_FIELD.search(message)
    name, at = found.groups() if found else ("", "")
    return f"{at}.{name}" if at else name


def _message(google: Status) -> str:
    """Return Google's message; for a context overflow Anthropic's, so that clients compact (known problem H4)."""
    found = _OVERFLOW.search(google.message)
    if found:
        return f"prompt is too long: {found[1]} tokens > {found[2]} maximum"
    return google.message or google.status or "the upstream gave no reason"


def _status(body: bytes) -> Status | None:
    try:
        found = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if isinstance(found, list):
        found = found[0] if found else None
    error = found.get("error") if isinstance(found, dict) else None
    if isinstance(error, str):
        error = {"message": error}
    if not isinstance(error, dict):
        return None
    code, message, status = error.get("code"), error.get("message"), error.get("status")
    return Status(
        code=code if isinstance(code, int) else 0,
        message=message if isinstance(message, str) else "",
        status=status if isinstance(status, str) else "",
        details=_details(error.get("details")),
        error=error,
    )


def _details(details: Any) -> list[Detail]:
    kept: list[Detail] = []
    for detail in details if isinstance(details, list) else ():
        with suppress(msgspec.ValidationError):
            kept.append(msgspec.convert(detail, Detail))
    return kept


def _kind(status: int, google: Status) -> ErrorKind:
    if any(detail.reason in _AUTH_REASONS for detail in google.details):
        return "authentication"
    if _OVERFLOW.search(google.message):
        return "overflow"
    if status == 429 and _is_terminal_quota(google):
        return "quota"
    return _kind_of(status)


def _kind_of(status: int) -> ErrorKind:
    return _BY_STATUS.get(status, "invalid_request" if 400 <= status < 500 else "internal")


def _is_terminal_quota(google: Status) -> bool:
    ids = [violation.quota_id for detail in google.details for violation in detail.violations]
    daily = any("PerDay" in quota or "Daily" in quota for quota in ids)
    return daily or _PERMANENT_QUOTA.search(google.message) is not None


def _retry_after(google: Status) -> float | None:
    """Return the delay in seconds from `RetryInfo` or the message; Google sends no Retry-After (known problem L1)."""
    for detail in google.details:
        found = _DURATION.fullmatch(str(detail.retry_delay))
        if found:
            return _finite(float(found[1]))
    text = _RETRY_TEXT.search(google.message)
    if text is None:
        return None
    return _finite(float(text[1]) / (1000 if text[2] == "ms" else 1))


def _finite(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None
