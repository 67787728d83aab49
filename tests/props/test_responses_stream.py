"""Any legal answer: the stream is numbered without gaps, closed, and folds to the whole answer."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.dialects import openai_responses
from dragoman.errors import DragomanError
from dragoman.http.sse import SseDecoder
from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    ON_THOUGHT,
    Event,
    Finished,
    Signature,
    SignatureDelta,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
)
from dragoman.ir.grammar import check_events as legal
from tests.corpus.responses_adapter import parse_events
from tests.unit.dialects.openai_responses.stream_checks import (
    FACES,
    answer,
    folded,
    stream_bytes,
    streamed,
    whole,
)

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SIGNATURES = st.sampled_from([Signature("c2ln", "gemini-g3"), Signature("b3RoZXI", "gemini-g4")])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
ARGS = st.dictionaries(WORDS, JSON, max_size=3) | st.fixed_dictionaries({"input": WORDS})
#: Typed clients read these calls only with the arguments their types demand.
FITTING: dict[str, Any] = {
    "local_shell": {"command": ["ls"]},
    "shell": {"commands": ["ls"]},
    "patch": {"type": "delete_file", "path": "a"},
}
FINISHED = st.builds(
    Finished,
    reason=st.sampled_from(["end", "tool_calls", "max_tokens", "blocked", "malformed", "other"]),
    raw=st.just("RAW"),
    detail=WORDS,
)
ANSWERS = st.builds(answer, carries=st.booleans(), compacts=st.sampled_from([False, False, True]))


@st.composite
def calls(draw: st.DrawFn) -> list[Event]:
    name = draw(st.sampled_from(["read", *FACES]))
    args = json.dumps(FITTING.get(name) or draw(ARGS), ensure_ascii=draw(st.booleans())).encode()
    call = ToolCall(
        id=f"call_{draw(st.uuids()).hex}",
        name=name,
        args=args,
        signature=draw(st.none() | SIGNATURES),
    )
    return [call]


@st.composite
def answers(draw: st.DrawFn) -> list[Event]:
    single = st.one_of(
        st.builds(TextDelta, WORDS),
        st.builds(ThoughtDelta, WORDS),
        st.builds(SignatureDelta, SIGNATURES, st.sampled_from([ON_TEXT, AFTER_TEXT, ON_THOUGHT])),
        st.builds(Usage, input_tokens=st.integers(0, 99), output_tokens=st.integers(0, 99)),
    )
    pieces = draw(st.lists(st.builds(lambda event: [event], single) | calls(), max_size=8))
    return [Started("m", "r"), *(event for piece in pieces for event in piece), draw(FINISHED)]


@settings(max_examples=150, deadline=None)
@given(events=answers(), given_answer=ANSWERS)
def test_stream_and_whole_say_the_same(events: list[Event], given_answer: Any) -> None:
    assert legal(events) is None
    assert streamed(events, given_answer) == whole(events, given_answer)


@settings(max_examples=100, deadline=None)
@given(events=answers(), given_answer=ANSWERS)
def test_the_sdks_own_accumulator_makes_the_whole_of_the_stream(
    events: list[Event], given_answer: Any
) -> None:
    completed, last = folded(stream_bytes(events, given_answer))
    response = whole(events, given_answer)
    told = completed if response["status"] == "completed" else last
    assert told is not None
    assert json.loads(told.to_json(exclude_none=False, exclude_unset=True)) == _parsed(response)


def _parsed(response: dict[str, Any]) -> dict[str, Any]:
    """The SDK adds what it parsed to completed answers; nothing was to be parsed here."""
    if response["status"] != "completed":
        return response
    for item in response["output"]:
        for part in item.get("content", ()):
            if part["type"] == "output_text":
                part["parsed"] = None
        if item["type"] == "function_call":
            item["parsed_arguments"] = None
    return response


@settings(max_examples=100, deadline=None)
@given(events=answers(), given_answer=ANSWERS, size=st.integers(1, 400))
def test_any_slicing_and_any_ping_reads_the_same(events: list[Event], given_answer: Any, size: int) -> None:
    stream = openai_responses.stream(given_answer)
    pieces = [stream.open(), *(stream.feed(event) for event in events)]
    plain = parse_events(b"".join(pieces))
    pinged = stream.ping().join(pieces)
    decoder = SseDecoder()
    slices = (pinged[start : start + size] for start in range(0, len(pinged), size))
    got = [event for piece in slices for event in decoder.feed(piece)]
    assert [json.loads(event.data) for event in got] == [item["data"] for item in plain]


@settings(max_examples=100, deadline=None)
@given(events=answers(), given_answer=ANSWERS, data=st.data())
def test_g2_cut_anywhere_it_ends_with_one_last_event_and_numbers_rise_by_one(
    events: list[Event], given_answer: Any, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(events) - 1))
    stream = openai_responses.stream(given_answer)
    out = stream.open() + b"".join(map(stream.feed, events[:cut])) + stream.fail(DragomanError("x"))
    told = [event["data"] for event in parse_events(out)]
    assert [event["sequence_number"] for event in told] == list(range(len(told)))
    kinds = [event["type"] for event in told]
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done")
    assert kinds[-1] == "response.failed"
    assert not {"response.completed", "response.incomplete"} & set(kinds)
    done = [event["item"] for event in told if event["type"] == "response.output_item.done"]
    assert told[-1]["response"]["output"] == done
