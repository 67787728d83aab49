"""Google's error bodies to one typed error: whose fault, retry when."""

from __future__ import annotations

import re
from typing import Any

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
    r"input token count \(?(\d+)\)? exceeds the maximum number of tokens allowed \(?(\d+)\)?"
)
_RETRY_TEXT = re.compile(r"retry in (\d+(?:\.\d+)?)\s*(ms|s)")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)s")


class QuotaViolation(msgspec.Struct, rename="camel"):
    quota_id: str = ""


class Detail(msgspec.Struct, rename="camel"):
    reason: str = ""
    retry_delay: Any = None
    violations: list[QuotaViolation] = []


class Status(msgspec.Struct):
    code: int = 0
    message: str = ""
    status: str = ""
    details: list[Detail] = []


class Envelope(msgspec.Struct):
    error: Status


_ENVELOPE = msgspec.json.Decoder(Envelope | list[Envelope], strict=False)


def decode_error(status: int, headers: Headers, body: bytes) -> UpstreamError:
    error = decode_error_body(status, body)
    if error.retry_after_s is None:
        found = re.fullmatch(r"\d+(\.\d+)?", headers.get("retry-after", ""))
        error.retry_after_s = float(found[0]) if found else None
    return error


def decode_error_body(status: int, body: bytes) -> UpstreamError:
    """`status` 0: an error inside a stream, whose body says the status."""
    google = _status(body)
    if google is None:
        return UpstreamError(
            f"the upstream answered HTTP {status} without an explanation",
            kind=_BY_STATUS.get(status, "internal"),
            status=status,
        )
    status = status or google.code or 500
    error = UpstreamError(_message(google), kind=_kind(status, google), status=status)
    error.retry_after_s = _retry_after(google)
    error.code = google.status
    return error


def _message(google: Status) -> str:
    """Overflow is said in the words that make clients compact (pain H4)."""
    found = _OVERFLOW.search(google.message)
    if found:
        return f"prompt is too long: {found[1]} tokens > {found[2]} maximum"
    return google.message or google.status or "the upstream gave no reason"


def _status(body: bytes) -> Status | None:
    try:
        envelope = _ENVELOPE.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    if isinstance(envelope, Envelope):
        return envelope.error
    return envelope[0].error if envelope else None


def _kind(status: int, google: Status) -> ErrorKind:
    if any(detail.reason in _AUTH_REASONS for detail in google.details):
        return "authentication"
    if _OVERFLOW.search(google.message):
        return "overflow"
    if status == 429 and _is_terminal_quota(google):
        return "quota"
    return _BY_STATUS.get(status, "invalid_request" if status < 500 else "internal")


def _is_terminal_quota(google: Status) -> bool:
    ids = [violation.quota_id for detail in google.details for violation in detail.violations]
    return any("PerDay" in quota or "Daily" in quota for quota in ids) or "limit: 0" in google.message


def _retry_after(google: Status) -> float | None:
    """There is no Retry-After header: the delay is in RetryInfo and in the message (pain L1)."""
    for detail in google.details:
        found = _DURATION.fullmatch(str(detail.retry_delay))
        if found:
            return float(found[1])
    text = _RETRY_TEXT.search(google.message)
    if text is None:
        return None
    return float(text[1]) / (1000 if text[2] == "ms" else 1)
