"""When to try again, and where requests go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.errors import DragomanError, ErrorKind, UpstreamError, UpstreamIncomplete
from dragoman.upstream.endpoints import Endpoint, Method
from dragoman.upstream.retry import RetryBudget, next_step

PLENTY = RetryBudget(attempts=3, wait_s=60)


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
        (UpstreamIncomplete("x", kind="overloaded"), 1, PLENTY, 0.0),
        (UpstreamError("x", kind="overloaded"), 1, RetryBudget(attempts=1, wait_s=60), None),
        (UpstreamError("x", kind="quota"), 1, PLENTY, None),
        (UpstreamError("x", kind="invalid_request"), 1, PLENTY, None),
        (UpstreamError("x", kind="authentication"), 1, PLENTY, None),
    ],
)
def test_l1_how_long_to_wait(
    error: DragomanError, attempt: int, budget: RetryBudget, expected: float | None
) -> None:
    step = next_step(error, attempt, budget, jitter=0.0)
    assert (None if step is None else step.wait_s) == expected


@pytest.mark.parametrize(
    ("kind", "attempt", "choices", "change"),
    [
        ("rate_limit", 1, "key model", "key"),
        ("rate_limit", 1, "model", "model"),
        ("rate_limit", 1, "", ""),
        ("quota", 1, "key model", "key"),
        ("quota", 1, "model", "model"),
        ("quota", 1, "", None),
        ("authentication", 1, "key", "key"),
        ("authentication", 1, "model", None),
        ("permission", 1, "key", "key"),
        ("not_found", 1, "key model", "model"),
        ("not_found", 1, "key", None),
        ("overloaded", 1, "key model", ""),
        ("overloaded", 2, "key model", "model"),
        ("overloaded", 2, "key", ""),
        ("internal", 2, "model", "model"),
        ("timeout", 1, "model", "model"),
        ("timeout", 1, "key", None),
        ("invalid_request", 1, "key model", None),
        ("overflow", 1, "key model", None),
    ],
)
def test_l3_another_key_or_another_model_where_that_helps(
    kind: ErrorKind, attempt: int, choices: str, change: str | None
) -> None:
    error = UpstreamError("x", kind=kind)
    step = next_step(error, attempt, PLENTY, 0.0, other_key="key" in choices, other_model="model" in choices)
    assert (None if step is None else step.change) == change
    assert step is None or not step.change or step.wait_s == 0


def test_nothing_is_tried_once_the_attempts_are_spent() -> None:
    spent = RetryBudget(attempts=1, wait_s=60)
    assert (
        next_step(UpstreamError("x", kind="quota"), 3, spent, 0.0, other_key=True, other_model=True) is None
    )


KINDS: list[ErrorKind] = ["rate_limit", "overloaded", "timeout", "internal", "quota", "invalid_request"]


@given(
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=30),
    after=st.none() | st.floats(0, 100),
    jitter=st.floats(0, 1),
    other_key=st.booleans(),
    other_model=st.booleans(),
)
def test_l2_one_request_never_costs_more_than_its_budget(
    kinds: list[ErrorKind], after: float | None, jitter: float, other_key: bool, other_model: bool
) -> None:
    budget, attempts, waited = PLENTY, 1, 0.0
    for kind in kinds:
        error = UpstreamError("x", kind=kind, retry_after_s=after)
        step = next_step(error, attempts, budget, jitter, other_key=other_key, other_model=other_model)
        if step is None:
            break
        budget, attempts, waited = budget.after(step.wait_s), attempts + 1, waited + step.wait_s
    assert attempts <= 3
    assert waited <= 60


@pytest.mark.parametrize(
    ("host", "method", "url"),
    [
        (
            Endpoint(backend="gemini"),
            "streamGenerateContent",
            "https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse",
        ),
        (
            Endpoint(backend="gemini", base_url="http://127.0.0.1:9"),
            "generateContent",
            "http://127.0.0.1:9/v1beta/models/m:generateContent",
        ),
        (
            Endpoint(backend="vertex", project="p"),
            "countTokens",
            "https://aiplatform.googleapis.com/v1beta1/projects/p/locations/global/publishers/google/models/m:countTokens",
        ),
        (
            Endpoint(backend="vertex", project="p", location="europe-west4"),
            "generateContent",
            "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/locations/europe-west4"
            "/publishers/google/models/m:generateContent",
        ),
        (
            Endpoint(backend="vertex", project="p", location="eu", version="v1"),
            "generateContent",
            "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/google/models/m:generateContent",
        ),
        (
            Endpoint(backend="vertex"),
            "generateContent",
            "https://aiplatform.googleapis.com/v1beta1/publishers/google/models/m:generateContent",
        ),
    ],
)
def test_m2_addresses(host: Endpoint, method: Method, url: str) -> None:
    assert host.url("m", method) == url
