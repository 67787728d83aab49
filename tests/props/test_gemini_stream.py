"""Always: the slicing and the framing of an answer change nothing, its events are in legal order, and it ends."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.ir import (
    Event,
    Failed,
    Finished,
    Response,
    Signature,
    Text,
    Thought,
    ToolCall,
    Usage,
    collect,
    replay,
)
from dragoman.ir.collect import AnswerPart
from dragoman.ir.grammar import check_events
from tests.unit.dialects.gemini.builders import array, comparable, new_stream, read, sse

Json = dict[str, Any]

moderate = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
SOME = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
NAMES = st.sampled_from(["read", "default_api.read", "a b", "unknown"])
SIGNATURES = st.sampled_from([{}, {}, {"thoughtSignature": "c2lnbmVk"}, {"thoughtSignature": ""}])
ARGUMENTS = st.dictionaries(
    WORDS, st.one_of(st.none(), st.booleans(), st.integers(), WORDS, st.lists(WORDS, max_size=2)), max_size=3
)
PIECES = st.lists(
    st.fixed_dictionaries(
        {"jsonPath": st.sampled_from(["$", "$.a", "$.b.c", "$.d[0]", "$.d[1].e", "$['f.g']"])},
        optional={"stringValue": WORDS, "willContinue": st.booleans()},
    ),
    max_size=3,
)
FINISH = st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "NEW_ONE"])
COUNTS = st.fixed_dictionaries(
    {},
    optional={
        name: st.integers(0, 9_999)
        for name in (
            "promptTokenCount",
            "candidatesTokenCount",
            "thoughtsTokenCount",
            "cachedContentTokenCount",
            "toolUsePromptTokenCount",
        )
    },
)


@st.composite
def parts(draw: st.DrawFn) -> Json:
    kind = draw(st.sampled_from(["text", "text", "thought", "call", "open", "piece", "end", "other"]))
    extra = draw(SIGNATURES)
    if kind == "text":
        return {"text": draw(WORDS), **extra}
    if kind == "thought":
        return {"text": draw(WORDS), "thought": True, **extra}
    if kind == "call":
        call = {"name": draw(NAMES), "args": draw(ARGUMENTS), "id": draw(st.sampled_from(["x1", "a/b", ""]))}
        return {"functionCall": call, **extra}
    if kind == "open":
        return {"functionCall": {"name": draw(NAMES), "willContinue": True}, **extra}
    if kind == "piece":
        return {"functionCall": {"partialArgs": draw(PIECES), "willContinue": draw(st.booleans())}}
    return {"functionCall": {}} if kind == "end" else {"executableCode": {"code": draw(WORDS)}}


@st.composite
def chunks(draw: st.DrawFn) -> list[Json]:
    """Answers such as Google gives them, in every order of parts."""
    found: list[Json] = []
    for _ in range(draw(st.integers(0, 5))):
        candidate: Json = {"content": {"parts": draw(st.lists(parts(), max_size=3))}, "index": 0}
        usage = draw(st.one_of(st.just({}), COUNTS.map(lambda counts: {"usageMetadata": counts})))
        found.append({"candidates": [candidate], "modelVersion": "m", "responseId": "r", **usage})
    end = draw(st.sampled_from(["finish", "finish", "finish", "cut", "blocked", "error"]))
    if end == "finish":
        found.append({"candidates": [{"finishReason": draw(FINISH)}]})
    elif end == "blocked":
        found.append({"promptFeedback": {"blockReason": "SAFETY"}})
    elif end == "error":
        found.append({"error": {"code": 503, "message": draw(WORDS)}})
    return found


def sliced(data: bytes, seed: int) -> list[Event]:
    """The events of `data` in slices of random length, empty ones among them."""
    chance, stream, events, start = random.Random(seed), new_stream(), [], 0
    while start < len(data):
        size = chance.choice([0, 1, 2, 3, 10, 50])
        events += stream.feed(data[start : start + size])
        start += size
    return events + stream.close()


@given(chunks(), st.integers(0, 2**32))
@moderate
def test_e6_any_slicing_gives_the_same_events(given_chunks: list[Json], seed: int) -> None:
    for frame in (sse, array):
        data = frame(*given_chunks)
        whole = comparable(read(data))
        assert comparable(read(data, size=1)) == whole
        assert comparable(sliced(data, seed)) == whole


PLAIN_PARTS = st.fixed_dictionaries({"text": WORDS}, optional={"thought": st.booleans()})


@given(chunks(), st.lists(st.lists(PLAIN_PARTS, max_size=2), max_size=4), st.integers(0, 9))
@moderate
def test_words_mean_the_same_whether_anything_else_is_looked_for_or_not(
    given_chunks: list[Json], said: list[list[Json]], place: int
) -> None:
    words = [
        {"candidates": [{"content": {"parts": parts, "role": "model"}, "index": number % 2}]}
        for number, parts in enumerate(said)
    ]
    data = sse(*given_chunks[:place], *words, *given_chunks[place:])
    careful = new_stream()
    careful._words = lambda *_: False  # type: ignore[method-assign]
    assert comparable(read(data)) == comparable(read(data, careful))


@given(chunks())
@moderate
def test_both_framings_give_the_same_events(given_chunks: list[Json]) -> None:
    assert comparable(read(sse(*given_chunks))) == comparable(read(array(*given_chunks)))


@given(chunks(), st.sampled_from([b"\n", b"\r", b"\r\n"]), st.booleans(), st.booleans())
@moderate
def test_e6_any_way_to_write_server_sent_events_gives_the_same_events(
    given_chunks: list[Json], newline: bytes, spaced: bool, pretty: bool
) -> None:
    documents = [json.dumps(chunk, indent=2 if pretty else None).encode() for chunk in given_chunks]
    prefix = b"data: " if spaced or pretty else b"data:"  # without it an indent would lose a space
    data = b""
    for document in documents:
        data += b": a comment" + newline + b"id: 1" + newline
        data += newline.join(prefix + line for line in document.split(b"\n")) + newline + newline
    assert comparable(read(data, size=3)) == comparable(read(b"[" + b",".join(documents) + b"]"))


@given(chunks())
@moderate
def test_e1_events_are_always_in_legal_order_and_end(given_chunks: list[Json]) -> None:
    events = read(sse(*given_chunks))
    assert check_events(events) is None
    assert isinstance(events[-1], Finished | Failed)


@given(chunks())
@moderate
def test_d3_d4_the_stop_reason_agrees_with_the_calls(given_chunks: list[Json]) -> None:
    events = read(sse(*given_chunks))
    if isinstance(events[-1], Failed):
        return
    response = collect(events)
    calls = any(isinstance(part, ToolCall) for part in response.parts)
    assert (response.finished.reason == "tool_calls") == (calls and response.finished.raw == "STOP")


@given(chunks())
@moderate
def test_a_collected_answer_replays_to_itself(given_chunks: list[Json]) -> None:
    events = read(sse(*given_chunks))
    if isinstance(events[-1], Failed):
        return
    response = collect(events)
    again = list(replay(response))
    assert check_events(again) is None
    assert collect(again) == response


SIGNED = st.one_of(st.none(), st.builds(Signature, SOME, st.just("gemini-g3")))
ANY_PART: st.SearchStrategy[AnswerPart] = st.one_of(
    st.builds(Text, text=WORDS, signature=SIGNED),
    st.builds(Thought, text=WORDS, signature=SIGNED),
    st.builds(
        ToolCall,
        id=SOME,
        name=SOME,
        args=ARGUMENTS.map(lambda args: json.dumps(args).encode()),
        signature=SIGNED,
    ),
)


def normal(parts: list[AnswerPart]) -> tuple[AnswerPart, ...]:
    """No part without words or signature, none that the one before it would swallow."""
    kept: list[AnswerPart] = []
    for part in parts:
        if isinstance(part, Text | Thought):
            if not part.text and part.signature is None:
                continue
            last = kept[-1] if kept else None
            swallows = type(last) is type(part) and getattr(last, "signature", None) is None
            if swallows and (part.text or isinstance(part, Thought)):
                continue
        kept.append(part)
    return tuple(kept)


@given(st.lists(ANY_PART, max_size=6), st.builds(Usage, input_tokens=st.integers(0)), WORDS, FINISH)
@moderate
def test_collect_of_replay_is_the_identity(
    found: list[AnswerPart], usage: Usage, model: str, raw: str
) -> None:
    response = Response(
        parts=normal(found), usage=usage, model=model, finished=Finished(reason="other", raw=raw)
    )
    events = list(replay(response))
    assert check_events(events) is None
    assert collect(events) == response


@given(chunks(), st.data())
@moderate
def test_mutated_bytes_still_give_a_legal_stream_that_ends(
    given_chunks: list[Json], data: st.DataObject
) -> None:
    raw = bytearray(data.draw(st.sampled_from([sse, array]))(*given_chunks))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, max(0, len(raw) - 1)))
        match data.draw(st.sampled_from(["change", "insert", "delete", "cut", "repeat"])):
            case "change":
                raw[place : place + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case "insert":
                raw[place:place] = data.draw(
                    st.sampled_from([b'"', b"{", b"}", b"]", b"\\", b"\r", b"\n\n", b"\xff", b"null"])
                )
            case "delete":
                del raw[place : place + data.draw(st.integers(1, 9))]
            case "cut":
                del raw[place:]
            case "repeat":
                raw[place:place] = raw[place : place + 40]
    whole = read(bytes(raw))
    assert check_events(whole) is None
    assert comparable(read(bytes(raw), size=1)) == comparable(whole)


@given(st.binary(max_size=200))
@settings(moderate, max_examples=100)
def test_any_bytes_give_a_legal_stream_that_ends(data: bytes) -> None:
    assert check_events(read(data)) is None
    assert check_events(read(b"data: " + data)) is None
    assert check_events(read(b"[" + data)) is None


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(WORDS, inner, max_size=2)),
    max_leaves=4,
)
PLACES = [
    "candidates", "content", "parts", "text", "thought", "thoughtSignature", "functionCall", "name", "id", "args",
    "partialArgs", "jsonPath", "stringValue", "numberValue", "boolValue", "willContinue", "finishReason", "index",
    "usageMetadata", "promptTokenCount", "promptFeedback", "blockReason", "modelVersion", "responseId", "error",
]  # fmt: skip


def replaced(value: Any, key: str, junk: Any) -> Any:
    if isinstance(value, dict):
        return {name: junk if name == key else replaced(item, key, junk) for name, item in value.items()}
    return [replaced(item, key, junk) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("key", PLACES)
@given(junk=JUNK)
@settings(moderate, max_examples=15)
def test_d5_a_wrong_type_in_any_field_never_escapes(key: str, junk: Any) -> None:
    piece = {"jsonPath": "$.a", "stringValue": "b", "numberValue": 1, "boolValue": True, "willContinue": True}
    whole = {
        "candidates": [
            {
                "content": {
                    "parts": [
                        {"text": "a", "thought": True, "thoughtSignature": "s"},
                        {
                            "functionCall": {
                                "name": "read",
                                "id": "x",
                                "args": {},
                                "partialArgs": [piece],
                                "willContinue": True,
                            }
                        },
                    ]
                },
                "finishReason": "STOP",
                "index": 0,
            }
        ],
        "usageMetadata": {"promptTokenCount": 1},
        "promptFeedback": {"blockReason": ""},
        "modelVersion": "m",
        "responseId": "r",
        "error": None,
    }
    events = read(sse(replaced(whole, key, junk)))
    assert check_events(events) is None
