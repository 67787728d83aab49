"""The event stream: one grammar for any order of parts; the whole answer says the same."""

from __future__ import annotations

import itertools
import json

import pytest

from dragoman.dialects import anthropic
from dragoman.errors import ErrorKind, UpstreamError
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Event,
    Failed,
    Finished,
    SignatureDelta,
    Started,
    StopReason,
    TextDelta,
    ThoughtDelta,
    Usage,
    collect,
    seal,
)
from tests.unit.dialects.anthropic.stream_checks import (
    Json,
    answer,
    assembled,
    parse,
    said,
    stream_bytes,
    streamed,
    thought,
    used,
    whole,
)
from tests.unit.dialects.stream_checks import OTHER, SIGNATURE, call, whole_stream

ON_CALL = seal(SIGNATURE, "toolu_1")

#: what Gemini says -> blocks with thinking, blocks without
TABLE: dict[str, tuple[list[Event], list[Json], list[Json]]] = {
    "nothing": ([], [], []),
    "text": ([TextDelta("a"), TextDelta("b")], [said("ab")], [said("ab")]),
    "thinking then text": ([ThoughtDelta("t"), TextDelta("a")], [thought("t"), said("a")], [said("a")]),
    "text before thinking": ([TextDelta("a"), ThoughtDelta("t")], [said("a"), thought("t")], [said("a")]),
    "e11 thinking amid text": (
        [TextDelta("a"), ThoughtDelta("t"), TextDelta("b")],
        [said("a"), thought("t"), said("b")],
        [said("ab")],
    ),
    "e1 signature of an empty text amid thinking": (
        [ThoughtDelta("t"), SignatureDelta(SIGNATURE, AFTER_TEXT), ThoughtDelta("u")],
        [thought("t", seal(SIGNATURE, AFTER_TEXT)), thought("u")],
        [],
    ),
    "signed thought": (
        [ThoughtDelta("t"), SignatureDelta(SIGNATURE, ON_THOUGHT), TextDelta("a")],
        [thought("t", seal(SIGNATURE, ON_THOUGHT)), said("a")],
        [said("a")],
    ),
    "i4 a signed thought without words": (
        [TextDelta("a"), SignatureDelta(SIGNATURE, ON_THOUGHT)],
        [said("a"), thought("", seal(SIGNATURE, ON_THOUGHT))],
        [said("a")],
    ),
    "signature on text": ([TextDelta("a"), SignatureDelta(SIGNATURE, ON_TEXT)], [said("a")], [said("a")]),
    "signature amid text": (
        [
            TextDelta("a"),
            SignatureDelta(SIGNATURE, ON_TEXT),
            TextDelta("b"),
            SignatureDelta(OTHER, AFTER_TEXT),
        ],
        [said("ab")],
        [said("ab")],
    ),
    "signature behind text": (
        [ThoughtDelta("t"), TextDelta("a"), SignatureDelta(SIGNATURE, AFTER_TEXT)],
        [thought("t"), said("a")],
        [said("a")],
    ),
    "signature and nothing else": ([SignatureDelta(SIGNATURE, AFTER_TEXT)], [], []),
    "call first": (
        [*call("toolu_1"), TextDelta("a")],
        [used("toolu_1"), said("a")],
        [used("toolu_1"), said("a")],
    ),
    "a1 signed call": (
        call("toolu_1", SIGNATURE),
        [thought("", ON_CALL), used("toolu_1")],
        [used("toolu_1")],
    ),
    "a1 thinking then a signed call": (
        [ThoughtDelta("t"), *call("toolu_1", SIGNATURE)],
        [thought("t", ON_CALL), used("toolu_1")],
        [used("toolu_1")],
    ),
    "a1 a signed thought then a signed call": (
        [ThoughtDelta("t"), SignatureDelta(OTHER, ON_THOUGHT), *call("toolu_1", SIGNATURE)],
        [thought("t", seal(OTHER, ON_THOUGHT)), thought("", ON_CALL), used("toolu_1")],
        [used("toolu_1")],
    ),
    "a1 text then a signed call": (
        [TextDelta("a"), *call("toolu_1", SIGNATURE)],
        [said("a"), thought("", ON_CALL), used("toolu_1")],
        [said("a"), used("toolu_1")],
    ),
    "a13 parallel calls": (
        [*call("toolu_1", SIGNATURE), *call("toolu_2")],
        [thought("", ON_CALL), used("toolu_1"), used("toolu_2")],
        [used("toolu_1"), used("toolu_2")],
    ),
    "thinking between calls": (
        [*call("toolu_1", SIGNATURE), ThoughtDelta("t"), *call("toolu_2")],
        [thought("", ON_CALL), used("toolu_1"), thought("t"), used("toolu_2")],
        [used("toolu_1"), used("toolu_2")],
    ),
    "signature behind a call": (
        [*call("toolu_1"), SignatureDelta(SIGNATURE, AFTER_TEXT)],
        [used("toolu_1")],
        [used("toolu_1")],
    ),
    "thinking and a closing signature": (
        [ThoughtDelta("t"), SignatureDelta(SIGNATURE, AFTER_TEXT)],
        [thought("t", seal(SIGNATURE, AFTER_TEXT))],
        [],
    ),
}


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("how", [streamed, whole])
def test_e1_blocks(name: str, how: object) -> None:
    middle, with_thinking, without = TABLE[name]
    assert callable(how)
    events = whole_stream(middle)
    assert how(events, with_thinking=True)["content"] == with_thinking
    assert how(events, with_thinking=False)["content"] == without


ATOMS: list[list[Event]] = [
    [TextDelta("a")],
    [ThoughtDelta("t")],
    [SignatureDelta(SIGNATURE, ON_THOUGHT)],
    [SignatureDelta(SIGNATURE, AFTER_TEXT)],
    [TextDelta("b"), SignatureDelta(SIGNATURE, ON_TEXT)],
    call("toolu_1", SIGNATURE),
    call("toolu_2"),
    [Usage(input_tokens=9, cached_tokens=4, output_tokens=5, thought_tokens=2)],
]


@pytest.mark.parametrize("with_thinking", [True, False])
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_e1_any_order_of_parts_is_a_legal_stream_and_equals_the_whole(
    length: int, with_thinking: bool
) -> None:
    for order in itertools.permutations(ATOMS, length):
        events = whole_stream(itertools.chain(*order))
        assert streamed(events, with_thinking=with_thinking) == whole(events, with_thinking=with_thinking)


def test_exact_bytes_of_a_stream() -> None:
    events = whole_stream([TextDelta('é"'), *call("toolu_1")], Finished(reason="tool_calls", raw="STOP"))
    lines = stream_bytes(events).decode().split("\n")
    assert lines[3:] == [
        "event: content_block_start",
        'data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        "",
        "event: content_block_delta",
        'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"é\\""}}',
        "",
        "event: content_block_stop",
        'data: {"type":"content_block_stop","index":0}',
        "",
        "event: content_block_start",
        'data: {"type":"content_block_start","index":1,"content_block":'
        '{"type":"tool_use","id":"toolu_1","name":"Read","input":{}}}',
        "",
        "event: content_block_delta",
        'data: {"type":"content_block_delta","index":1,"delta":'
        '{"type":"input_json_delta","partial_json":"{\\"a\\":1}"}}',
        "",
        "event: content_block_stop",
        'data: {"type":"content_block_stop","index":1}',
        "",
        "event: message_delta",
        'data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":'
        '{"input_tokens":7,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}',
        "",
        "event: message_stop",
        'data: {"type":"message_stop"}',
        "",
        "",
    ]


def test_p2_arguments_arrive_byte_for_byte() -> None:
    args = rb'{"latex": "\\title{\"x\"}\n", "n": 1.0, "big": 12345678901234567890}'
    (start, delta, stop) = parse(stream_bytes(call("a", args=args)))[1:4]
    assert start["data"]["content_block"]["input"] == {}
    assert (delta["event"], stop["event"]) == ("content_block_delta", "content_block_stop")
    assert delta["data"]["delta"]["partial_json"].encode() == args
    assert args in anthropic.encode_response(collect(whole_stream(call("a", args=args))), answer())


def test_h1_the_opening_tells_an_honest_estimate() -> None:
    (start,) = parse(anthropic.stream(answer()).open())
    assert start["event"] == "message_start"
    assert start["data"]["message"] == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 7,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 0,
        },
    }


@pytest.mark.parametrize("how", [streamed, whole])
@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, (7, 0, 0, None)),
        (Usage(input_tokens=10, output_tokens=3), (10, 0, 3, None)),
        (Usage(input_tokens=10, cached_tokens=4, output_tokens=3), (6, 4, 3, None)),
        (Usage(input_tokens=10, output_tokens=8, thought_tokens=5), (10, 0, 8, {"thinking_tokens": 5})),
        (Usage(input_tokens=4, cached_tokens=9), (0, 9, 0, None)),
    ],
)
def test_h5_h6_usage(how: object, usage: Usage | None, expected: tuple[object, ...]) -> None:
    assert callable(how)
    got = how(whole_stream([TextDelta("a")], usage=usage))["usage"]
    assert got["cache_creation_input_tokens"] == 0
    fields = ("input_tokens", "cache_read_input_tokens", "output_tokens", "output_tokens_details")
    assert tuple(got.get(field) for field in fields) == expected


def test_h5_the_last_usage_counts() -> None:
    events = whole_stream([Usage(input_tokens=1), TextDelta("a"), Usage(input_tokens=10, output_tokens=2)])
    assert streamed(events)["usage"] == whole(events)["usage"]
    assert streamed(events)["usage"]["input_tokens"] == 10


@pytest.mark.parametrize("how", [streamed, whole])
@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("end", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("blocked", "refusal"),
        ("malformed", "refusal"),
        ("other", "end_turn"),
    ],
)
def test_d1_stop_reasons(how: object, reason: StopReason, word: str) -> None:
    assert callable(how)
    message = how(whole_stream([TextDelta("a")], Finished(reason=reason, raw="RAW")))
    assert (message["stop_reason"], message["stop_sequence"]) == (word, None)
    assert ("stop_details" in message) == (word == "refusal")


@pytest.mark.parametrize("how", [streamed, whole])
def test_d3_calls_end_in_tool_use(how: object) -> None:
    assert callable(how)
    events = whole_stream(call("toolu_1"), Finished(reason="tool_calls", raw="STOP"))
    assert how(events)["stop_reason"] == "tool_use"


@pytest.mark.parametrize("how", [streamed, whole])
@pytest.mark.parametrize(("detail", "words"), [("", "Gemini stopped with SAFETY"), ("too hot", "too hot")])
def test_d7_a_refusal_says_why(how: object, detail: str, words: str) -> None:
    assert callable(how)
    message = how(whole_stream([], Finished(reason="blocked", raw="SAFETY", detail=detail)))
    assert message["stop_details"] == {"type": "refusal", "category": None, "explanation": words}


@pytest.mark.parametrize(
    "open_block",
    [[], [TextDelta("a")], [ThoughtDelta("t")], call("a")],
    ids=["none", "text", "thinking", "call"],
)
@pytest.mark.parametrize("by_event", [True, False])
def test_e7_an_error_closes_the_open_block_and_is_the_last_word(
    open_block: list[Event], by_event: bool
) -> None:
    error = UpstreamError("overloaded", kind="overloaded")
    stream = anthropic.stream(answer())
    data = stream.open() + b"".join(map(stream.feed, [Started(), *open_block]))
    data += stream.feed(Failed(error)) if by_event else stream.fail(error)
    events = parse(data)
    names = [event["event"] for event in events]
    assert names.count("content_block_start") == names.count("content_block_stop") == bool(open_block)
    assert names[-1] == "error"
    assert "message_stop" not in names
    assert events[-1]["data"] == {
        "type": "error",
        "error": {"type": "overloaded_error", "message": "overloaded"},
    }


@pytest.mark.parametrize(
    ("kind", "name"), [("invalid_request", "invalid_request_error"), ("internal", "api_error")]
)
def test_e8_what_cannot_be_retried_says_so(kind: ErrorKind, name: str) -> None:
    (event,) = parse(anthropic.stream(answer()).fail(UpstreamError("x", kind=kind)))
    assert event["data"]["error"]["type"] == name


def test_e4_ping_may_come_at_any_time_and_means_nothing() -> None:
    stream = anthropic.stream(answer())
    assert stream.ping() == b'event: ping\ndata: {"type":"ping"}\n\n'
    events = whole_stream([ThoughtDelta("t"), TextDelta("a"), *call("toolu_1", SIGNATURE)])
    data = stream.open() + b"".join(stream.ping() + stream.feed(event) for event in events) + stream.ping()
    assert data.endswith(stream.ping())
    assert assembled(data.removesuffix(stream.ping())) == streamed(events)


def test_every_event_is_one_line_of_json() -> None:
    events = whole_stream([TextDelta("a\nb\r\u2028"), *call("toolu_1", args=b'{"a":"\\n"}')])
    for frame in stream_bytes(events).split(b"\n\n")[:-1]:
        name, data = frame.split(b"\n")
        assert json.loads(data.removeprefix(b"data: "))["type"] == name.removeprefix(b"event: ").decode()
