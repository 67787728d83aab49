"""Google's error bodies: one exception that carries everything the wire needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_STATUS_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ALREADY_EXISTS",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}

CATCH_ALL = "Request contains an invalid argument."

NOT_FOUND_PAGE = (
    b"<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  <title>Error 404 (Not Found)!!1</title>\n"
    b"  <p><b>404.</b> <ins>That\xe2\x80\x99s an error.</ins>\n"
    b"  <p>The requested URL was not found on this server.  <ins>That\xe2\x80\x99s all we know.</ins>\n"
)


class Refusal(Exception):
    """The service says no: HTTP code, Google's status word, message and details."""

    def __init__(
        self, message: str, *, code: int = 400, status: str = "", details: Sequence[dict[str, Any]] = ()
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status or _STATUS_NAMES[code]
        self.details = tuple(details)

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {
            "code": self.code,
            "message": self.message,
            "status": self.status,
        }
        if self.details:
            error["details"] = list(self.details)
        return {"error": error}


def unclear(reason: str) -> Refusal:
    """Google's catch-all text; what the emulator knows beyond it goes into a DebugInfo detail."""
    return Refusal(CATCH_ALL, details=[detail("DebugInfo", detail=f"emulator: {reason}")])


def bad_fields(violations: Sequence[tuple[str, str]]) -> Refusal:
    """The parse stage's answer: every (path, line) at once."""
    fields = [
        {"field": path, "description": line} if path else {"description": line} for path, line in violations
    ]
    return Refusal(
        "\n".join(line for _, line in violations),
        details=[detail("BadRequest", fieldViolations=fields)],
    )


def bullets(lines: Sequence[str], root: str = "GenerateContentRequest") -> Refusal:
    """The field stage's answer: `* GenerateContentRequest.path: words`, each on its own line."""
    return Refusal("".join(f"* {root}.{line}\n" for line in lines))


def invalid_key() -> Refusal:
    message = "API key not valid. Please pass a valid API key."
    info = error_info("API_KEY_INVALID", {"service": "generativelanguage.googleapis.com"})
    words = detail("LocalizedMessage", locale="en-US", message=message)
    return Refusal(message, details=[info, words])


def detail(kind: str, **fields: Any) -> dict[str, Any]:
    """An entry of `error.details`, of one of google.rpc's types."""
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def error_info(reason: str, metadata: dict[str, str]) -> dict[str, Any]:
    return detail("ErrorInfo", reason=reason, domain="googleapis.com", metadata=metadata)
