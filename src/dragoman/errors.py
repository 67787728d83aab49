"""The exceptions of the package, by whose fault they are.

    DragomanError              kind, message, where, retry_after_s
    ├── InvalidRequest         the caller's request cannot be served as it is
    ├── NotAllowed             the caller may not do this (authentication, permission)
    ├── UpstreamError          Google answered with an error, or not at all
    │   ├── UpstreamCut        the answer stopped before its end
    │   └── UpstreamGarbage    the answer was not what the API promises
    └── ConfigError            our own settings are wrong

Each client dialect maps `kind` to its own status and error type in one table. No code inspects messages.
"""

from __future__ import annotations

from typing import Literal

ErrorKind = Literal[
    "invalid_request",
    "overflow",
    "authentication",
    "permission",
    "not_found",
    "wrong_method",
    "conflict",
    "too_large",
    "rate_limit",
    "quota",
    "overloaded",
    "timeout",
    "cancelled",
    "internal",
]

RETRYABLE: frozenset[ErrorKind] = frozenset({"rate_limit", "overloaded", "timeout", "internal"})


class DragomanError(Exception):
    """The base class: the `kind` of error, a message, and the path in the caller's document (`where`).

    `status` is the HTTP status of Google's answer, if there is one. `code` is machine-readable: the error code that a
    client expects, the class of Google's error, or the allowed methods of a `wrong_method` error.
    """

    kind: ErrorKind = "internal"

    def __init__(
        self,
        message: str,
        *,
        where: str = "",
        kind: ErrorKind | None = None,
        retry_after_s: float | None = None,
        status: int | None = None,
        code: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.retry_after_s = retry_after_s
        self.status = status
        self.code = code
        if kind is not None:
            self.kind = kind

    def __str__(self) -> str:
        return f"{self.where}: {self.message}" if self.where else self.message

    @property
    def retryable(self) -> bool:
        return self.kind in RETRYABLE


class InvalidRequest(DragomanError):
    """The caller's request cannot be served as it is."""

    kind: ErrorKind = "invalid_request"


class NotAllowed(DragomanError):
    """The caller may not do this."""

    kind: ErrorKind = "authentication"


class UpstreamError(DragomanError):
    """Google answered with an error, or not at all.

    `native` is the body of Google's answer, for Gemini clients. `place` is the field of the upstream request that
    Google refuses, as Google names it.
    """

    native: bytes = b""
    place: str = ""


class UpstreamIncomplete(UpstreamError):
    """The answer stopped before its end."""


class UpstreamProtocolError(UpstreamError):
    """The answer was not what the API promises."""


class ConfigError(DragomanError):
    """The configuration is invalid."""
