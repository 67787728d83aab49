"""Errors in OpenAI's shape."""

from __future__ import annotations

import json
import re
from typing import get_args

import pytest

from dragoman.dialects import openai_responses
from dragoman.dialects.openai_responses.errors import stream_error
from dragoman.errors import DragomanError, ErrorKind, InvalidRequest

#: kind -> HTTP status, code in the body, code inside a stream
TABLE: dict[ErrorKind, tuple[int, str | None, str]] = {
    "invalid_request": (400, None, "invalid_prompt"),
    "overflow": (400, "context_length_exceeded", "context_length_exceeded"),
    "authentication": (401, "invalid_api_key", "invalid_prompt"),
    "permission": (403, "permission_denied", "invalid_prompt"),
    "not_found": (404, "not_found", "invalid_prompt"),
    "wrong_method": (405, None, "invalid_prompt"),
    "conflict": (409, "conversation_locked", "server_error"),
    "too_large": (413, None, "invalid_prompt"),
    "rate_limit": (429, "rate_limit_exceeded", "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota", "insufficient_quota"),
    "overloaded": (503, "server_error", "server_error"),
    "timeout": (504, "server_error", "server_error"),
    "cancelled": (499, "server_error", "server_error"),
    "internal": (500, "server_error", "server_error"),
}

#: How Codex finds the delay in the message of `response.failed`.
CODEX_DELAY = re.compile(r"(?i)try again in\s*(\d+(?:\.\d+)?)\s*(s|ms|seconds?)")


def test_every_kind_is_known() -> None:
    assert set(TABLE) == set(get_args(ErrorKind))


@pytest.mark.parametrize("kind", TABLE)
def test_l7_every_error_has_its_status_and_code(kind: ErrorKind) -> None:
    status, code, in_stream = TABLE[kind]
    error = DragomanError("what happened", kind=kind)
    reply = openai_responses.encode_error(error)
    inner = json.loads(reply.body)["error"]
    assert (reply.status, inner["code"], inner["message"], inner["param"]) == (
        status,
        code,
        "what happened",
        None,
    )
    assert set(inner) == {"message", "type", "param", "code"}
    assert stream_error(error) == {"code": in_stream, "message": "what happened"}


def test_the_place_is_a_parameter() -> None:
    reply = openai_responses.encode_error(InvalidRequest("no", where="input[3]"))
    inner = json.loads(reply.body)["error"]
    assert (inner["param"], inner["message"]) == ("input[3]", "input[3]: no")


def test_headers_say_when_to_try_again_and_what_is_allowed() -> None:
    def headers(error: DragomanError) -> dict[str, str]:
        return dict(openai_responses.encode_error(error).headers)

    assert headers(DragomanError("x", kind="rate_limit", retry_after_s=1.2))["retry-after"] == "2"
    assert headers(DragomanError("x", kind="wrong_method", code="GET, POST"))["allow"] == "GET, POST"
    assert headers(DragomanError("x", kind="quota"))["x-should-retry"] == "false"
    assert headers(DragomanError("x")) == {"content-type": "application/json"}


@pytest.mark.parametrize(("seconds", "told"), [(1.5, 1.5), (20.0, 20.0), (0.25, 0.25), (3600.0, 3600.0)])
def test_g5_codex_reads_how_long_to_wait(seconds: float, told: float) -> None:
    error = DragomanError("Resource exhausted.", kind="rate_limit", retry_after_s=seconds)
    found = CODEX_DELAY.search(stream_error(error)["message"])
    assert found is not None
    assert (float(found[1]), found[2]) == (told, "s")


def test_g5_only_a_rate_limit_is_worth_waiting_for() -> None:
    for kind in TABLE:
        words = stream_error(DragomanError("x", kind=kind, retry_after_s=2))["message"]
        assert bool(CODEX_DELAY.search(words)) is (kind == "rate_limit")
    assert stream_error(DragomanError("x", kind="rate_limit"))["message"] == "x"


def test_g5_a_status_429_is_never_what_a_streaming_client_sees() -> None:
    with_429 = {kind for kind, (status, _, _) in TABLE.items() if status == 429}
    assert with_429 <= openai_responses.fails_in_stream
    assert "overflow" in openai_responses.fails_in_stream
