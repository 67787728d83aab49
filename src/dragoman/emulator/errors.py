"""Google's error responses: one exception with all fields of the error, and its encoding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.emulator.http_messages import Framing, HttpResponse

CATCH_ALL = "Request contains an invalid argument."
#: HTTP code to Google's status and to the message that usually comes with it.
_DEFAULTS = {
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
_UNKNOWN = ("UNKNOWN", "Unknown error.")
_SERVICE = "generativelanguage.googleapis.com"

NOT_FOUND_PAGE = (
    b"<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  <title>Error 404 (Not Found)!!1</title>\n"
    b"  <p><b>404.</b> <ins>That\xe2\x80\x99s an error.</ins>\n"
    b"  <p>The requested URL was not found on this server.  <ins>That\xe2\x80\x99s all we know.</ins>\n"
)


class ApiError(Exception):
    """An error response of the service, raised where the error is found.

    `message` and `status` default to Google's usual values for the HTTP `code`.
    """

    def __init__(
        self, message: str = "", *, code: int = 400, status: str = "", details: Sequence[dict[str, Any]] = ()
    ) -> None:
        default_status, default_message = _DEFAULTS.get(code, _UNKNOWN)
        self.message = message or default_message
        super().__init__(self.message)
        self.code = code
        self.status = status or default_status
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


def catch_all_error(reason: str) -> ApiError:
    """Return Google's catch-all error, with the reason in a `google.rpc.DebugInfo` detail.

    Google does not give the reason. The emulator does, because it helps to debug the client.
    """
    return ApiError(details=[error_detail("DebugInfo", detail=f"emulator: {reason}")])


def field_violations_error(violations: Sequence[tuple[str, str]]) -> ApiError:
    """Return the error of the parse stage, which lists all violations as (path, line)."""
    fields = [
        {"field": path, "description": line} if path else {"description": line} for path, line in violations
    ]
    return ApiError(
        "\n".join(line for _, line in violations),
        details=[error_detail("BadRequest", fieldViolations=fields)],
    )


def field_rules_error(lines: Sequence[str], root: str = "GenerateContentRequest") -> ApiError:
    """Return the error of the field stage: one `* GenerateContentRequest.path: …` line per problem."""
    return ApiError("".join(f"* {root}.{line}\n" for line in lines))


def invalid_key_error() -> ApiError:
    message = "API key not valid. Please pass a valid API key."
    info = _error_info("API_KEY_INVALID", {"service": _SERVICE})
    words = error_detail("LocalizedMessage", locale="en-US", message=message)
    return ApiError(message, details=[info, words])


def missing_key_error() -> ApiError:
    return ApiError(
        "Method doesn't allow unregistered callers (callers without established identity). Please use API "
        "Key or other form of API consumer identity to call this API.",
        code=403,
    )


def unsupported_token_error(method: str) -> ApiError:
    """Return the error for credentials of a type that this method does not accept."""
    called = f"google.ai.generativelanguage.v1beta.GenerativeService.{method}"
    info = _error_info("ACCESS_TOKEN_TYPE_UNSUPPORTED", {"service": _SERVICE, "method": called})
    return ApiError(code=401, details=[info])


def encode_error(refusal: ApiError, framing: Framing) -> HttpResponse:
    """Encode an error as a response.

    Google sends an error before the first chunk of a stream as a plain JSON object, and as an array only when
    the stream would have been an array.
    """
    body: Any = [refusal.body()] if framing == "array" else refusal.body()
    pretty = msgspec.json.format(msgspec.json.encode(body), indent=2)
    return HttpResponse(status=refusal.code, actions=(pretty + b"\n",))


def error_detail(kind: str, **fields: Any) -> dict[str, Any]:
    """Return an entry of `error.details` with a type from `google.rpc`."""
    return {"@type": f"type.googleapis.com/google.rpc.{kind}", **fields}


def _error_info(reason: str, metadata: dict[str, str]) -> dict[str, Any]:
    return error_detail("ErrorInfo", reason=reason, domain="googleapis.com", metadata=metadata)
