"""Google's errors: one exception that carries everything the wire needs, and the answer it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.emulator.wire import Answer, Framing

CATCH_ALL = "Request contains an invalid argument."
#: Google's word for a code, and the message that usually comes with it.
_USUAL = {
    400: ("INVALID_ARGUMENT", CATCH_ALL),
    401: (
        "UNAUTHENTICATED",
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other "
        "valid authentication credential. See "
        "https://developers.google.com/identity/sign-in/web/devconsole-project.",
    ),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    409: ("ALREADY_EXISTS", "Requested entity already exists"),
    429: (
        "RESOURCE_EXHAUSTED",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    499: ("CANCELLED", "The operation was cancelled."),
    500: ("INTERNAL", "Internal error encountered."),
    501: ("UNIMPLEMENTED", "Operation is not implemented, or supported, or enabled."),
    503: (
        "UNAVAILABLE",
        "This model is currently experiencing high demand. Spikes in demand are usually temporary. "
        "Please try again later.",
    ),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
}
_UNUSUAL = ("UNKNOWN", "Unknown error.")
_SERVICE = "generativelanguage.googleapis.com"

NOT_FOUND_PAGE = (
    b"<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  <title>Error 404 (Not Found)!!1</title>\n"
    b"  <p><b>404.</b> <ins>That\xe2\x80\x99s an error.</ins>\n"
    b"  <p>The requested URL was not found on this server.  <ins>That\xe2\x80\x99s all we know.</ins>\n"
)


class Refusal(Exception):
    """The service says no: HTTP code, Google's status word, message and details; what is left out is usual."""

    def __init__(
        self, message: str = "", *, code: int = 400, status: str = "", details: Sequence[dict[str, Any]] = ()
    ) -> None:
        usual_status, usual_message = _USUAL.get(code, _UNUSUAL)
        self.message = message or usual_message
        super().__init__(self.message)
        self.code = code
        self.status = status or usual_status
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
    return Refusal(details=[detail("DebugInfo", detail=f"emulator: {reason}")])


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
    info = _error_info("API_KEY_INVALID", {"service": _SERVICE})
    words = detail("LocalizedMessage", locale="en-US", message=message)
    return Refusal(message, details=[info, words])


def no_key() -> Refusal:
    return Refusal(
        "Method doesn't allow unregistered callers (callers without established identity). Please use API "
        "Key or other form of API consumer identity to call this API.",
        code=403,
    )


def wrong_token(method: str) -> Refusal:
    """Credentials of a kind that this method does not take."""
    called = f"google.ai.generativelanguage.v1beta.GenerativeService.{method}"
    info = _error_info("ACCESS_TOKEN_TYPE_UNSUPPORTED", {"service": _SERVICE, "method": called})
    return Refusal(code=401, details=[info])


def refuse(refusal: Refusal, framing: Framing) -> Answer:
    """A stream that never began answers with a plain object, or an array where one was asked for."""
    body: Any = [refusal.body()] if framing == "array" else refusal.body()
    pretty = msgspec.json.format(msgspec.json.encode(body), indent=2)
    return Answer(status=refusal.code, acts=(pretty + b"\n",))


def detail(kind: str, **fields: Any) -> dict[str, Any]:
    """An entry of `error.details`, of one of google.rpc's types."""
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def _error_info(reason: str, metadata: dict[str, str]) -> dict[str, Any]:
    return detail("ErrorInfo", reason=reason, domain="googleapis.com", metadata=metadata)
