"""The answer's stream: its order, its tools, its signatures, its end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.amazonq.stream import PIECE_CHARS
from dragoman.dialects.base import Answer
from dragoman.errors import UpstreamError
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
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    seal,
)
from tests.corpus.amazonq_adapter import parse_frames
from tests.unit.dialects.amazonq.stream_checks import answer, call, frames, last, stream_bytes, whole
from tests.unit.dialects.amazonq.strict_reader import read
from tests.unit.dialects.stream_checks import CALLED, END, OTHER, SIGNATURE, USAGE, whole_stream

Frame = tuple[str, dict[str, Any]]


def text(words: str) -> Frame:
    return "assistantResponseEvent", {"content": words}


def thought(words: str) -> Frame:
    return "reasoningContentEvent", {"text": words}


def carried(target: str, signature: Any = SIGNATURE) -> Frame:
    return "reasoningContentEvent", {"signature": seal(signature, target)}


def tool(identity: str, *pieces: str, name: str = "fs_read") -> list[Frame]:
    """Opener without input, pieces, closer: the first event's input is thrown away by the Rust clients."""
    head = {"toolUseId": identity, "name": name}
    return [
        ("toolUseEvent", head),
        *(("toolUseEvent", {**head, "input": piece}) for piece in pieces),
        ("toolUseEvent", {**head, "stop": True}),
    ]


CASES: list[tuple[str, list[Event], list[Frame]]] = [
    ("text", [TextDelta("a"), TextDelta(""), TextDelta("b")], [text("a"), text("b")]),
    ("thinking first", [ThoughtDelta("hm"), ThoughtDelta(""), TextDelta("a")], [thought("hm"), text("a")]),
    ("one tool", [TextDelta("a"), *call("t1")], [text("a"), *tool("t1", '{"a":1}')]),
    ("empty arguments", call("t1", args=b"{}"), tool("t1", "{}")),
    ("two tools", [*call("t1"), *call("t2")], [*tool("t1", '{"a":1}'), *tool("t2", '{"a":1}')]),
    (
        "a signed call",
        [TextDelta("a"), *call("t1", SIGNATURE), *call("t2", OTHER)],
        [text("a"), carried("t1"), *tool("t1", '{"a":1}'), *tool("t2", '{"a":1}')],
    ),
    (
        "a signed thought",
        [ThoughtDelta("hm"), SignatureDelta(SIGNATURE, ON_THOUGHT), TextDelta("a")],
        [thought("hm"), text("a"), carried(ON_THOUGHT)],
    ),
    (
        "a signed thought before a signed call",
        [ThoughtDelta("hm"), SignatureDelta(OTHER, ON_THOUGHT), *call("t1", SIGNATURE)],
        [thought("hm"), carried("t1"), *tool("t1", '{"a":1}')],
    ),
    (
        "a signed thought before a call",
        [ThoughtDelta("hm"), SignatureDelta(SIGNATURE, ON_THOUGHT), *call("t1")],
        [thought("hm"), carried(ON_THOUGHT), *tool("t1", '{"a":1}')],
    ),
    (
        "nothing but a thought",
        [ThoughtDelta("hm"), SignatureDelta(SIGNATURE, AFTER_TEXT)],
        [thought("hm"), carried(AFTER_TEXT)],
    ),
    ("signed text is the store's", [TextDelta("a"), SignatureDelta(SIGNATURE, ON_TEXT)], [text("a")]),
    (
        "text after the end of a thought",
        [ThoughtDelta("hm"), TextDelta("a"), SignatureDelta(SIGNATURE, AFTER_TEXT)],
        [thought("hm"), text("a")],
    ),
    ("what only Gemini says", [Native(json=b"{}"), TextDelta("a")], [text("a")]),
    (
        "what Google looked up itself",
        [
            ServerCall(id="s1", kind="web_search"),
            ServerResult(call_id="s1", kind="web_search"),
            CitedText("found", (Source(url="u"),)),
        ],
        [text("found")],
    ),
]


@pytest.mark.parametrize(
    ("events", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_order(events: list[Event], expected: list[Frame]) -> None:
    finished = CALLED if any(isinstance(event, ToolCall) for event in events) else END
    assert frames(whole_stream(events, finished)) == expected
    read(stream_bytes(whole_stream(events, finished)))


@pytest.mark.parametrize(
    ("events", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_client_that_did_not_ask_for_thinking_gets_none(events: list[Event], expected: list[Frame]) -> None:
    without = [frame for frame in expected if frame[0] != "reasoningContentEvent"]
    assert frames(whole_stream(events), answer(with_thinking=False)) == without


@pytest.mark.parametrize(("events", "_"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_whole_answer_is_the_list_of_its_events(events: list[Event], _: object) -> None:
    streamed = read(stream_bytes(whole_stream(events, usage=USAGE)))
    told = whole(whole_stream(events, usage=USAGE))
    assert (
        "".join(payload["content"] for kind, payload in told if kind == "assistantResponseEvent")
        == streamed.text
    )
    assert [kind for kind, payload in told if payload.get("stop")] == ["toolUseEvent"] * len(streamed.tools)
    assert told[-1][1]["tokenUsage"] == streamed.usage


def test_the_opening_leaves_before_anything_is_known() -> None:
    (opened,) = parse_frames(AmazonQ().stream(answer()).open())
    assert opened == ("messageMetadataEvent", {"conversationId": "c-1", "utteranceId": "utt_1"})
    (nameless,) = parse_frames(AmazonQ().stream(Answer(id="utt_9", model="")).open())
    assert nameless[1] == {"conversationId": "utt_9", "utteranceId": "utt_9"}


def test_long_arguments_come_in_pieces_that_are_whole_text() -> None:
    args = json.dumps({"text": "ü😀" * PIECE_CHARS}, ensure_ascii=False)
    found = frames(whole_stream(call("t1", args=args.encode())))
    pieces = [payload["input"] for _, payload in found if "input" in payload]
    assert "".join(pieces) == args
    assert [len(piece) for piece in pieces[:-1]] == [PIECE_CHARS] * (len(pieces) - 1)
    assert len(pieces) == 3
    assert read(stream_bytes(whole_stream(call("t1", args=args.encode()), CALLED))).calls == [
        ("fs_read", json.loads(args))
    ]


@pytest.mark.parametrize(
    ("finished", "reason"),
    [
        (END, "END_TURN"),
        (CALLED, "TOOL_USE"),
        (Finished(reason="max_tokens", raw="MAX_TOKENS"), "MAX_TOKENS"),
        (Finished(reason="blocked", raw="SAFETY"), "CONTENT_FILTERED"),
        (Finished(reason="malformed", raw="MALFORMED_FUNCTION_CALL"), "UNKNOWN"),
        (Finished(reason="other", raw="NEW"), "END_TURN"),
    ],
)
def test_every_stream_ends_with_a_stop_reason(finished: Finished, reason: str) -> None:
    assert last(whole_stream([TextDelta("a")], finished))["stopReason"] == reason


def test_tokens_are_told_without_the_cached_ones() -> None:
    assert last(whole_stream([TextDelta("a")], usage=USAGE)) == {
        "stopReason": "END_TURN",
        "tokenUsage": {
            "uncachedInputTokens": 40,
            "outputTokens": 9,
            "totalTokens": 109,
            "cacheReadInputTokens": 60,
            "cacheWriteInputTokens": 0,
        },
    }
    estimated = last(whole_stream([TextDelta("a")]))["tokenUsage"]
    assert (estimated["uncachedInputTokens"], estimated["totalTokens"]) == (7, 7)


@pytest.mark.parametrize(
    ("usage", "context", "expected"),
    [
        (USAGE, 1000, [("contextUsageEvent", {"contextUsagePercentage": 10.5})]),
        (USAGE, 3, [("contextUsageEvent", {"contextUsagePercentage": 3500.0})]),
        (USAGE, 0, []),
        (Usage(), 1000, []),
    ],
)
def test_how_full_the_context_is(usage: Usage, context: int, expected: list[Frame]) -> None:
    found = frames(whole_stream([TextDelta("a")], usage=usage), answer(context_tokens=context))
    assert found == [text("a"), *expected]


@pytest.mark.parametrize(
    ("finished", "words"),
    [
        (Finished(reason="blocked", raw="SAFETY"), "(Gemini stopped with SAFETY)"),
        (Finished(reason="blocked", raw="SAFETY", detail="Not this."), "(Not this.)"),
        (Finished(reason="max_tokens", raw="MAX_TOKENS"), "(Gemini stopped with MAX_TOKENS)"),
    ],
)
def test_a_silent_end_is_explained_because_old_clients_know_no_stop_reason(
    finished: Finished, words: str
) -> None:
    assert frames(whole_stream([ThoughtDelta("hm")], finished)) == [thought("hm"), text(words)]
    assert frames(whole_stream([TextDelta("a")], finished)) == [text("a")]
    assert frames(whole_stream([])) == []


def test_a_blocked_answer_says_why() -> None:
    finished = Finished(reason="blocked", raw="SAFETY", detail="Not this.")
    assert last(whole_stream([TextDelta("a")], finished))["stopDetails"] == {
        "refusal": {"explanation": "Not this."}
    }


def test_a_ping_never_ends_a_tool() -> None:
    stream = AmazonQ().stream(answer())
    stream.open()
    assert parse_frames(stream.ping()) == [("ping", {})]
    told = parse_frames(stream.feed(ToolCall(id="t1", name="x")))
    assert told[-1][1]["stop"]
    assert parse_frames(stream.ping()) == [("ping", {})]


@pytest.mark.parametrize(("kiro", "name"), [(False, "error"), (True, "throttlingError")])
def test_a_failure_is_an_exception_never_a_mere_end(kiro: bool, name: str) -> None:
    error = UpstreamError("busy", kind="overloaded", status=503)
    data = stream_bytes([TextDelta("a"), Failed(error)], answer(kiro=kiro))
    found = read(data)
    assert (found.text, found.failure, found.complaint["message"]) == ("a", name, "busy")


def test_nobody_counts_here_but_the_words_are_there() -> None:
    assert AmazonQ().encode_count(7) == b'{"inputTokens":7}'
