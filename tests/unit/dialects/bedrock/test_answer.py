"""Answers, whole and streamed: the same message, in the order every client of Bedrock reads."""

from __future__ import annotations

import itertools

import pytest

from dragoman.dialects.bedrock.encode import Echo
from dragoman.dialects.bedrock.stream import ConverseStream
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
    ServerCall,
    ServerResult,
    SignatureDelta,
    Source,
    StopReason,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    collect,
    seal,
)
from tests.unit.dialects.bedrock.builders import Json, reasoning
from tests.unit.dialects.bedrock.grammar import frames_of, read_stream
from tests.unit.dialects.bedrock.stream_checks import CLIENT, answer, content, stream_bytes, streamed, whole
from tests.unit.dialects.stream_checks import CALLED, END, OTHER, SIGNATURE, USAGE, call, whole_stream


def used(identity: str, **args: object) -> Json:
    return {"toolUse": {"toolUseId": identity, "name": "Read", "input": args or {"a": 1}}}


#: What happens, and the blocks a client gets that asked for reasoning.
TABLE: dict[str, tuple[list[Event], list[Json]]] = {
    "text": ([TextDelta("Hel"), TextDelta("lo")], [{"text": "Hello"}]),
    "nothing": ([], []),
    "empty deltas": ([TextDelta(""), ThoughtDelta("")], []),
    "thoughts": (
        [ThoughtDelta("h"), ThoughtDelta("m"), TextDelta("hi")],
        [reasoning("hm"), {"text": "hi"}],
    ),
    "a call": (call("t1"), [used("t1")]),
    "text and a call": ([TextDelta("ok"), *call("t1")], [{"text": "ok"}, used("t1")]),
    "e3 parallel calls": (
        [*call("t1", SIGNATURE), *call("t2"), *call("t3")],
        [reasoning("", seal(SIGNATURE, "t1")), used("t1"), used("t2"), used("t3")],
    ),
    "text behind a call": (
        [TextDelta("a"), *call("t1"), TextDelta("b")],
        [{"text": "a"}, used("t1"), {"text": "b"}],
    ),
    "no arguments": (
        [ToolCall(id="t1", name="Read")],
        [{"toolUse": {"toolUseId": "t1", "name": "Read", "input": {}}}],
    ),
    "a1 a call's signature on the thought before it": (
        [ThoughtDelta("hm"), *call("t1", SIGNATURE)],
        [reasoning("hm", seal(SIGNATURE, "t1")), used("t1")],
    ),
    "a1 a call's signature behind text": (
        [ThoughtDelta("hm"), TextDelta("so"), *call("t1", SIGNATURE)],
        [reasoning("hm"), {"text": "so"}, reasoning("", seal(SIGNATURE, "t1")), used("t1")],
    ),
    "a1 two signed steps": (
        [*call("t1", SIGNATURE), *call("t2", OTHER)],
        [
            reasoning("", seal(SIGNATURE, "t1")),
            used("t1"),
            reasoning("", seal(OTHER, "t2")),
            used("t2"),
        ],
    ),
    "a2 a signed thought keeps its own": (
        [ThoughtDelta("hm"), SignatureDelta(OTHER, ON_THOUGHT), *call("t1", SIGNATURE)],
        [reasoning("hm", seal(OTHER, ON_THOUGHT)), reasoning("", seal(SIGNATURE, "t1")), used("t1")],
    ),
    "a signature on a thought that was not shown": (
        [SignatureDelta(OTHER, ON_THOUGHT), TextDelta("hi")],
        [reasoning("", seal(OTHER, ON_THOUGHT)), {"text": "hi"}],
    ),
    "an answer that was nothing but thought": (
        [ThoughtDelta("hm"), SignatureDelta(OTHER, AFTER_TEXT)],
        [reasoning("hm", seal(OTHER, AFTER_TEXT))],
    ),
    "a text's signature behind a thought": (
        [ThoughtDelta("hm"), SignatureDelta(OTHER, ON_TEXT)],
        [reasoning("hm", seal(OTHER, AFTER_TEXT))],
    ),
    "text signed in the middle": (
        [TextDelta("a"), SignatureDelta(OTHER, ON_TEXT), TextDelta("b")],
        [{"text": "ab"}],
    ),
    "a text's signature is the store's": (
        [TextDelta("hi"), SignatureDelta(OTHER, ON_TEXT)],
        [{"text": "hi"}],
    ),
    "what only Gemini says": ([Native(json=b"{}"), TextDelta("hi")], [{"text": "hi"}]),
    "what Google looked up is told in the text alone": (
        [
            ServerCall(id="s1", kind="web_search"),
            ServerResult(call_id="s1", kind="web_search"),
            TextDelta("It "),
            CitedText("rains.", (Source(url="https://h"),)),
        ],
        [{"text": "It rains."}],
    ),
    "p2 arguments are not un-escaped": (call("t1", args=rb'{"a":"\\n"}'), [used("t1", a="\\n")]),
}


@pytest.mark.parametrize("name", TABLE)
def test_whole_and_streamed_are_the_same(name: str) -> None:
    events, blocks = TABLE[name]
    done = whole_stream(events, CALLED if "toolUse" in str(blocks) else END, USAGE)
    assert content(whole(done)) == blocks
    assert streamed(done) == whole(done)


@pytest.mark.parametrize("name", TABLE)
def test_hidden_thoughts_stay_hidden(name: str) -> None:
    """Who did not ask for reasoning gets none, nor the signatures in it."""
    events, blocks = TABLE[name]
    done = whole_stream(events)
    assert content(whole(done, with_thinking=False)) == [
        block for block in blocks if "reasoningContent" not in block
    ]
    assert streamed(done, with_thinking=False) == whole(done, with_thinking=False)


ATOMS: list[list[Event]] = [
    [TextDelta("a")],
    [ThoughtDelta("b")],
    call("t1", SIGNATURE),
    call("t2"),
    [SignatureDelta(SIGNATURE, ON_TEXT)],
    [SignatureDelta(OTHER, AFTER_TEXT)],
    [SignatureDelta(OTHER, ON_THOUGHT)],
]


@pytest.mark.parametrize("with_thinking", [True, False])
def test_e1_any_order_of_parts(with_thinking: bool) -> None:
    for order in itertools.permutations(ATOMS, 4):
        done = whole_stream(itertools.chain(*order), usage=USAGE)
        assert streamed(done, with_thinking=with_thinking) == whole(done, with_thinking=with_thinking)


def test_the_whole_answer_is_dressed() -> None:
    """h6: the input excludes what came from the cache, the total does not."""
    assert whole(whole_stream([TextDelta("hi")], usage=USAGE)) == {
        "output": {"message": {"role": "assistant", "content": [{"text": "hi"}]}},
        "stopReason": "end_turn",
        "usage": {
            "inputTokens": 40,
            "outputTokens": 9,
            "totalTokens": 109,
            "cacheReadInputTokens": 60,
            "cacheWriteInputTokens": 0,
        },
        "metrics": {"latencyMs": 42},
    }


def test_h1_the_estimate_stands_until_google_has_counted() -> None:
    for found in (whole(whole_stream([])), streamed(whole_stream([]))):
        assert (found["usage"]["inputTokens"], found["usage"]["totalTokens"]) == (7, 7)


REASONS: dict[StopReason, str] = {
    "end": "end_turn",
    "tool_calls": "tool_use",
    "max_tokens": "max_tokens",
    "blocked": "content_filtered",
    "malformed": "malformed_tool_use",
    "other": "end_turn",
}


@pytest.mark.parametrize("reason", REASONS)
def test_stop_reasons(reason: StopReason) -> None:
    done = whole_stream([TextDelta("x")], Finished(reason=reason, raw="RAW"))
    for found in (whole(done), streamed(done)):
        assert found["stopReason"] == REASONS[reason]


def test_thought_tokens_are_told_to_who_asks_for_them() -> None:
    done = whole_stream([TextDelta("x")], usage=USAGE)
    told = {"usage": {"output_tokens_details": {"thinking_tokens": 4}}}
    asking = answer(Echo(thought_tokens=True))
    stream = CLIENT.stream(asking)
    data = stream.open() + b"".join(map(stream.feed, done))
    assert read_stream(data).stop == {"stopReason": "end_turn", "additionalModelResponseFields": told}
    assert b'"thinking_tokens":4' in CLIENT.encode_response(collect(done), asking)
    assert "additionalModelResponseFields" not in whole(done)


def test_an_answer_without_its_request_can_be_told() -> None:
    stream = CLIENT.stream(answer(None))
    assert read_stream(stream.open() + b"".join(map(stream.feed, whole_stream([])))).content == []


def _until(events: list[Event]) -> tuple[ConverseStream, bytes]:
    stream = CLIENT.stream(answer())
    return stream, stream.open() + b"".join(map(stream.feed, events))


@pytest.mark.parametrize("middle", [[], [TextDelta("so")], [ThoughtDelta("hm")], call("t1")])
def test_e7_a_failure_is_an_exception_never_a_clean_stop(middle: list[Event]) -> None:
    error = UpstreamError("high demand", kind="overloaded")
    stream, data = _until(middle)
    told = read_stream(data + stream.fail(error))
    assert told.failure == ("serviceUnavailableException", {"message": "high demand"})
    assert told.stop == told.metadata == {}
    other, _ = _until(middle)
    assert other.feed(Failed(error)) == stream_tail(middle, error)


def stream_tail(middle: list[Event], error: DragomanError) -> bytes:
    stream, _ = _until(middle)
    return stream.fail(error)


def test_heartbeats_stand_between_all_frames_but_never_inside_a_tool() -> None:
    events = whole_stream([ThoughtDelta("hm"), TextDelta("so"), *call("t1"), TextDelta("b")], usage=USAGE)
    stream = CLIENT.stream(answer())
    data = stream.open() + b"".join(stream.ping() + stream.feed(event) for event in events)
    told = read_stream(data)
    assert told.pings == len(events)
    assert told.as_whole() == whole(events)


def test_a_ping_is_an_event_nobody_knows() -> None:
    (frame,) = frames_of(CLIENT.stream(answer()).ping())
    assert (frame.headers[":event-type"], frame.payload) == ("ping", b"{}")


def test_text_of_any_letters_arrives() -> None:
    words = 'a "quoted" \\ ünï \u2028 line\n\N{GRINNING FACE}'
    assert content(streamed(whole_stream([TextDelta(words)]))) == [{"text": words}]
    assert stream_bytes(whole_stream([TextDelta(words)]))
