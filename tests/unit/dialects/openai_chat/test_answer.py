"""Answers, whole and streamed: the same message, in the form OpenAI's clients read."""

from __future__ import annotations

import itertools
import json

import pytest

from dragoman.dialects import openai_chat
from dragoman.dialects.base import Answer
from dragoman.dialects.openai_chat.encode import Echo
from dragoman.dialects.openai_chat.messages import legacy_id
from dragoman.errors import DragomanError, UpstreamError
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    CitedText,
    Event,
    Failed,
    Finished,
    Native,
    Response,
    ServerCall,
    ServerResult,
    SignatureDelta,
    Source,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
)
from tests.unit.dialects.openai_chat.stream_checks import (
    Json,
    answer,
    chunks_of,
    signed,
    stream_bytes,
    streamed,
    whole,
    whole_bytes,
)
from tests.unit.dialects.stream_checks import CALLED, END, OTHER, SIGNATURE, USAGE, call, whole_stream

BLOCKED = Finished(reason="blocked", raw="SAFETY", detail="no")
LEGACY = Echo(legacy=True)


def function(identity: str, arguments: str = '{"a":1}', **more: object) -> Json:
    return {"id": identity, "type": "function", "function": {"name": "Read", "arguments": arguments}, **more}


#: What happens, and the message a client gets.
TABLE: dict[str, tuple[list[Event], Json]] = {
    "text": ([TextDelta("Hel"), TextDelta("lo")], {"content": "Hello"}),
    "nothing": ([], {"content": ""}),
    "empty deltas": ([TextDelta(""), ThoughtDelta("")], {"content": ""}),
    "thoughts": (
        [ThoughtDelta("h"), ThoughtDelta("m"), TextDelta("hi")],
        {"content": "hi", "reasoning_content": "hm"},
    ),
    "thoughts alone": ([ThoughtDelta("hm")], {"content": "", "reasoning_content": "hm"}),
    "a call": (call("call_1"), {"tool_calls": [function("call_1")]}),
    "a call behind empty text": ([TextDelta(""), *call("call_1")], {"tool_calls": [function("call_1")]}),
    "text and a call": (
        [TextDelta("ok"), *call("call_1")],
        {"content": "ok", "tool_calls": [function("call_1")]},
    ),
    "e3 parallel calls": (
        [*call("call_1", SIGNATURE), *call("call_2"), *call("call_3")],
        {
            "tool_calls": [
                function("call_1", extra_content=signed(SIGNATURE, "call_1")),
                function("call_2"),
                function("call_3"),
            ]
        },
    ),
    "text behind a call": (
        [TextDelta("a"), *call("call_1"), TextDelta("b")],
        {"content": "ab", "tool_calls": [function("call_1")]},
    ),
    "no arguments": (
        [ToolCall(id="call_1", name="Read")],
        {"tool_calls": [function("call_1", "{}")]},
    ),
    "p2 arguments byte for byte": (
        call("call_1", args=rb'{"a": "\u00fc\\n" }'),
        {"tool_calls": [function("call_1", r'{"a": "\u00fc\\n" }')]},
    ),
    "g1 a custom call": (
        call("call_1", SIGNATURE, b'{"input":"*** a\\n"}', "patch"),
        {
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "custom",
                    "custom": {"name": "patch", "input": "*** a\n"},
                    "extra_content": signed(SIGNATURE, "call_1"),
                }
            ]
        },
    ),
    "signed text": (
        [TextDelta("hi"), SignatureDelta(SIGNATURE, ON_TEXT)],
        {"content": "hi", "extra_content": signed(SIGNATURE, ON_TEXT)},
    ),
    "signed behind text": (
        [TextDelta("hi"), SignatureDelta(SIGNATURE, AFTER_TEXT)],
        {"content": "hi", "extra_content": signed(SIGNATURE, AFTER_TEXT)},
    ),
    "a text's signature behind a call": (
        [TextDelta("hi"), *call("call_1"), SignatureDelta(SIGNATURE, ON_TEXT)],
        {
            "content": "hi",
            "tool_calls": [function("call_1")],
            "extra_content": signed(SIGNATURE, AFTER_TEXT),
        },
    ),
    "a text's signature behind a thought": (
        [TextDelta("hi"), ThoughtDelta("hm"), SignatureDelta(SIGNATURE, ON_TEXT)],
        {"content": "hi", "reasoning_content": "hm", "extra_content": signed(SIGNATURE, AFTER_TEXT)},
    ),
    "a2 a signed thought": (
        [ThoughtDelta("hm"), SignatureDelta(SIGNATURE, ON_THOUGHT), TextDelta("hi")],
        {"content": "hi", "reasoning_content": "hm", "extra_content": signed(SIGNATURE, ON_THOUGHT)},
    ),
    "the last signature counts": (
        [TextDelta("a"), SignatureDelta(OTHER, ON_TEXT), TextDelta("b"), SignatureDelta(SIGNATURE, ON_TEXT)],
        {"content": "ab", "extra_content": signed(SIGNATURE, ON_TEXT)},
    ),
    "two signatures on end": (
        [TextDelta("a"), SignatureDelta(OTHER, ON_TEXT), SignatureDelta(SIGNATURE, ON_TEXT)],
        {"content": "a", "extra_content": signed(SIGNATURE, AFTER_TEXT)},
    ),
    "what only Gemini says": ([Native(json=b"{}"), TextDelta("hi")], {"content": "hi"}),
}


@pytest.mark.parametrize("name", TABLE)
def test_whole_and_streamed_are_the_same(name: str) -> None:
    events, message = TABLE[name]
    done = whole_stream(events, CALLED if "tool_calls" in message else END, USAGE)
    completion = whole(done)
    assert completion["choices"][0]["message"] == {"role": "assistant", **message}
    assert streamed(done) == {**completion}


@pytest.mark.parametrize("name", TABLE)
def test_hidden_thoughts_stay_hidden(name: str) -> None:
    done = whole_stream(TABLE[name][0])
    completion = whole(done, with_thinking=False)
    assert "reasoning_content" not in completion["choices"][0]["message"]
    assert signed(SIGNATURE, ON_THOUGHT) != completion["choices"][0]["message"].get("extra_content")
    assert streamed(done, with_thinking=False) == completion


ATOMS: list[list[Event]] = [
    [TextDelta("a")],
    [ThoughtDelta("b")],
    call("call_1", SIGNATURE),
    call("call_2"),
    call("call_3", None, b'{"input":"x"}', "patch"),
    [SignatureDelta(SIGNATURE, ON_TEXT)],
    [SignatureDelta(OTHER, AFTER_TEXT)],
    [SignatureDelta(OTHER, ON_THOUGHT)],
]


@pytest.mark.parametrize("echo", [Echo(include_usage=True), Echo(include_usage=True, legacy=True)])
def test_e1_any_order_of_parts(echo: Echo) -> None:
    for order in itertools.permutations(ATOMS, 3):
        done = whole_stream(itertools.chain(*order), usage=USAGE)
        assert streamed(done, echo) == whole(done, echo)


def test_the_whole_answer_is_dressed() -> None:
    assert json.loads(whole_bytes(whole_stream([TextDelta("hi")], usage=USAGE))) == {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "gpt-x",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "hi", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 100,
            "completion_tokens": 9,
            "total_tokens": 109,
            "prompt_tokens_details": {"cached_tokens": 60},
            "completion_tokens_details": {"reasoning_tokens": 4},
        },
        "system_fingerprint": None,
    }


def test_content_is_null_beside_calls_only() -> None:
    message = json.loads(whole_bytes(whole_stream(call("call_1"), CALLED)))["choices"][0]["message"]
    assert message["content"] is None


REASONS: dict[StopReason, tuple[str, str]] = {
    "end": ("stop", "stop"),
    "tool_calls": ("tool_calls", "function_call"),
    "max_tokens": ("length", "length"),
    "blocked": ("content_filter", "content_filter"),
    "malformed": ("content_filter", "content_filter"),
    "other": ("stop", "stop"),
}


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("legacy", [False, True])
def test_finish_reasons(reason: StopReason, legacy: bool) -> None:
    done = whole_stream([TextDelta("x")], Finished(reason=reason, raw="RAW"))
    for completion in (whole(done, Echo(legacy=legacy)), streamed(done, Echo(legacy=legacy))):
        assert completion["choices"][0]["finish_reason"] == REASONS[reason][legacy]


@pytest.mark.parametrize("text", [[], [TextDelta("so far")]])
def test_d7_a_refusal_says_why(text: list[Event]) -> None:
    done = whole_stream(text, BLOCKED)
    message = whole(done)["choices"][0]["message"]
    assert message == {"role": "assistant", "refusal": "no", **({"content": "so far"} if text else {})}
    assert streamed(done)["choices"] == whole(done)["choices"]


def test_d1_an_aborted_call_never_looks_like_success() -> None:
    done = whole_stream([], Finished(reason="malformed", raw="MALFORMED_FUNCTION_CALL"))
    choice = whole(done)["choices"][0]
    assert choice["message"]["refusal"] == "Gemini stopped with MALFORMED_FUNCTION_CALL"
    assert choice["finish_reason"] == "content_filter"


def test_h1_the_estimate_stands_until_google_has_counted() -> None:
    for completion in (whole(whole_stream([])), streamed(whole_stream([]))):
        assert completion["usage"]["prompt_tokens"] == completion["usage"]["total_tokens"] == 7


def test_the_older_form_has_one_call_and_no_id() -> None:
    done = whole_stream([*call("call_1", SIGNATURE), *call("call_2", OTHER)], CALLED)
    message = whole(done, LEGACY)["choices"][0]["message"]
    assert message == {
        "role": "assistant",
        "function_call": {"name": "Read", "arguments": '{"a":1}'},
        "extra_content": signed(SIGNATURE, legacy_id("Read")),
    }
    assert streamed(done, LEGACY)["choices"] == whole(done, LEGACY)["choices"]


def test_the_older_form_without_a_call() -> None:
    done = whole_stream([TextDelta("hi")])
    assert whole(done, LEGACY)["choices"][0]["message"] == {"role": "assistant", "content": "hi"}


def test_the_order_of_chunks() -> None:
    done = whole_stream([TextDelta("ok"), *call("call_1", args=b'{"a": 1}'), *call("call_2")], CALLED, USAGE)
    chunks = chunks_of(stream_bytes(done))
    deltas = [choice["delta"] for chunk in chunks for choice in chunk["choices"]]
    assert deltas == [
        {"role": "assistant", "content": None},
        {"content": "ok"},
        {"tool_calls": [{"index": 0, **function("call_1", "")}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a": 1}'}}]},
        {"tool_calls": [{"index": 1, **function("call_2", "")}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": '{"a":1}'}}]},
        {},
    ]
    reasons = [choice["finish_reason"] for chunk in chunks for choice in chunk["choices"]]
    assert reasons == [None] * 6 + ["tool_calls"]
    assert {(chunk["id"], chunk["object"], chunk["created"], chunk["model"]) for chunk in chunks} == {
        ("chatcmpl-1", "chat.completion.chunk", 1_700_000_000, "gpt-x")
    }


def test_usage_comes_last_and_only_when_asked() -> None:
    done = whole_stream([TextDelta("ok")], usage=USAGE)
    *before, last = chunks_of(stream_bytes(done))
    assert last["choices"] == []
    assert last["usage"]["total_tokens"] == 109
    assert all(chunk["usage"] is None for chunk in before)
    assert all("usage" not in chunk for chunk in chunks_of(stream_bytes(done, Echo())))


def test_a_stream_is_told_by_data_alone() -> None:
    data = stream_bytes(whole_stream([TextDelta("a\nb")]))
    assert all(not line or line.startswith(b"data: ") for line in data.split(b"\n"))


def test_odd_names_do_not_break_the_frame() -> None:
    odd = Answer(id="chatcmpl_x%d_y", model='gpt "%s" \n', created_s=1)
    stream = openai_chat.stream(odd)
    (event, *_) = chunks_of(stream.open() + stream.feed(END))
    assert (event["id"], event["model"]) == ("chatcmpl-x%d_y", 'gpt "%s" \n')
    assert json.loads(openai_chat.encode_response(Response(), odd))["id"] == "chatcmpl-x%d_y"


def test_a_ping_means_nothing() -> None:
    assert openai_chat.stream(answer()).ping() == b": ping\n\n"


@pytest.mark.parametrize("opening", [[], [TextDelta("so far")], call("call_1")])
def test_e7_a_broken_stream_never_looks_finished(opening: list[Event]) -> None:
    stream = openai_chat.stream(answer())
    before = stream.open() + b"".join(map(stream.feed, opening))
    error = UpstreamError("high demand", kind="overloaded")
    ending = stream.feed(Failed(error))
    assert ending == stream.fail(error)
    assert b"[DONE]" not in before + ending
    assert json.loads(ending.removeprefix(b"data: "))["error"]["message"] == "high demand"
    assert ending.endswith(b"\n\n")


def test_an_error_says_the_place() -> None:
    stream = openai_chat.stream(answer())
    error = json.loads(stream.fail(DragomanError("odd", where="tools[1]")).removeprefix(b"data: "))["error"]
    assert error["param"] == "tools[1]"


def test_counting_answers_like_openais_only_count() -> None:
    assert json.loads(openai_chat.encode_count(12)) == {
        "object": "response.input_tokens",
        "input_tokens": 12,
    }


A, B = Source(url="https://a.org", title="A"), Source(url="https://b.org")
RAN: list[Event] = [
    ServerCall(id="s", kind="web_search"),
    ServerResult(call_id="s", kind="web_search", sources=(A, B)),
]


def cited(source: Source, start: int, end: int) -> Json:
    place = {"start_index": start, "end_index": end, "url": source.url, "title": source.title}
    return {"type": "url_citation", "url_citation": place}


def test_k3_sources_are_annotations_of_the_message() -> None:
    said: list[Event] = [
        TextDelta("Ü is "),
        *RAN,
        CitedText("a", (A, B)),
        ThoughtDelta("hm"),
        CitedText("b", (B,)),
        TextDelta("."),
    ]
    events = whole_stream(said)
    message = whole(events)["choices"][0]["message"]
    assert message["content"] == "Ü is ab."
    assert message["annotations"] == [cited(A, 5, 6), cited(B, 5, 6), cited(B, 6, 7)]
    last = chunks_of(stream_bytes(events))[-2]["choices"][0]
    assert (last["delta"]["annotations"], last["finish_reason"]) == (message["annotations"], "stop")
    assert streamed(events)["choices"][0]["message"]["annotations"] == message["annotations"]


def test_sources_without_a_place_are_told_at_the_end_once() -> None:
    lost = ServerResult(
        call_id="t", kind="web_search", sources=(A, Source(url="https://c.org", error="gone"))
    )
    again: list[Event] = [ServerCall(id="t", kind="web_search"), lost]
    events = whole_stream([*RAN, *again, TextDelta("ab")])
    message = whole(events)["choices"][0]["message"]
    assert message["annotations"] == [cited(A, 2, 2), cited(B, 2, 2)]
    assert streamed(events)["choices"][0]["message"]["annotations"] == message["annotations"]


def test_without_sources_there_is_no_such_field() -> None:
    nothing = ServerResult(call_id="s", kind="web_search", error="unavailable")
    assert "annotations" not in whole(whole_stream(RAN))["choices"][0]["message"]  # nothing to annotate
    events = whole_stream([RAN[0], nothing, TextDelta("a")])
    assert "annotations" not in whole(events)["choices"][0]["message"]
    assert streamed(events) == whole(events)
    assert openai_chat.server_kinds == {"web_search", "web_fetch"}


def test_a_signature_behind_a_search_is_no_text_s() -> None:
    events = whole_stream([TextDelta("a"), *RAN, SignatureDelta(SIGNATURE, ON_TEXT)])
    assert streamed(events)["choices"][0]["message"]["extra_content"] == signed(SIGNATURE, AFTER_TEXT)
