"""A Gemini client gets what Google said, streamed or whole, and Google's own errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.base import Answer, Target
from dragoman.dialects.gemini import decode_error
from dragoman.dialects.gemini.client import Framing, GeminiClient
from dragoman.errors import DragomanError, UpstreamIncomplete
from dragoman.ir import (
    CitedText,
    Event,
    Failed,
    Finished,
    ServerCall,
    ServerResult,
    Source,
    Started,
    TextDelta,
    collect,
)
from tests.unit.dialects.gemini.client.builders import HI, MODEL, chunk, exchange, sse, streamed, whole

USAGE = {
    "promptTokenCount": 9,
    "cachedContentTokenCount": 4,
    "candidatesTokenCount": 3,
    "thoughtsTokenCount": 2,
    "totalTokenCount": 14,
}
TURN = (
    chunk({"text": "hm", "thought": True}),
    chunk({"text": "", "thought": True, "thoughtSignature": "dGg="}),
    chunk({"text": "One "}),
    chunk({"text": "moment."}),
    chunk({"functionCall": {"name": "f", "id": "abc", "args": {"a": 1}}, "thoughtSignature": "c2ln"}),
    chunk({"functionCall": {"name": "f", "id": "def", "args": {}}}),
    chunk({"executableCode": {"code": "1"}}),
    chunk(
        {"text": ""}, finish="STOP", usage=USAGE, groundingMetadata={"q": 1}, finishMessage="Model generated."
    ),
)
CALLS = [
    {
        "functionCall": {"id": "call_0000000000000000-abc", "name": "f", "args": {"a": 1}},
        "thoughtSignature": "c2ln",
    },
    {"functionCall": {"id": "call_0000000000000000-def", "name": "f", "args": {}}},
]


def test_a_turn_streams_part_by_part_and_ends_with_reason_counts_and_metadata() -> None:
    chunks = streamed(*TURN)
    parts = [part for item in chunks for part in item["candidates"][0]["content"]["parts"]]
    assert parts == [
        {"text": "hm", "thought": True},
        {"text": "", "thought": True, "thoughtSignature": "dGg="},
        {"text": "One "},
        {"text": "moment."},
        *CALLS,
        {"executableCode": {"code": "1"}},
        {"text": ""},
    ]
    last = chunks[-1]
    assert last["candidates"][0]["finishReason"] == "STOP"
    assert last["candidates"][0]["finishMessage"] == "Model generated."
    assert last["candidates"][0]["groundingMetadata"] == {"q": 1}
    assert last["usageMetadata"] == USAGE
    assert all("finishReason" not in item["candidates"][0] for item in chunks[:-1])
    assert {(item["modelVersion"], item["responseId"]) for item in chunks} == {(MODEL, "r1")}


def test_an_array_says_the_same_as_events() -> None:
    assert streamed(*TURN, framing="array") == streamed(*TURN)


def test_a_whole_answer_is_the_stream_folded() -> None:
    answer = whole(*TURN)
    assert answer["candidates"][0]["content"]["parts"] == [
        {"text": "hm", "thought": True, "thoughtSignature": "dGg="},
        {"text": "One moment."},
        *CALLS,
        {"executableCode": {"code": "1"}},
    ]
    assert answer["usageMetadata"] == USAGE
    assert answer["candidates"][0]["groundingMetadata"] == {"q": 1}


def test_a2_the_signature_of_a_text_comes_on_it_or_behind_it() -> None:
    signed = (chunk({"text": "a", "thoughtSignature": "c2ln"}, finish="STOP"),)
    assert whole(*signed)["candidates"][0]["content"]["parts"] == [{"text": "a", "thoughtSignature": "c2ln"}]
    parts = [part for item in streamed(*signed) for part in item["candidates"][0]["content"]["parts"]]
    assert parts == [{"text": "a"}, {"text": "", "thoughtSignature": "c2ln"}, {"text": ""}]


def test_d7_a_blocked_prompt_has_no_candidates() -> None:
    blocked: dict[str, Any] = {
        "promptFeedback": {"blockReason": "SAFETY"},
        "modelVersion": MODEL,
        "responseId": "r",
    }
    assert whole(blocked) == {
        "promptFeedback": {"blockReason": "SAFETY"},
        "usageMetadata": {"promptTokenCount": 5, "totalTokenCount": 5},
        "modelVersion": MODEL,
        "responseId": "r",
    }
    assert streamed(blocked) == [whole(blocked)]


def test_d7_a_blocked_answer_ends_with_its_reason_and_no_content() -> None:
    last = streamed(chunk(finish="SAFETY"))[-1]["candidates"][0]
    assert (last["finishReason"], last["content"]) == ("SAFETY", {})


@pytest.mark.parametrize("framing", ["sse", "array"])
def test_e_a_broken_stream_ends_with_an_error_and_never_with_a_reason(framing: Framing) -> None:
    started = exchange({"contents": HI}, framing)
    started.encode(Target(model=MODEL))
    out = started.open() + started.receive(sse(chunk({"text": "a"}))) + started.finish()
    documents = (
        json.loads(out)
        if framing == "array"
        else [json.loads(frame[6:]) for frame in out.split(b"\r\n\r\n")[:-1]]
    )
    assert documents[-1]["error"]["status"] == "UNAVAILABLE"
    assert "finishReason" not in json.dumps(documents)


def test_e_an_array_that_fails_before_its_first_element_is_still_json() -> None:
    stream = GeminiClient(MODEL, "array").stream(Answer(id="r", model=MODEL))
    out = stream.open() + stream.feed(Failed(UpstreamIncomplete("gone", kind="overloaded")))
    assert json.loads(out)[0]["error"]["message"] == "gone"


@pytest.mark.parametrize("framing", ["sse", "array"])
def test_e_pings_add_nothing_and_keep_the_stream_readable(framing: Framing) -> None:
    stream = GeminiClient(MODEL, framing).stream(Answer(id="r", model=MODEL))
    out = stream.open() + stream.ping() + stream.ping() + stream.fail(DragomanError("x"))
    documents = (
        json.loads(out)
        if framing == "array"
        else [json.loads(frame[6:]) for frame in out.split(b"\r\n\r\n")[:-1]]
    )
    assert [item["candidates"][0]["content"]["parts"] for item in documents[:2]] == [[{"text": ""}]] * 2


@pytest.mark.parametrize(("pinged", "told"), [(True, "ours"), (False, "googles")])
def test_a_stream_has_one_id_even_if_a_ping_came_before_googles_first_word(pinged: bool, told: str) -> None:
    stream = GeminiClient(MODEL, "sse").stream(Answer(id="ours", model=MODEL))
    out = stream.ping() if pinged else b""
    out += stream.feed(Started(MODEL, "googles")) + stream.feed(TextDelta("a")) + stream.ping()
    documents = [json.loads(frame[6:]) for frame in out.split(b"\r\n\r\n")[:-1]]
    assert {document["responseId"] for document in documents} == {told}


def test_googles_own_error_comes_through_word_for_word() -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "38s"}
    body = {
        "error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED", "details": [detail]}
    }
    reply = GeminiClient(MODEL).encode_error(decode_error(429, {}, json.dumps(body).encode()))
    assert (reply.status, json.loads(reply.body)) == (429, body)
    listed = GeminiClient(MODEL, "array").encode_error(decode_error(429, {}, json.dumps(body).encode()))
    assert json.loads(listed.body) == [body]
    odd = GeminiClient(MODEL).encode_error(
        decode_error(418, {}, json.dumps({"error": {"code": 418}}).encode())
    )
    assert odd.status == 418


def test_our_own_error_has_googles_shape() -> None:
    error = DragomanError("too much", kind="rate_limit", retry_after_s=1.2, where="contents[0]")
    reply = GeminiClient(MODEL).encode_error(error)
    assert reply.status == 429
    assert json.loads(reply.body)["error"] == {
        "code": 429,
        "message": "contents[0]: too much",
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "2s"}],
    }
    wrong = GeminiClient(MODEL).encode_error(DragomanError("no", kind="wrong_method", code="POST"))
    assert ("allow", "POST") in wrong.headers
    html = GeminiClient(MODEL).encode_error(decode_error(502, {}, b"<html>"))
    assert (html.status, json.loads(html.body)["error"]["status"]) == (503, "UNAVAILABLE")


def test_a_count_is_one_number() -> None:
    assert json.loads(GeminiClient(MODEL, "count").encode_count(7)) == {"totalTokens": 7}


def test_a_stream_that_is_kept_can_be_told_again_in_one_piece() -> None:
    started = exchange({"contents": HI}, "sse", keep=True)
    started.encode(Target(model=MODEL))
    started.open()
    started.receive(sse(*TURN))
    started.finish()
    assert json.loads(started.whole_body())["candidates"] == whole(*TURN)["candidates"]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\r", "\n", "\0", "\x0b", "\x1e"])
def test_e_what_ends_a_line_for_somebody_does_not_end_an_event(separator: str) -> None:
    """Google's SDK reads lines as Python's `splitlines` cuts them, and Google escapes these too."""
    started = exchange({"contents": HI}, "sse")
    started.encode(Target(model=MODEL))
    text = f"a{separator}b é"
    out = started.open() + started.receive(sse(chunk({"text": text}, finish="STOP"))) + started.finish()
    lines = [line for line in out.decode().splitlines() if line]
    assert all(line.startswith("data: {") for line in lines)
    assert json.loads(lines[0][6:])["candidates"][0]["content"]["parts"] == [{"text": text}]


def test_e_arguments_over_several_lines_do_not_end_an_event() -> None:
    part = json.dumps({"functionCall": {"name": "f", "args": {"a": 1}}}, indent=1)
    given = json.dumps(chunk(finish="STOP")).replace('"parts": []', f'"parts": [{part}]')
    event = "".join(f"data: {line}\r\n" for line in given.split("\n")) + "\r\n"
    started = exchange({"contents": HI}, "sse")
    started.encode(Target(model=MODEL))
    out = started.open() + started.receive(event.encode()) + started.finish()
    first, _, _ = out.partition(b"\r\n\r\n")
    call = json.loads(first.removeprefix(b"data: "))["candidates"][0]["content"]["parts"][0]["functionCall"]
    assert (b"\n" in first, call["args"]) == (False, {"a": 1})


def test_nothing_of_a_failed_attempt_is_told_with_the_next() -> None:
    started = exchange({"contents": HI}, "sse")
    started.encode(Target(model=MODEL))
    out = started.open() + started.receive(sse(chunk(finish="STOP", groundingMetadata={"old": 1})))
    started.encode(Target(model=MODEL))
    out += started.receive(sse(chunk({"text": "a"}, finish="STOP"))) + started.finish()
    assert b"old" not in out


def test_h5_every_count_of_googles_comes_through_also_those_nobody_else_has() -> None:
    details = [{"modality": "TEXT", "tokenCount": 9}]
    counts = {
        **USAGE,
        "toolUsePromptTokenCount": 5,
        "promptTokensDetails": details,
        "trafficType": "ON_DEMAND",
    }
    first = chunk({"text": "a"}, usage={"promptTokensDetails": details, "promptTokenCount": 1})
    rest = chunk(finish="STOP", usage={**counts, "promptTokensDetails": None})
    assert streamed(first, rest)[-1]["usageMetadata"] == counts
    assert whole(first, rest)["usageMetadata"] == counts


@pytest.mark.parametrize("odd", [{"promptTokenCount": []}, {"promptTokenCount": "x"}, "none", 5])
def test_an_odd_count_costs_no_answer(odd: Any) -> None:
    found = whole(chunk({"text": "a"}, finish="STOP", usage=odd))
    assert found["candidates"][0]["content"]["parts"] == [{"text": "a"}]


def test_a_count_may_be_text() -> None:
    found = whole(chunk({"text": "a"}, finish="STOP", usage={"promptTokenCount": "12"}))
    assert found["usageMetadata"]["promptTokenCount"] == 12


def test_what_the_gateway_ran_has_no_part_of_its_own_and_text_with_sources_is_text() -> None:
    client = GeminiClient("m", "sse")
    call = ServerCall(id="s", kind="mcp", name="f")
    result = ServerResult(call_id="s", kind="mcp", output="x")
    events: list[Event] = [
        Started("m", "r"),
        call,
        result,
        CitedText("a", (Source(url="u"),)),
        Finished(reason="end", raw="STOP"),
    ]
    stream = client.stream(Answer(id="resp_1", model="m"))
    frames = [frame for frame in b"".join(map(stream.feed, events)).split(b"\r\n\r\n") if frame]
    first = json.loads(frames[0].removeprefix(b"data: "))
    assert first["candidates"][0]["content"]["parts"] == [{"text": "a"}]
    folded = json.loads(client.encode_response(collect(events), Answer(id="resp_1", model="m")))
    assert folded["candidates"][0]["content"]["parts"] == [{"text": "a"}]
