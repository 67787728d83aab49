"""Errors as OpenAI's clients expect them."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from dragoman.dialects import openai_chat
from dragoman.errors import DragomanError, ErrorKind, InvalidRequest, UpstreamError

TABLE: dict[ErrorKind, tuple[int, str, str | None]] = {
    "invalid_request": (400, "invalid_request_error", None),
    "overflow": (400, "invalid_request_error", "context_length_exceeded"),
    "authentication": (401, "invalid_request_error", "invalid_api_key"),
    "permission": (403, "invalid_request_error", "permission_denied"),
    "not_found": (404, "invalid_request_error", None),
    "wrong_method": (405, "invalid_request_error", "method_not_allowed"),
    "conflict": (409, "invalid_request_error", "conflict"),
    "too_large": (413, "invalid_request_error", "request_too_large"),
    "rate_limit": (429, "rate_limit_error", "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota", "insufficient_quota"),
    "overloaded": (503, "server_error", "overloaded"),
    "timeout": (504, "server_error", "timeout"),
    "cancelled": (499, "server_error", "cancelled"),
    "internal": (500, "server_error", None),
}


@pytest.mark.parametrize("kind", TABLE)
def test_l7_every_kind_has_its_status(kind: ErrorKind) -> None:
    status, word, code = TABLE[kind]
    reply = openai_chat.encode_error(DragomanError("what happened", kind=kind))
    assert reply.status == status
    assert json.loads(reply.body) == {
        "error": {"message": "what happened", "type": word, "param": None, "code": code}
    }


def test_no_kind_is_forgotten() -> None:
    assert set(TABLE) == set(get_args(ErrorKind))


def test_the_place_is_the_param() -> None:
    reply = openai_chat.encode_error(InvalidRequest("odd", where="messages[2].content[0]"))
    error = json.loads(reply.body)["error"]
    assert error["param"] == "messages[2].content[0]"
    assert error["message"] == "messages[2].content[0]: odd"


def test_a_model_google_does_not_know() -> None:
    reply = openai_chat.encode_error(UpstreamError("no such model", kind="not_found"))
    assert json.loads(reply.body)["error"]["code"] == "model_not_found"


def test_l1_the_wait_is_told_in_whole_seconds() -> None:
    reply = openai_chat.encode_error(DragomanError("slow", kind="rate_limit", retry_after_s=6.2))
    assert dict(reply.headers)["retry-after"] == "7"
    assert "x-should-retry" not in dict(reply.headers)


def test_l3_a_spent_quota_is_not_tried_again() -> None:
    reply = openai_chat.encode_error(DragomanError("gone", kind="quota"))
    assert dict(reply.headers)["x-should-retry"] == "false"


def test_the_allowed_methods_are_named() -> None:
    reply = openai_chat.encode_error(DragomanError("no", kind="wrong_method", code="POST"))
    assert dict(reply.headers)["allow"] == "POST"
    assert "allow" not in dict(openai_chat.encode_error(DragomanError("no")).headers)
