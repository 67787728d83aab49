"""Google's answers to events: every shape an answer can have, and every shape it must not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.gemini.stream import GeminiStream
from dragoman.dialects.gemini.wire import NATIVE_FIELDS, Chunk, decode_chunk
from dragoman.errors import UpstreamError, UpstreamIncomplete, UpstreamProtocolError
from dragoman.ir import Event, Failed, Native, ServerTool, Signature, TextDelta, ThoughtDelta, ToolCall, Usage
from dragoman.ir.grammar import check_events
from tests.unit.dialects.gemini.builders import (
    array,
    calling,
    chunk,
    comparable,
    encode,
    new_stream,
    read,
    sse,
)
from tests.unit.dialects.gemini.recorded_answers import FIRST, SITUATIONS, STARTED, WRONG, called, end


def failure(events: list[Event]) -> UpstreamError:
    assert check_events(events) is None
    last = events[-1]
    assert isinstance(last, Failed)
    assert isinstance(last.error, UpstreamError)
    return last.error


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_network_read_per_chunk_takes_the_short_way_to_the_same_events(name: str) -> None:
    chunks, expected = SITUATIONS[name]
    stream = new_stream()
    events = [event for one in chunks for event in stream.feed(sse(one))] + stream.close()
    assert events == [STARTED, *expected]


@pytest.mark.parametrize("field", NATIVE_FIELDS.values())
def test_whatever_stands_beside_the_parts_is_told(field: str) -> None:
    stream = new_stream()
    stream.feed(sse(chunk({"text": "a"})))
    candidate = {"content": {"parts": [{"text": "b"}]}, field: {"c": 1}}
    assert stream.feed(sse({"candidates": [candidate]})) == [
        TextDelta("b"),
        Native(json=b'{"c":1}', field=field),
    ]


def test_a_stream_of_words_is_searched_for_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[bytes] = []

    def decode(frame: bytes) -> Chunk:
        looked_at.append(frame)
        return decode_chunk(frame)

    monkeypatch.setattr("dragoman.dialects.gemini.stream.decode_chunk", decode)
    usage = {"promptTokenCount": 7}
    words = [chunk({"text": text}, usage=usage) for text in "abcd"]
    thought = chunk({"text": "t", "thought": True})
    events = read(sse(words[0], thought, *words[1:], chunk(calling(), finish="STOP"), chunk({"text": "e"})))
    told = [TextDelta("a"), ThoughtDelta("t"), *map(TextDelta, "bcd"), *called(FIRST), TextDelta("e")]
    assert events == [STARTED, *told, Usage(input_tokens=7), end("tool_calls")]
    assert len(looked_at) == 3  # the first, the call, and what comes behind it


@pytest.mark.parametrize(
    "other",
    [
        {"error": {"code": 503, "message": "m"}},
        {"promptFeedback": {"blockReason": "SAFETY"}},
        {"candidates": [{"content": {"parts": [{"text": "b"}]}, "finishReason": "MAX_TOKENS"}]},
        {"candidates": [{"content": {"parts": [{"text": "b", "thoughtSignature": "s"}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "b"}]}, "safetyRatings": []}]},
        {"candidates": [{"content": {"parts": [{"text": "b", "inlineData": {}}]}}]},
        {"candidates": [{"content": {"parts": [{"text": "b"}]}, "index": None}], "createTime": "now"},
        {"candidates": [{"content": {"parts": [{"text": 1}]}}]},
        {
            "candidates": [
                {"content": {"parts": [{"text": ""}]}},
                {"content": {"parts": [{"text": "b"}]}, "index": 1},
            ]
        },
        {"candidates": None},
        {},
    ],
)
def test_a_chunk_with_anything_but_words_is_looked_at(other: Any) -> None:
    data = sse(chunk({"text": "a"}), other, chunk({"text": "c"}, finish="STOP"))
    careful = new_stream()
    careful._words = lambda *_: False  # type: ignore[method-assign]
    assert comparable(read(data)) == comparable(read(data, careful))


def test_of_counts_that_come_in_turns_the_last_of_each_kind_holds() -> None:
    stream = new_stream()
    for usage in (
        {"promptTokenCount": 7, "candidatesTokenCount": 1},
        {"promptTokenCount": 9, "thoughtsTokenCount": 3},
        {},
        {"promptTokenCount": 8, "candidatesTokenCount": 2},
    ):
        stream.feed(sse(chunk({"text": "a"}, usage=usage)))
    stream.feed(sse(chunk(finish="STOP")))
    assert len(stream._snapshots) == 3
    assert stream.close()[-2] == Usage(input_tokens=8, output_tokens=5, thought_tokens=3)


def test_a_very_long_stream_keeps_no_snapshot_of_every_chunk() -> None:
    stream = new_stream()
    for number in range(2_500):
        usage = {"promptTokenCount": 7, "candidatesTokenCount": number, "text": f"model{number}"}
        stream.feed(sse(chunk({"text": "a"}, usage=usage)))
        assert len(stream._snapshots) <= 1_000
    stream.feed(sse(chunk(finish="STOP", usage={"thoughtsTokenCount": 1})))
    assert stream.close()[-2] == Usage(input_tokens=7, output_tokens=2_500, thought_tokens=1)


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("frame", [sse, array], ids=["sse", "array"])
@pytest.mark.parametrize("name", SITUATIONS)
def test_situation(name: str, frame: Any, size: int) -> None:
    chunks, expected = SITUATIONS[name]
    events = read(frame(*chunks), size=size)
    assert events == [STARTED, *expected]
    assert check_events(events) is None


def test_a_whole_answer_is_a_stream_of_one_chunk() -> None:
    chunks = [chunk({"text": "a"}, calling(id="x"), finish="STOP", usage={"promptTokenCount": 1})]
    assert read(json.dumps(chunks[0], indent=2).encode()) == read(sse(*chunks))


def test_d4_a_dropped_half_call_is_noted() -> None:
    stream = new_stream()
    read(sse(chunk(calling(willContinue=True)), chunk(finish="MAX_TOKENS")), stream)
    assert [(note.kind, note.where) for note in stream.notes] == [("dropped", "read")]


def test_b15_with_one_call_at_a_time_the_others_are_dropped_with_a_note() -> None:
    stream = new_stream(single_call=True)
    data = sse(
        chunk(calling(id="a", signature="s"), calling("write", id="b", willContinue=True)),
        chunk(calling(None, partialArgs=[{"jsonPath": "$.x", "stringValue": "y"}])),
        chunk(finish="STOP"),
    )
    assert read(data, stream) == [STARTED, *called(f"{FIRST}-a", signature="s"), end("tool_calls")]
    assert [(note.kind, note.where) for note in stream.notes] == [("dropped", "write")]


_PATH = {"jsonPath": "$.path", "stringValue": "x"}


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(calling(id="a", args={"path": "x"})), chunk(calling(id="a", args={"path": "x"}))],
        [chunk(calling(id="a", args={"path": "x"}), calling(id="a", args={"path": "x"}))],
        [
            chunk(calling(id="a", willContinue=True)),
            chunk(calling(id="a", willContinue=True)),
            chunk(calling(None, partialArgs=[_PATH])),
        ],
        [chunk(calling(id="a", args={"path": "x"})), chunk(calling(id="a", partialArgs=[_PATH]))],
        [chunk(calling(id="a", args={"path": "x"}))] * 3,
    ],
    ids=["in two chunks", "in one", "begun twice", "once whole, once in pieces", "three times"],
)
def test_a_call_that_is_told_twice_is_made_once(chunks: list[Any]) -> None:
    """A proxy that loses its place repeats a chunk; nobody wants a letter sent twice."""
    events = read(sse(*chunks, chunk(finish="STOP")))
    args = [json.loads(event.args) for event in events if isinstance(event, ToolCall)]
    assert args == [{"path": "x"}]


@pytest.mark.parametrize("fields", [{}, {"id": "a"}], ids=["no id to tell them apart", "other arguments"])
def test_calls_that_only_look_alike_are_all_made(fields: Any) -> None:
    other = {"path": "y"} if fields else {"path": "x"}
    events = read(
        sse(chunk(calling(args={"path": "x"}, **fields), calling(args=other, **fields), finish="STOP"))
    )
    assert sum(isinstance(event, ToolCall) for event in events) == 2


@pytest.mark.parametrize("server_tools", [(), (ServerTool(kind="web_search"),)])
def test_the_reader_knows_when_nothing_but_counts_can_follow(server_tools: tuple[ServerTool, ...]) -> None:
    stream = encode(server_tools=server_tools).reader()
    stream.feed(sse(chunk({"text": "a"})))
    assert not stream.has_finish
    stream.feed(sse(chunk(finish="STOP")))
    assert stream.has_finish


def test_the_reader_of_a_request_knows_its_names_origin_and_ids() -> None:
    from dragoman.ir import Tool, ToolChoice

    encoded = encode(tools=(Tool(name="a b"),), tool_choice=ToolChoice(parallel=False), backend="vertex")
    wire = json.loads(encoded.body)["tools"][0]["functionDeclarations"][0]["name"]
    data = sse(chunk(calling(wire, signature="s"), calling(wire), finish="STOP"))
    reader = encoded.reader()
    assert isinstance(reader, GeminiStream)
    events = read(data, reader)
    assert events[1] == ToolCall(
        id="toolu_0000000000000000", name="a b", signature=Signature("s", "vertex-g3")
    )
    assert len(events) == 3
    assert read(data, encoded.reader()) == events  # type: ignore[arg-type]


@pytest.mark.parametrize("frame", [sse, array], ids=["sse", "array"])
@pytest.mark.parametrize(
    "chunks",
    [
        [],
        [chunk({"text": "a"})],
        [chunk(calling(willContinue=True))],
        [{}],
        [chunk(finish="FINISH_REASON_UNSPECIFIED")],
    ],
)
def test_e7_a_stream_without_a_finish_is_cut_and_may_be_retried(frame: Any, chunks: list[Any]) -> None:
    error = failure(read(frame(*chunks)))
    assert isinstance(error, UpstreamIncomplete)
    assert error.retryable


@pytest.mark.parametrize("frame", [sse, array], ids=["sse", "array"])
def test_e7_an_error_in_the_stream_keeps_its_kind(frame: Any) -> None:
    wire = {
        "error": {
            "code": 503,
            "message": "high demand",
            "status": "UNAVAILABLE",
            "details": [{"retryDelay": "2s"}],
        }
    }
    events = read(frame(chunk({"text": "a"}), wire, chunk({"text": "b"}, finish="STOP")))
    assert events[:2] == [STARTED, TextDelta("a")]
    error = failure(events)
    assert (error.kind, error.message, error.retry_after_s, error.status) == (
        "overloaded",
        "high demand",
        2,
        503,
    )
    assert len(events) == 3


@pytest.mark.parametrize(
    "data",
    [
        b'[{"error":{"code":429,"message":"m"}}]',
        b'{"error":{"code":429,"message":"m"}}',
        b'data: [{"error":{"code":429,"message":"m"}}]\n\n',
    ],
)
def test_e7_an_error_instead_of_a_stream(data: bytes) -> None:
    assert failure(read(data)).kind == "rate_limit"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("boom", "boom"),
        (5, "the upstream sent an error without an explanation"),
        ({}, "the upstream gave no reason"),
    ],
)
def test_e7_an_error_of_any_type_is_an_error(error: Any, message: str) -> None:
    assert failure(read(sse(chunk({"text": "a"}), {"error": error}))).message == message


@pytest.mark.parametrize("size", [0, 1, 11])
@pytest.mark.parametrize("data", WRONG)
def test_d5_e6_whatever_comes_the_stream_ends_in_a_typed_error(data: bytes, size: int) -> None:
    if size == 1 and len(data) > 10_000:
        size = 999
    good = sse(chunk({"text": "a"})) if data.startswith(b"data") else b""
    events = read(good + data, size=size)
    error = failure(events)
    assert isinstance(error, UpstreamProtocolError)
    assert error.retryable
    assert comparable(events) == comparable(read(good + data))


def test_e6_nothing_is_lost_of_what_came_before_the_garbage() -> None:
    events = read(sse(chunk({"text": "a"})) + b"data: x\n\n" + sse(chunk({"text": "b"}, finish="STOP")))
    assert events[:2] == [STARTED, TextDelta("a")]
    assert len(events) == 3


def test_c10_arguments_that_are_no_object_name_their_tool() -> None:
    error = failure(read(sse(chunk(calling(args="x"), finish="STOP"))))
    assert (error.kind, error.message) == ("overloaded", "the arguments of read are not an object")


def test_after_the_end_nothing_more_is_said() -> None:
    stream = new_stream()
    read(sse(chunk({"text": "a"}, finish="STOP")), stream)
    assert stream.feed(sse(chunk({"text": "b"}))) == []
    assert stream.close() == []
    broken = new_stream()
    read(b"data: x\n\n", broken)
    assert broken.feed(b"data: y\n\n") == []
    assert broken.feed(b'data: {"a":') == []
    assert broken.close() == []


def test_an_oversized_event_fails_the_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = new_stream()
    stream.feed(b"data: ")
    monkeypatch.setattr(stream._frames._decoder._sse, "_max_event_bytes", 100)  # type: ignore[union-attr]
    events = stream.feed(b"x" * 101)
    assert "longer than" in failure(events).message
    assert stream.feed(b"more" * 100) == []


def test_nothing_at_all_is_a_cut() -> None:
    assert isinstance(failure(read(b"")), UpstreamIncomplete)
    assert isinstance(failure(read(b" \r\n")), UpstreamIncomplete)
    assert isinstance(failure(read(b"data: [DONE]\n\n")), UpstreamIncomplete)
    assert isinstance(failure(read(b"<html>Bad gateway</html>")), UpstreamIncomplete)
    assert isinstance(failure(read(b"}{")), UpstreamIncomplete)
