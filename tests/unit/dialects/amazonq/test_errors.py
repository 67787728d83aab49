"""Errors before the stream and inside it, as the clients know them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.amazonq.errors import stream_error
from dragoman.errors import DragomanError, InvalidRequest, NotAllowed, UpstreamError, UpstreamIncomplete

CASES: list[tuple[DragomanError, int, str, str | None]] = [
    (InvalidRequest("no"), 400, "ValidationException", "REQUEST_BODY_INVALID"),
    (InvalidRequest("no", code="tool_schema"), 400, "ValidationException", "TOOL_SCHEMA_INVALID"),
    (InvalidRequest("no", code="image_format"), 400, "ValidationException", "IMAGE_FORMAT_UNSUPPORTED"),
    (InvalidRequest("no", code="file_type"), 400, "ValidationException", "DISALLOWED_FILE_TYPE"),
    (InvalidRequest("no", where="model"), 400, "ValidationException", "INVALID_MODEL_ID"),
    (UpstreamError("no", kind="not_found", status=404), 400, "ValidationException", "INVALID_MODEL_ID"),
    (
        UpstreamError("no", kind="invalid_request", status=400, code="schema_form"),
        400,
        "ValidationException",
        "TOOL_SCHEMA_INVALID",
    ),
    (
        UpstreamError("no", kind="invalid_request", status=400, code="signature"),
        400,
        "ValidationException",
        "THINKING_SIGNATURE_INVALID",
    ),
    (
        UpstreamError("no", kind="invalid_request", status=400, code="states"),
        400,
        "ValidationException",
        "TOOL_SCHEMA_INVALID",
    ),
    (
        UpstreamError("no", kind="invalid_request", status=400, code="pairing"),
        400,
        "ValidationException",
        "TOOL_USE_RESULT_MISMATCH",
    ),
    (
        UpstreamError("no", kind="invalid_request", status=400, code="thinking"),
        400,
        "ValidationException",
        "REQUEST_BODY_INVALID",
    ),
    (NotAllowed("no"), 403, "AccessDeniedException", None),
    (NotAllowed("no", kind="permission"), 403, "AccessDeniedException", None),
    (UpstreamError("no", kind="authentication", status=401), 403, "AccessDeniedException", None),
    (DragomanError("no", kind="not_found"), 404, "UnknownOperationException", None),
    (DragomanError("no", kind="wrong_method", code="GET"), 405, "UnknownOperationException", None),
    (DragomanError("no", kind="conflict"), 409, "ConflictException", None),
    (UpstreamError("no", kind="rate_limit", status=429), 429, "ThrottlingException", None),
    (
        UpstreamError("no", kind="overloaded", status=503),
        429,
        "ThrottlingException",
        "INSUFFICIENT_MODEL_CAPACITY",
    ),
    (
        UpstreamError("no", kind="internal", status=500),
        429,
        "ThrottlingException",
        "INSUFFICIENT_MODEL_CAPACITY",
    ),
    (
        UpstreamError("no", kind="quota", status=429),
        402,
        "ServiceQuotaExceededException",
        "MONTHLY_REQUEST_COUNT",
    ),
    (
        UpstreamError("left alone", kind="overloaded", code="breaker"),
        429,
        "ThrottlingException",
        "INSUFFICIENT_MODEL_CAPACITY",
    ),
    (UpstreamError("cannot be reached", kind="overloaded"), 503, "ServiceUnavailableException", None),
    (UpstreamIncomplete("broke", kind="overloaded"), 503, "ServiceUnavailableException", None),
    (DragomanError("shutting down", kind="overloaded"), 503, "ServiceUnavailableException", None),
    (UpstreamError("no", kind="timeout", status=504), 503, "ServiceUnavailableException", None),
    (UpstreamError("no", kind="cancelled", status=499), 500, "InternalServerException", None),
    (DragomanError("no"), 500, "InternalServerException", None),
]


@pytest.mark.parametrize(("error", "status", "kind", "reason"), CASES)
def test_the_table_of_errors(error: DragomanError, status: int, kind: str, reason: str | None) -> None:
    reply = AmazonQ().encode_error(error)
    expected: dict[str, Any] = {"__type": kind, "message": str(error)}
    if reason is not None:
        expected["reason"] = reason
    assert (reply.status, json.loads(reply.body)) == (status, expected)
    headers = dict(reply.headers)
    assert (headers["x-amzn-errortype"], headers["content-type"]) == (kind, "application/json")


@pytest.mark.parametrize("kind", ["overflow", "too_large"])
def test_overflow_is_said_byte_for_byte_so_that_the_client_compacts(kind: Any) -> None:
    error = UpstreamError("prompt is too long: 9 tokens > 8 maximum", kind=kind, status=400)
    reply = AmazonQ().encode_error(error)
    assert reply.status == 400
    assert reply.body == (
        b'{"__type":"ValidationException","message":"Input is too long.",'
        b'"reason":"CONTENT_LENGTH_EXCEEDS_THRESHOLD"}'
    )


def test_kiro_is_told_how_long_to_wait() -> None:
    reply = AmazonQ().encode_error(UpstreamError("no", kind="rate_limit", status=429, retry_after_s=7.2))
    assert dict(reply.headers)["retry-after"] == "8"


def test_the_place_of_a_mistake_is_told() -> None:
    reply = AmazonQ().encode_error(InvalidRequest("is odd", where="conversationState.history[3]"))
    assert json.loads(reply.body)["message"] == "conversationState.history[3]: is odd"


@pytest.mark.parametrize(
    ("error", "name", "kind", "reason"),
    [
        (UpstreamError("no", kind="rate_limit"), "throttlingError", "ThrottlingException", None),
        (
            UpstreamError("no", kind="overloaded", status=503),
            "throttlingError",
            "ThrottlingException",
            "INSUFFICIENT_MODEL_CAPACITY",
        ),
        (InvalidRequest("no"), "validationError", "ValidationException", "REQUEST_BODY_INVALID"),
        (
            UpstreamIncomplete("no", kind="overloaded"),
            "serviceUnavailableError",
            "ServiceUnavailableException",
            None,
        ),
        (
            UpstreamError("no", kind="timeout"),
            "serviceUnavailableError",
            "ServiceUnavailableException",
            None,
        ),
        (DragomanError("no"), "error", "InternalServerException", None),
        (UpstreamError("no", kind="quota"), "error", "InternalServerException", None),
    ],
)
def test_only_kiro_knows_names_for_failures_inside_a_stream(
    error: DragomanError, name: str, kind: str, reason: str | None
) -> None:
    found, payload = stream_error(error, kiro=True)
    expected = {"__type": kind, "message": "no", **({"reason": reason} if reason else {})}
    assert (found, json.loads(payload)) == (name, expected)
    found, payload = stream_error(error, kiro=False)
    assert (found, json.loads(payload)) == ("error", {"__type": "InternalServerException", "message": "no"})
