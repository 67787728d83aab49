"""Errors: the status, the name in the header that every SDK of Amazon's looks for, and the frames of a stream."""

from __future__ import annotations

import json
from typing import get_args

import pytest

from dragoman.dialects import CLIENTS
from dragoman.dialects.bedrock import ConverseClient, InvokeClient
from dragoman.dialects.bedrock.errors import encode_stream_error
from dragoman.errors import DragomanError, ErrorKind, InvalidRequest, UpstreamError
from tests.unit.dialects.bedrock.grammar import frames_of

CLIENT = ConverseClient()
TABLE: dict[ErrorKind, tuple[int, str, str]] = {
    "invalid_request": (400, "ValidationException", "validationException"),
    "overflow": (400, "ValidationException", "validationException"),
    "authentication": (403, "AccessDeniedException", "validationException"),
    "permission": (403, "AccessDeniedException", "validationException"),
    "not_found": (404, "ResourceNotFoundException", "validationException"),
    "wrong_method": (405, "ValidationException", "validationException"),
    "conflict": (409, "ConflictException", "validationException"),
    "too_large": (413, "ValidationException", "validationException"),
    "rate_limit": (429, "ThrottlingException", "throttlingException"),
    "quota": (400, "ServiceQuotaExceededException", "throttlingException"),
    "overloaded": (503, "ServiceUnavailableException", "serviceUnavailableException"),
    "timeout": (408, "ModelTimeoutException", "modelStreamErrorException"),
    "cancelled": (424, "ModelErrorException", "modelStreamErrorException"),
    "internal": (500, "InternalServerException", "internalServerException"),
}


@pytest.mark.parametrize("kind", TABLE)
def test_l7_every_kind_has_its_status_and_its_name(kind: ErrorKind) -> None:
    status, name, in_stream = TABLE[kind]
    error = DragomanError("what happened", kind=kind)
    reply = CLIENT.encode_error(error)
    assert (reply.status, dict(reply.headers)["x-amzn-errortype"]) == (status, name)
    assert dict(reply.headers)["content-type"] == "application/json"
    assert json.loads(reply.body) == {"message": "what happened"}
    (frame,) = frames_of(encode_stream_error(error))
    assert frame.headers == {
        ":message-type": "exception",
        ":exception-type": in_stream,
        ":content-type": "application/json",
    }
    assert json.loads(frame.payload) == {"message": "what happened"}


def test_no_kind_is_forgotten() -> None:
    assert set(TABLE) == set(get_args(ErrorKind))


def test_n7_the_place_is_named() -> None:
    reply = CLIENT.encode_error(InvalidRequest("odd", where="messages[2].content[0]"))
    assert json.loads(reply.body) == {"message": "messages[2].content[0]: odd"}


def test_l1_the_wait_is_told_in_whole_seconds() -> None:
    reply = CLIENT.encode_error(DragomanError("slow", kind="rate_limit", retry_after_s=6.2))
    assert dict(reply.headers)["retry-after"] == "7"


@pytest.mark.parametrize("kind", ["timeout", "cancelled"])
def test_what_google_said_is_told_where_there_is_a_place_for_it(kind: ErrorKind) -> None:
    error = UpstreamError("gone", kind=kind, status=499)
    (frame,) = frames_of(encode_stream_error(error))
    assert json.loads(frame.payload) == {"message": "gone", "originalStatusCode": 499}
    told = json.loads(CLIENT.encode_error(error).body)
    assert ("originalStatusCode" in told) == (kind == "cancelled")


@pytest.mark.parametrize("kind", TABLE)
def test_an_error_of_invoke_is_amazons_with_the_inner_one_beside_it(kind: ErrorKind) -> None:
    error = DragomanError("what happened", kind=kind, code="thread_x")
    reply = InvokeClient(CLIENTS["anthropic"], "m", stream=True).encode_error(error)
    assert (reply.status, dict(reply.headers)["x-amzn-errortype"]) == TABLE[kind][:2]
    told = json.loads(reply.body)
    assert told["message"] == told["error"]["message"] == "what happened"
    assert (told["type"], told["error"]["details"]) == ("error", {"error_code": "thread_x"})
