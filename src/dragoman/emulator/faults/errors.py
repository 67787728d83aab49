"""Error responses of Google, with the texts of AI Studio and of Vertex.

See https://ai.google.dev/gemini-api/docs/troubleshooting.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.emulator.director import ApiRequest
from dragoman.emulator.errors import (
    ApiError,
    encode_error,
    error_detail,
    invalid_key_error,
    missing_key_error,
    unsupported_token_error,
)
from dragoman.emulator.faults.kind import FaultKind, numeric_fault, response_fault
from dragoman.emulator.http_messages import HTML_TYPE, SSE_TYPE, HttpResponse

_METRIC = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
_QUOTA_PAGE = "https://ai.google.dev/gemini-api/docs/rate-limits"
_QUOTA_MESSAGE = (
    "You exceeded your current quota, please check your plan and billing details. For more information on "
    f"this error, head to: {_QUOTA_PAGE}. "
)
_BAD_GATEWAY_PAGE = (
    b"<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  <title>Error 502 (Server Error)!!1</title>\n"
    b"  <p><b>502.</b> <ins>That\xe2\x80\x99s an error.</ins>\n"
    b"  <p>The server encountered a temporary error and could not complete your request.\n"
    b"  <p>Please try again in 30 seconds.  <ins>That\xe2\x80\x99s all we know.</ins>\n"
)


def error_response(refusal: ApiError, answer: HttpResponse, asked: ApiRequest) -> HttpResponse:
    """Return the error response. Vertex labels it with the content type of the requested stream."""
    refused = encode_error(refusal, asked.framing)
    labelled = asked.route.backend.is_vertex and asked.framing == "sse"
    content_type = SSE_TYPE if labelled else refused.content_type
    return msgspec.structs.replace(
        refused, content_type=content_type, actions_before_head=answer.actions_before_head
    )


def _quota_error(asked: ApiRequest, *, period: str, limit: int, retry_s: float | None) -> ApiError:
    """Return a quota error; without `retry_s` it does not tell the client when to retry."""
    if asked.route.backend.is_vertex:
        return ApiError("Resource exhausted. Please try again later.", code=429)
    model = asked.route.model
    line = f"\n* Quota exceeded for metric: {_METRIC}, limit: {limit}, model: {model}"
    violation = {
        "quotaMetric": _METRIC,
        "quotaId": f"GenerateRequestsPer{period}PerProjectPerModel-FreeTier",
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": str(limit),
    }
    links = [{"description": "Learn more about Gemini API quotas", "url": _QUOTA_PAGE}]
    details = [error_detail("Help", links=links), error_detail("QuotaFailure", violations=[violation])]
    if retry_s is None:
        return ApiError(_QUOTA_MESSAGE + line, code=429, details=details)
    details.append(error_detail("RetryInfo", retryDelay=f"{retry_s:g}s"))
    return ApiError(f"{_QUOTA_MESSAGE}{line}\nPlease retry in {retry_s:g}s.", code=429, details=details)


def _quota_minute(answer: HttpResponse, asked: ApiRequest, seconds: float) -> HttpResponse:
    refusal = _quota_error(asked, period="Minute", limit=20, retry_s=seconds)
    return error_response(refusal, answer, asked)


def _bad_gateway(answer: HttpResponse, asked: ApiRequest) -> HttpResponse:
    del asked
    return HttpResponse(
        status=502,
        content_type=HTML_TYPE,
        actions=(_BAD_GATEWAY_PAGE,),
        actions_before_head=answer.actions_before_head,
    )


def _error_fault(name: str, about: str, make: Callable[[ApiRequest], ApiError]) -> FaultKind:
    return response_fault(name, about, lambda answer, asked: error_response(make(asked), answer, asked))


ERROR_FAULTS = (
    numeric_fault(
        "quota_minute", "429, requests per minute; retry after the argument", "seconds", 20, _quota_minute
    ),
    _error_fault(
        "quota_day",
        "429, requests per day: waiting does not help",
        lambda asked: _quota_error(asked, period="Day", limit=250, retry_s=None),
    ),
    _error_fault(
        "quota_zero",
        "429 with limit: 0, a model outside the plan",
        lambda asked: _quota_error(asked, period="Day", limit=0, retry_s=None),
    ),
    _error_fault("overloaded", "503, high demand", lambda _: ApiError(code=503)),
    _error_fault("internal", "500", lambda _: ApiError(code=500)),
    _error_fault("deadline", "504, Google gave up", lambda _: ApiError(code=504)),
    response_fault("unavailable_page", "502 with an HTML page, as a load balancer sends it", _bad_gateway),
    _error_fault("bad_key", "400 API_KEY_INVALID", lambda _: invalid_key_error()),
    _error_fault("no_key", "403, no key at all", lambda _: missing_key_error()),
    _error_fault(
        "wrong_token",
        "401, credentials of the wrong kind",
        lambda asked: unsupported_token_error(asked.route.method),
    ),
    _error_fault(
        "location",
        "400 FAILED_PRECONDITION, a country without the service",
        lambda _: ApiError("User location is not supported for the API use.", status="FAILED_PRECONDITION"),
    ),
)
