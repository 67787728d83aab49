"""Error responses of Google, with the texts of AI Studio and of Vertex (gemini-api.md section 6)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from dragoman.emulator.direct import Asked
from dragoman.emulator.faults.kind import FaultKind, counted, on_answer
from dragoman.emulator.refusal import Refusal, detail, invalid_key, no_key, refuse, wrong_token
from dragoman.emulator.wire import HTML_TYPE, SSE_TYPE, Answer

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


def refused_answer(refusal: Refusal, answer: Answer, asked: Asked) -> Answer:
    """Return the error response. Vertex labels it with the content type of the requested stream."""
    refused = refuse(refusal, asked.framing)
    labelled = asked.route.backend.is_vertex and asked.framing == "sse"
    content_type = SSE_TYPE if labelled else refused.content_type
    return msgspec.structs.replace(refused, content_type=content_type, before=answer.before)


def _quota(asked: Asked, *, period: str, limit: int, retry_s: float | None) -> Refusal:
    """Return a quota error; without `retry_s` it does not tell the client when to retry."""
    if asked.route.backend.is_vertex:
        return Refusal("Resource exhausted. Please try again later.", code=429)
    model = asked.route.model
    line = f"\n* Quota exceeded for metric: {_METRIC}, limit: {limit}, model: {model}"
    violation = {
        "quotaMetric": _METRIC,
        "quotaId": f"GenerateRequestsPer{period}PerProjectPerModel-FreeTier",
        "quotaDimensions": {"location": "global", "model": model},
        "quotaValue": str(limit),
    }
    links = [{"description": "Learn more about Gemini API quotas", "url": _QUOTA_PAGE}]
    details = [detail("Help", links=links), detail("QuotaFailure", violations=[violation])]
    if retry_s is None:
        return Refusal(_QUOTA_MESSAGE + line, code=429, details=details)
    details.append(detail("RetryInfo", retryDelay=f"{retry_s:g}s"))
    return Refusal(f"{_QUOTA_MESSAGE}{line}\nPlease retry in {retry_s:g}s.", code=429, details=details)


def _quota_minute(answer: Answer, asked: Asked, seconds: float) -> Answer:
    refusal = _quota(asked, period="Minute", limit=20, retry_s=seconds)
    return refused_answer(refusal, answer, asked)


def _page(answer: Answer, asked: Asked) -> Answer:
    del asked
    return Answer(status=502, content_type=HTML_TYPE, acts=(_BAD_GATEWAY_PAGE,), before=answer.before)


def _refusing(name: str, about: str, make: Callable[[Asked], Refusal]) -> FaultKind:
    return on_answer(name, about, lambda answer, asked: refused_answer(make(asked), answer, asked))


ERRORS = (
    counted(
        "quota_minute", "429, requests per minute; retry after the argument", "seconds", 20, _quota_minute
    ),
    _refusing(
        "quota_day",
        "429, requests per day: waiting does not help",
        lambda asked: _quota(asked, period="Day", limit=250, retry_s=None),
    ),
    _refusing(
        "quota_zero",
        "429 with limit: 0, a model outside the plan",
        lambda asked: _quota(asked, period="Day", limit=0, retry_s=None),
    ),
    _refusing("overloaded", "503, high demand", lambda _: Refusal(code=503)),
    _refusing("internal", "500", lambda _: Refusal(code=500)),
    _refusing("deadline", "504, Google gave up", lambda _: Refusal(code=504)),
    on_answer("unavailable_page", "502 with an HTML page, as a load balancer sends it", _page),
    _refusing("bad_key", "400 API_KEY_INVALID", lambda _: invalid_key()),
    _refusing("no_key", "403, no key at all", lambda _: no_key()),
    _refusing(
        "wrong_token", "401, credentials of the wrong kind", lambda asked: wrong_token(asked.route.method)
    ),
    _refusing(
        "location",
        "400 FAILED_PRECONDITION, a country without the service",
        lambda _: Refusal("User location is not supported for the API use.", status="FAILED_PRECONDITION"),
    ),
)
