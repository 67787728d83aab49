"""When to try again, and where requests go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError, ErrorKind, UpstreamCut, UpstreamError
from dragoman.upstream.hosts import Host, Method
from dragoman.upstream.retry import Budget, wait_before_retry

PLENTY = Budget(attempts=3, wait_s=60)


@pytest.mark.parametrize(
    ("error", "attempt", "budget", "expected"),
    [
        (UpstreamError("x", kind="overloaded"), 1, PLENTY, 0.5),
        (UpstreamError("x", kind="overloaded"), 2, PLENTY, 1.0),
        (UpstreamError("x", kind="internal", retry_after_s=39), 1, PLENTY, 39),
        (UpstreamError("x", kind="rate_limit", retry_after_s=38), 1, PLENTY, 38),
        (UpstreamError("x", kind="rate_limit", retry_after_s=0.002), 1, PLENTY, 1.0),
        (UpstreamError("x", kind="rate_limit"), 2, PLENTY, 2.0),
        (UpstreamError("x", kind="rate_limit", retry_after_s=61), 1, PLENTY, None),
        (UpstreamCut("x", kind="overloaded"), 1, PLENTY, 0.0),
        (UpstreamError("x", kind="overloaded"), 1, Budget(attempts=1, wait_s=60), None),
        (UpstreamError("x", kind="quota"), 1, PLENTY, None),
        (UpstreamError("x", kind="invalid_request"), 1, PLENTY, None),
        (UpstreamError("x", kind="authentication"), 1, PLENTY, None),
    ],
)
def test_l1_how_long_to_wait(
    error: DragomanError, attempt: int, budget: Budget, expected: float | None
) -> None:
    assert wait_before_retry(error, attempt, budget, jitter=0.0) == expected


KINDS: list[ErrorKind] = ["rate_limit", "overloaded", "timeout", "internal", "quota", "invalid_request"]


@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=30),
    after=st.none() | st.floats(0, 100),
    jitter=st.floats(0, 1),
)
def test_l2_one_request_never_costs_more_than_its_budget(
    kinds: list[ErrorKind], after: float | None, jitter: float
) -> None:
    budget, attempts, waited = PLENTY, 1, 0.0
    for kind in kinds:
        wait = wait_before_retry(UpstreamError("x", kind=kind, retry_after_s=after), attempts, budget, jitter)
        if wait is None:
            break
        budget, attempts, waited = budget.after(wait), attempts + 1, waited + wait
    assert attempts <= 3
    assert waited <= 60


@pytest.mark.parametrize(
    ("host", "method", "url"),
    [
        (
            Host(backend="gemini"),
            "streamGenerateContent",
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (
            Host(backend="gemini", base_url="http://127.0.0.1:9"),
            "generateContent",
            "http://127.0.0.1:9/v1beta/models/m:generateContent",
        ),
        (
            Host(backend="vertex", project="p"),
            "countTokens",
            "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/publishers/google/models/m:countTokens",
        ),
        (
            Host(backend="vertex", project="p", location="europe-west4"),
            "generateContent",
            "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west4"
            "/publishers/google/models/m:generateContent",
        ),
        (
            Host(backend="vertex", project="p", location="eu", version="v1"),
            "generateContent",
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google/models/m:generateContent",
        ),
        (
            Host(backend="vertex"),
            "generateContent",
            "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/m:generateContent",
        ),
    ],
)
def test_m2_addresses(host: Host, method: Method, url: str) -> None:
    assert host.url("m", method) == url
