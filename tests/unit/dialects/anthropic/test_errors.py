"""Every kind of error in Anthropic's shape."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from dragoman.dialects import anthropic
from dragoman.errors import DragomanError, ErrorKind, InvalidRequest, UpstreamError

TABLE: dict[ErrorKind, tuple[int, str]] = {
    "invalid_request": (400, "invalid_request_error"),
    "overflow": (400, "invalid_request_error"),
    "authentication": (401, "authentication_error"),
    "permission": (403, "permission_error"),
    "not_found": (404, "not_found_error"),
    "wrong_method": (405, "invalid_request_error"),
    "conflict": (409, "invalid_request_error"),
    "too_large": (413, "request_too_large"),
    "rate_limit": (429, "rate_limit_error"),
    "quota": (429, "rate_limit_error"),
    "overloaded": (529, "overloaded_error"),
    "timeout": (504, "timeout_error"),
    "cancelled": (499, "api_error"),
    "internal": (500, "api_error"),
}


def test_every_kind_has_its_row() -> None:
    assert set(TABLE) == set(get_args(ErrorKind))


@pytest.mark.parametrize("kind", TABLE)
def test_l7_kind_to_status_and_type(kind: ErrorKind) -> None:
    reply = anthropic.encode_error(DragomanError("what happened", kind=kind))
    status, name = TABLE[kind]
    assert reply.status == status
    assert json.loads(reply.body) == {"type": "error", "error": {"type": name, "message": "what happened"}}
    assert dict(reply.headers)["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("seconds", "header"), [(None, None), (0.0, "0"), (0.2, "1"), (38.0, "38"), (1.56, "2")]
)
def test_l1_retry_after_is_passed_on_in_whole_seconds(seconds: float | None, header: str | None) -> None:
    reply = anthropic.encode_error(UpstreamError("wait", kind="rate_limit", retry_after_s=seconds))
    assert dict(reply.headers).get("retry-after") == header


def test_a_wrong_method_is_answered_with_the_right_ones() -> None:
    reply = anthropic.encode_error(DragomanError("x", kind="wrong_method", code="POST"))
    assert dict(reply.headers)["allow"] == "POST"


@pytest.mark.parametrize("kind", TABLE)
def test_l3_only_a_spent_quota_tells_the_client_to_stop(kind: ErrorKind) -> None:
    headers = dict(anthropic.encode_error(DragomanError("x", kind=kind)).headers)
    assert headers.get("x-should-retry") == ("false" if kind == "quota" else None)


def test_h4_overflow_is_said_in_the_words_that_make_claude_code_compact() -> None:
    words = "prompt is too long: 1200000 tokens > 1048576 maximum"
    assert (
        json.loads(anthropic.encode_error(UpstreamError(words, kind="overflow")).body)["error"]["message"]
        == words
    )


def test_the_place_comes_first() -> None:
    reply = anthropic.encode_error(InvalidRequest("is missing", where="messages[3].content[0].text"))
    assert json.loads(reply.body)["error"]["message"] == "messages[3].content[0].text: is missing"


@pytest.mark.parametrize("code", ["", "INVALID_ARGUMENT"])
def test_only_thread_codes_are_details(code: str) -> None:
    assert b"details" not in anthropic.encode_error(InvalidRequest("x", code=code)).body
