"""The order of events, folding them into an answer, and unfolding it again."""

from __future__ import annotations

import pytest

from dragoman.errors import UpstreamIncomplete
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Event,
    Failed,
    Finished,
    Native,
    Response,
    Signature,
    SignatureDelta,
    Started,
    Text,
    TextDelta,
    Thought,
    ThoughtDelta,
    ToolCall,
    Usage,
    collect,
    replay,
)
from dragoman.ir.grammar import check_events

SIGNATURE = Signature("s", "gemini-g3")
OTHER = Signature("t", "gemini-g3")
END = Finished(reason="end", raw="STOP")
CALL = ToolCall(id="c1", name="read", args=b'{"x":1}', signature=SIGNATURE)


@pytest.mark.parametrize(
    "events",
    [
        [Started(), END],
        [Failed(UpstreamIncomplete("x"))],
        [Started(), Failed(UpstreamIncomplete("x"))],
        [Started(), TextDelta("a"), Usage(), SignatureDelta(SIGNATURE, ON_TEXT), Usage(), END],
        [Started(), ThoughtDelta("a"), TextDelta("b"), ThoughtDelta("c"), END],
        [Started(), CALL, CALL, Usage(), END],
        [Started(), CALL, Failed(UpstreamIncomplete("x"))],
    ],
)
def test_legal_streams_pass(events: list[Event]) -> None:
    assert check_events(events) is None


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([], "the stream ends while waiting"),
        ([Started()], "the stream ends while answering"),
        ([Started(), CALL], "the stream ends while answering"),
        ([CALL], "event 0: ToolCall while waiting"),
        ([TextDelta("a")], "event 0: TextDelta while waiting"),
        ([Started(), Started()], "event 1: Started while answering"),
        ([Started(), END, END], "event 2: Finished while over"),
        ([Failed(UpstreamIncomplete("x")), END], "event 1: Finished while over"),
    ],
)
def test_an_illegal_stream_is_named_at_its_first_fault(events: list[Event], problem: str) -> None:
    assert check_events(events) == problem


@pytest.mark.parametrize(
    ("events", "parts"),
    [
        ([], ()),
        ([TextDelta("a"), TextDelta("b")], (Text(text="ab"),)),
        ([ThoughtDelta("a"), TextDelta("b")], (Thought(text="a"), Text(text="b"))),
        (
            [TextDelta("a"), ThoughtDelta("b"), TextDelta("c")],
            (Text(text="a"), Thought(text="b"), Text(text="c")),
        ),
        ([TextDelta("a"), SignatureDelta(SIGNATURE, ON_TEXT)], (Text(text="a", signature=SIGNATURE),)),
        (
            [TextDelta("a"), SignatureDelta(SIGNATURE, AFTER_TEXT)],
            (Text(text="a"), Text(text="", signature=SIGNATURE)),
        ),
        ([SignatureDelta(SIGNATURE, AFTER_TEXT)], (Text(text="", signature=SIGNATURE),)),
        ([SignatureDelta(SIGNATURE, ON_TEXT)], (Text(text="", signature=SIGNATURE),)),
        ([SignatureDelta(SIGNATURE, ON_THOUGHT)], (Thought(text="", signature=SIGNATURE),)),
        (
            [TextDelta("a"), SignatureDelta(SIGNATURE, ON_THOUGHT), TextDelta("b")],
            (Text(text="a"), Thought(text="", signature=SIGNATURE), Text(text="b")),
        ),
        (
            [ThoughtDelta("a"), SignatureDelta(SIGNATURE, ON_TEXT)],
            (Thought(text="a"), Text(text="", signature=SIGNATURE)),
        ),
        (
            [
                TextDelta("a"),
                SignatureDelta(SIGNATURE, ON_TEXT),
                TextDelta("b"),
                SignatureDelta(OTHER, ON_TEXT),
            ],
            (Text(text="a", signature=SIGNATURE), Text(text="b", signature=OTHER)),
        ),
        (
            [TextDelta("a"), CALL, TextDelta("b")],
            (Text(text="a"), CALL, Text(text="b")),
        ),
    ],
)
def test_a2_signatures_stay_on_the_part_they_came_with(
    events: list[Event], parts: tuple[object, ...]
) -> None:
    assert collect([Started("m", "r"), *events, END]).parts == parts


def test_the_last_usage_counts_and_the_head_is_kept() -> None:
    usage = Usage(input_tokens=2, output_tokens=3)
    response = collect([Started("m", "r"), Usage(input_tokens=1), usage, END])
    assert response == Response(model="m", response_id="r", usage=usage, finished=END)


def test_e7_a_failure_is_raised_not_folded() -> None:
    error = UpstreamIncomplete("cut")
    with pytest.raises(UpstreamIncomplete) as caught:
        collect([Started(), TextDelta("half"), CALL, Failed(error)])
    assert caught.value is error


def test_an_answer_without_an_end_is_no_clean_end() -> None:
    assert collect([Started(), TextDelta("a")]).finished.reason == "other"


PART = Native(json=b'{"executableCode":{}}')
FIELD = Native(json=b"{}", field="groundingMetadata")


def test_replay_gives_each_part_its_own_events() -> None:
    response = Response(
        parts=(
            Thought(text="hm", signature=OTHER),
            Thought(text="", signature=OTHER),
            Thought(text="unsigned"),
            Text(text="a"),
            Text(text="", signature=SIGNATURE),
            CALL,
            ToolCall(id="c2", name="read"),
            PART,
        ),
        native=(FIELD,),
        finished=END,
    )
    events = list(replay(response))
    assert events == [
        Started(),
        ThoughtDelta("hm"),
        SignatureDelta(OTHER, ON_THOUGHT),
        SignatureDelta(OTHER, ON_THOUGHT),
        ThoughtDelta("unsigned"),
        TextDelta("a"),
        SignatureDelta(SIGNATURE, AFTER_TEXT),
        CALL,
        ToolCall(id="c2", name="read"),
        PART,
        FIELD,
        Usage(),
        END,
    ]
    assert check_events(events) is None
    assert collect(events) == response


def test_the_arguments_of_a_call_can_be_read() -> None:
    assert ToolCall(id="c", name="n", args=b'{"a":[1]}').arguments == {"a": [1]}
    assert ToolCall(id="c", name="n").arguments == {}
