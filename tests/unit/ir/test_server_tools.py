"""Tools a service runs for the model, and text with its sources: their order, folding and unfolding."""

from __future__ import annotations

import pytest

from dragoman.errors import UpstreamIncomplete
from dragoman.ir import (
    ON_TEXT,
    Citation,
    CitedText,
    Event,
    Failed,
    Finished,
    Message,
    SealedSignature,
    ServerCall,
    ServerResult,
    Signature,
    SignatureDelta,
    Source,
    Started,
    Text,
    TextDelta,
    ThoughtDelta,
    Usage,
    collect,
    place_signatures,
    replay,
)
from dragoman.ir.grammar import check_events

END = Finished(reason="end", raw="STOP")
SIGNATURE = Signature("[]", "gemini-g3")
A, B = Source(url="https://a.org", title="A"), Source(url="https://b.org")
CALL = ServerCall(id="s1", kind="web_search", name="web_search", args=b'{"queries":["q"]}')
RESULT = ServerResult(call_id="s1", kind="web_search", sources=(A, B))
OTHER = ServerCall(id="s2", kind="mcp", name="read", label="docs")
ANSWER = ServerResult(call_id="s2", kind="mcp", output="text", error="")


@pytest.mark.parametrize(
    "events",
    [
        [CALL, RESULT, CitedText("a", (A,))],
        [CALL, OTHER, ANSWER, RESULT],
        [CALL, TextDelta("meanwhile"), Usage(), RESULT, CALL, RESULT],
    ],
)
def test_a_server_call_is_answered_once_by_its_id(events: list[Event]) -> None:
    assert check_events([Started(), *events, END]) is None


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ([Started(), CALL, END], "event 2: Finished without the result of s1"),
        ([Started(), RESULT, END], "event 1: ServerResult s1 of no call"),
        ([Started(), CALL, CALL], "event 2: ServerCall s1 runs already"),
        ([Started(), CALL, RESULT, RESULT], "event 3: ServerResult s1 of no call"),
        ([CALL], "event 0: ServerCall while waiting"),
    ],
)
def test_an_unanswered_or_stray_one_is_named(events: list[Event], problem: str) -> None:
    assert check_events(events) == problem


def test_a_failure_leaves_a_call_unanswered() -> None:
    assert check_events([Started(), CALL, Failed(UpstreamIncomplete("x"))]) is None


def test_cited_pieces_are_one_text_with_their_places() -> None:
    response = collect(
        [
            Started(),
            CALL,
            RESULT,
            TextDelta("It is "),
            CitedText("ø so", (A, B)),
            CitedText("!", (B,)),
            TextDelta(" Really."),
            SignatureDelta(SIGNATURE, ON_TEXT),
            CitedText("alone", (A,)),
            ThoughtDelta("hm"),
            TextDelta("bare"),
            END,
        ]
    )
    text = Text(
        text="It is ø so! Really.",
        signature=SIGNATURE,
        citations=(
            Citation(start=6, end=10, sources=(A, B)),
            Citation(start=10, end=11, sources=(B,)),
        ),
    )
    assert response.parts[:3] == (CALL, RESULT, text)
    assert response.parts[3] == Text(text="alone", citations=(Citation(start=0, end=5, sources=(A,)),))
    assert response.parts[5] == Text(text="bare")


def test_what_was_folded_unfolds_again() -> None:
    events: list[Event] = [
        Started("m", "r"),
        TextDelta("first"),
        CALL,
        RESULT,
        CitedText("a", (A,)),
        TextDelta("b"),
        CitedText("c", (B,)),
        OTHER,
        ANSWER,
        Usage(searches=1, fetches=2),
        END,
    ]
    assert list(replay(collect(events))) == events


def test_what_the_service_wants_back_finds_its_call_again() -> None:
    message = Message(role="model", parts=(CALL, RESULT))
    (placed, result) = place_signatures(message.parts, [SealedSignature(SIGNATURE, "s1")])
    assert isinstance(placed, ServerCall)
    assert placed.signature == SIGNATURE
    assert result is RESULT
