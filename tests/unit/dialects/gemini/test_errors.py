"""Google's error bodies: whose fault it is, when to come back, in which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.gemini.errors import decode_error, decode_error_body
from dragoman.errors import UpstreamError

RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
QUOTA = "type.googleapis.com/google.rpc.QuotaFailure"
INFO = "type.googleapis.com/google.rpc.ErrorInfo"


def error(
    status: int, message: str = "no", word: str = "X", details: Any = None, **headers: str
) -> UpstreamError:
    body: dict[str, Any] = {"code": status, "message": message, "status": word}
    if details is not None:
        body["details"] = details
    found = {name.replace("_", "-"): value for name, value in headers.items()}
    return decode_error(status, found, json.dumps({"error": body}).encode())


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "invalid_request"),
        (401, "authentication"),
        (403, "permission"),
        (404, "not_found"),
        (408, "timeout"),
        (409, "invalid_request"),
        (413, "too_large"),
        (429, "rate_limit"),
        (499, "cancelled"),
        (500, "internal"),
        (501, "internal"),
        (502, "overloaded"),
        (503, "overloaded"),
        (504, "timeout"),
    ],
)
def test_l7_every_status_has_its_kind_and_keeps_its_words(status: int, kind: str) -> None:
    found = error(status, "the reason", "WORD")
    assert (found.kind, found.message, found.status, found.code) == (kind, "the reason", status, "")


@pytest.mark.parametrize(
    "reason", ["API_KEY_INVALID", "ACCESS_TOKEN_TYPE_UNSUPPORTED", "API_KEY_SERVICE_BLOCKED"]
)
@pytest.mark.parametrize("status", [400, 401, 403])
def test_l7_a_bad_key_is_authentication_whatever_the_status(status: int, reason: str) -> None:
    assert error(status, details=[{"@type": INFO, "reason": reason}]).kind == "authentication"


def quota(quota_id: str, message: str = "You exceeded your current quota") -> UpstreamError:
    violation = {
        "quotaMetric": "m",
        "quotaId": quota_id,
        "quotaDimensions": {"model": "x"},
        "quotaValue": "20",
    }
    return error(
        429,
        message,
        details=[{"@type": QUOTA, "violations": [violation]}, {"@type": RETRY_INFO, "retryDelay": "38s"}],
    )


@pytest.mark.parametrize(
    ("quota_id", "kind"),
    [
        ("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "quota"),
        ("DailyRequests", "quota"),
        ("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "rate_limit"),
        ("", "rate_limit"),
    ],
)
def test_l3_daily_quota_is_told_from_the_minutes(quota_id: str, kind: str) -> None:
    found = quota(quota_id)
    assert found.kind == kind
    assert found.retryable is (kind == "rate_limit")
    assert found.retry_after_s == 38


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("* Quota exceeded for metric: m, limit: 0, model: gemini-3.1-pro", "quota"),
        ("* Quota exceeded for metric: m, limit: 0", "quota"),
        ("* Quota exceeded for metric: m, limit: 20, model: x", "rate_limit"),
        ("Your prepayment credits are depleted. Please go to AI Studio", "quota"),
        ("Resource exhausted. Please try again later.", "rate_limit"),
    ],
)
def test_l3_what_no_waiting_mends_is_not_retried(message: str, kind: str) -> None:
    assert error(429, message).kind == kind


def test_l3_words_about_limits_mean_nothing_elsewhere() -> None:
    assert error(503, "limit: 0").kind == "overloaded"


@pytest.mark.parametrize(
    ("details", "message", "seconds"),
    [
        ([{"@type": RETRY_INFO, "retryDelay": "38s"}], "", 38.0),
        ([{"@type": RETRY_INFO, "retryDelay": "0.5s"}], "Please retry in 9s.", 0.5),
        ([{"@type": RETRY_INFO, "retryDelay": "0s"}], "", 0.0),
        ([{"@type": RETRY_INFO, "retryDelay": "soon"}], "", None),
        ([{"@type": RETRY_INFO, "retryDelay": 5}], "", None),
        ([{"@type": INFO, "reason": "x"}, {"@type": RETRY_INFO, "retryDelay": "3s"}], "", 3.0),
        (None, "Please retry in 1.56s.", 1.56),
        (None, "Please retry in 900.5ms.", 0.9005),
        (None, "Please retry later.", None),
    ],
)
def test_l1_the_delay_is_in_the_body(details: Any, message: str, seconds: float | None) -> None:
    assert error(429, message, details=details).retry_after_s == seconds


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("7", 7.0), ("1.5", 1.5), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("", None), ("-1", None)],
)
def test_l1_a_header_counts_where_the_body_is_silent(header: str, seconds: float | None) -> None:
    assert error(503, retry_after=header).retry_after_s == seconds
    assert error(503, "Please retry in 2s.", retry_after=header).retry_after_s == 2
    assert error(503).retry_after_s is None


@pytest.mark.parametrize(
    "message",
    [
        "The input token count (1200293) exceeds the maximum number of tokens allowed (1048576).",
        "The input token count 1200293 exceeds the maximum number of tokens allowed 1048576.",
        "Unable to submit request because the input token count is 1200293 but model only supports up to 1048576. "
        "Reduce the input token count and try again.",
        "Unable to submit request because the input token count is 1200293 but the model only supports up to 1048576.",
    ],
)
def test_h4_overflow_is_said_in_the_words_that_make_clients_compact(message: str) -> None:
    found = error(400, message)
    assert (found.kind, found.message) == ("overflow", "prompt is too long: 1200293 tokens > 1048576 maximum")
    assert not found.retryable


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<!DOCTYPE html><title>502</title>",
        b"[]",
        b"null",
        b'"no"',
        b"{}",
        b'{"error":null}',
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"error":[]}',
    ],
)
def test_m2_a_body_that_explains_nothing_still_has_its_status(body: bytes) -> None:
    found = decode_error(502, {}, body)
    assert (found.kind, found.status) == ("overloaded", 502)
    assert found.message == "the upstream answered HTTP 502 without an explanation"
    assert decode_error(418, {}, body).kind == "invalid_request"
    assert decode_error(599, {}, body).kind == "internal"


def test_an_error_in_a_list_is_read() -> None:
    """The array form of a stream and the OpenAI endpoint wrap errors so."""
    assert (
        decode_error(404, {}, b'[{"error":{"code":404,"message":"gone","status":"NOT_FOUND"}}]').message
        == "gone"
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"details": None},
        {"details": {}},
        {"details": "x"},
        {"details": [None, 5, "x", {"reason": 5}, {"violations": None}, {"violations": [{"quotaId": 5}]}]},
        {"code": "invalid_request"},
        {"code": None},
        {"status": None},
        {"status": 5},
    ],
)
def test_l7_an_odd_field_does_not_cost_the_message(odd: dict[str, Any]) -> None:
    body = {"error": {"code": 429, "message": "the reason. Please retry in 3s.", "status": "X", **odd}}
    found = decode_error(429, {}, json.dumps(body).encode())
    assert (found.kind, found.message, found.retry_after_s) == (
        "rate_limit",
        "the reason. Please retry in 3s.",
        3,
    )


def test_l3_an_odd_detail_does_not_hide_its_neighbours() -> None:
    details = [{"reason": 5}, {"@type": QUOTA, "violations": [{"quotaId": "XPerDay"}]}, {"retryDelay": "4s"}]
    found = error(429, details=details)
    assert (found.kind, found.retry_after_s) == ("quota", 4)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"code":500,"status":"INTERNAL"}}', "INTERNAL"),
        (b'{"error":{"code":500,"message":null}}', "the upstream gave no reason"),
        (b'{"error":{"message":5}}', "the upstream gave no reason"),
        (b'{"error":{}}', "the upstream gave no reason"),
    ],
)
def test_an_error_without_words_gets_some(body: bytes, message: str) -> None:
    assert decode_error_body(500, body).message == message


@pytest.mark.parametrize(
    ("body", "status", "kind"),
    [
        (b'{"error":{"code":503,"message":"m"}}', 503, "overloaded"),
        (b'{"error":{"code":429,"message":"m"}}', 429, "rate_limit"),
        (b'{"error":{"message":"m"}}', 500, "internal"),
        (b'{"error":{"code":"rate_limit","message":"m"}}', 500, "internal"),
    ],
)
def test_e7_inside_a_stream_the_body_says_the_status(body: bytes, status: int, kind: str) -> None:
    found = decode_error_body(0, body)
    assert (found.status, found.kind, found.message) == (status, kind, "m")


def test_l7_the_status_line_wins_over_the_body() -> None:
    assert decode_error(503, {}, b'{"error":{"code":400,"message":"m"}}').kind == "overloaded"


def test_a_delay_without_end_is_no_delay() -> None:
    endless = "9" * 400
    assert error(429, details=[{"retryDelay": f"{endless}s"}]).retry_after_s is None
    assert error(429, f"retry in {endless}s").retry_after_s is None
    assert error(429, retry_after=endless).retry_after_s is None


@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (400, "Corrupted thought signature.", "signature"),
        (400, "Function call is missing a thought_signature in functionCall parts.", "signature"),
        (400, "Thinking level MINIMAL is not supported for this model.", "thinking"),
        (
            400,
            "The thinking budget 64000 is invalid. Please choose a value between 128 and 32768.",
            "thinking",
        ),
        (400, "Unknown name \"parametersJsonSchema\" at 'tools[0].function_declarations[0]'", "schema_form"),
        (400, "tools[0].function_declarations[3].parameters_json_schema: bad", "schema_form"),
        (
            400,
            "The specified schema produces a constraint that has too many states for serving.",
            "states",
        ),
        (400, "Please ensure that function call turn comes immediately after a user turn.", "pairing"),
        (
            400,
            "the number of function response parts is equal to the number of function call parts",
            "pairing",
        ),
        (400, "Request contains an invalid argument.", "opaque"),
        (400, "Unknown name \"x\" at 'generation_config': Cannot find field.", "field"),
        (400, 'Unknown name "safetySettings": Cannot find field.', "field"),
        (400, "Unknown name \"schema\" at 'contents[0]': Cannot find field.", ""),
        (503, "thought signature service is busy", ""),
    ],
)
def test_l8_complaints_that_another_form_may_cure_are_told_apart(
    status: int, message: str, code: str
) -> None:
    body = json.dumps({"error": {"code": status, "message": message}}).encode()
    assert decode_error(status, {}, body).code == code


@pytest.mark.parametrize(
    ("message", "place"),
    [
        (
            "Unknown name \"x\" at 'generation_config.thinking_config': Cannot find field.",
            "generation_config.thinking_config.x",
        ),
        ('Invalid JSON payload received. Unknown name "labels": Cannot find field.', "labels"),
        ("Unknown name \"x\" at 'contents[0]': Cannot find field.", ""),
    ],
)
def test_a_field_a_back_end_does_not_know_is_named(message: str, place: str) -> None:
    body = json.dumps({"error": {"code": 400, "message": message}}).encode()
    assert decode_error(400, {}, body).place == place
