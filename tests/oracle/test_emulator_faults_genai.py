"""Google's own SDK meets every fault: it sees the error, or the ending, that Google's would be."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types

from dragoman.emulator.faults import FAULT_HEADER, FAULTS, FaultDirector
from dragoman.emulator.faults.kinds import FINISHES
from dragoman.emulator.http_server import serve_in_thread
from dragoman.emulator.service import EmulatorService

MODEL = "gemini-3.8-flash"
WORDS = ("word " * 40).strip()

#: The SDK's class and code; a whole answer and a stream fail alike.
API_ERRORS: dict[str, tuple[type[errors.APIError], int, str]] = {
    "quota_minute=3": (errors.ClientError, 429, "RESOURCE_EXHAUSTED"),
    "quota_day": (errors.ClientError, 429, "RESOURCE_EXHAUSTED"),
    "quota_zero": (errors.ClientError, 429, "RESOURCE_EXHAUSTED"),
    "overloaded": (errors.ServerError, 503, "UNAVAILABLE"),
    "internal": (errors.ServerError, 500, "INTERNAL"),
    "deadline": (errors.ServerError, 504, "DEADLINE_EXCEEDED"),
    "unavailable_page": (errors.ServerError, 502, "Bad Gateway"),
    "bad_key": (errors.ClientError, 400, "INVALID_ARGUMENT"),
    "no_key": (errors.ClientError, 403, "PERMISSION_DENIED"),
    "wrong_token": (errors.ClientError, 401, "UNAUTHENTICATED"),
    "location": (errors.ClientError, 400, "FAILED_PRECONDITION"),
    "stream_error": (errors.ServerError, 503, "UNAVAILABLE"),
}
BROKEN: dict[str, tuple[type[Exception], ...]] = {
    "cut_after=150": (httpx2.RemoteProtocolError,),
    "reset": (httpx2.ReadError,),
    "reset_after=150": (httpx2.ReadError,),
    "refused=0.05": (httpx2.ReadError, httpx2.ConnectError),
    "truncated_json": (errors.UnknownApiResponseError, ValueError),
}
ENDINGS = {
    **{finish.name: finish.reason for finish in FINISHES},
    "malformed_call": "MALFORMED_FUNCTION_CALL",
    "unexpected_call": "UNEXPECTED_TOOL_CALL",
    "empty_stop": "STOP",
    "no_finish": None,
}
HARMLESS = """
slow_first_byte=0.01 slow_stream=0.001 silence=0.01 wrong_content_type extra_blank small_pieces=5 giant_chunk=90000
"""
#: What only one of the two shows, or what the SDK hides.
OTHERS = ("prompt_block", "empty_body", "invalid_utf8", "comments")


# The contract knows finish reasons that the SDK does not.
pytestmark = pytest.mark.filterwarnings("ignore:.* is not a valid FinishReason:UserWarning")


@pytest.fixture(scope="module")
def client() -> Iterator[genai.Client]:
    with (
        serve_in_thread(EmulatorService("test", FaultDirector()).handle) as base_url,
        genai.Client(api_key="any", http_options=types.HttpOptions(base_url=base_url)) as opened,
    ):
        yield opened


def ask(client: genai.Client, fault: str, *, stream: bool) -> list[Any]:
    options = types.HttpOptions(headers={FAULT_HEADER: fault})
    config = types.GenerateContentConfig(http_options=options)
    if stream:
        return list(
            client.models.generate_content_stream(model=MODEL, contents=f"say {WORDS}", config=config)
        )
    return [client.models.generate_content(model=MODEL, contents=f"say {WORDS}", config=config)]


def test_every_fault_is_shown_to_the_sdk() -> None:
    shown = [*API_ERRORS, *BROKEN, *ENDINGS, *HARMLESS.split(), *OTHERS]
    assert {name.partition("=")[0] for name in shown} == set(FAULTS)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", API_ERRORS)
def test_an_error_is_the_sdks_own(client: genai.Client, fault: str, stream: bool) -> None:
    kind, code, status = API_ERRORS[fault]
    with pytest.raises(errors.APIError) as raised:
        ask(client, fault, stream=stream)
    assert (type(raised.value), raised.value.code, raised.value.status) == (kind, code, status)


def test_the_sdk_sees_when_to_come_back(client: genai.Client) -> None:
    with pytest.raises(errors.ClientError, match="Please retry in 3s") as raised:
        ask(client, "quota_minute=3", stream=False)
    details = raised.value.details["error"]["details"]
    assert {entry["@type"].rpartition(".")[2] for entry in details} == {"Help", "QuotaFailure", "RetryInfo"}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_connection_is_no_answer(client: genai.Client, fault: str, stream: bool) -> None:
    with pytest.raises(BROKEN[fault]):
        ask(client, fault, stream=stream)
    if fault.startswith("refused"):
        wait_until_back(client)


def wait_until_back(client: genai.Client) -> None:
    while True:
        try:
            ask(client, "", stream=False)
        except httpx2.TransportError:
            time.sleep(0.02)
        else:
            return


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", ENDINGS)
def test_an_ending_is_the_finish_reason_it_is_called_after(
    client: genai.Client, fault: str, stream: bool
) -> None:
    candidate = ask(client, fault, stream=stream)[-1].candidates[0]
    assert (candidate.finish_reason.value if candidate.finish_reason else None) == ENDINGS[fault]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", HARMLESS.split())
def test_what_is_legal_changes_nothing(client: genai.Client, fault: str, stream: bool) -> None:
    answers = ask(client, fault, stream=stream)
    assert "".join(answer.text or "" for answer in answers).lstrip("x") == WORDS
    assert answers[-1].candidates[0].finish_reason == types.FinishReason.STOP


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_a_blocked_prompt_is_feedback_without_candidates(client: genai.Client, stream: bool) -> None:
    (answer,) = ask(client, "prompt_block", stream=stream)
    assert answer.candidates is None
    assert answer.prompt_feedback.block_reason == types.BlockedReason.PROHIBITED_CONTENT


def test_the_sdk_takes_nothing_for_an_answer(client: genai.Client) -> None:
    assert ask(client, "empty_body", stream=True) == []
    assert ask(client, "empty_body", stream=False)[0].candidates is None


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_bytes_that_are_no_text_are_replaced(client: genai.Client, stream: bool) -> None:
    answers = ask(client, "invalid_utf8", stream=stream)
    assert "".join(answer.text or "" for answer in answers).replace("\ufffd", "") == WORDS


def test_comments_between_events_are_legal_and_too_much_for_the_sdk(client: genai.Client) -> None:
    """Google sends none; when this fails the SDK has learnt it, and the help of the fault can say so."""
    with pytest.raises(errors.UnknownApiResponseError):
        ask(client, "comments", stream=True)
