"""Calls out of an answer, whole or in chunks; what a client gets that knows nothing of them."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.tools.inject import captured_calls, placeholder, withhold

Json = dict[str, Any]

RAIN = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}, "id": "g1"}, "thoughtSignature": "c2ln"}
NOON = {"functionCall": {"name": "clock", "id": "g2"}}
READ = {"functionCall": {"name": "read_file", "args": {"path": "x"}, "id": "g3"}}


def chunk(*parts: Json, **more: Any) -> Json:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}], "responseId": "r"}


def parts_of(chunks: list[Json]) -> list[Json]:
    return [
        part
        for one in chunks
        for candidate in one["candidates"]
        for part in candidate.get("content", {}).get("parts", ())
    ]


def test_parallel_calls_are_captured_in_their_order_with_the_signature() -> None:
    whole = chunk({"text": "Let me see."}, RAIN, NOON, READ, finishReason="STOP")
    streamed = [chunk({"text": "Let me see."}), chunk(RAIN), chunk(NOON), chunk(READ), {"usageMetadata": {}}]
    for answer in (whole, streamed):
        new_id = iter("ab").__next__
        calls = captured_calls(answer, {"weather", "clock"}, question="q", origin="o", new_call_id=new_id)
        assert [(call.id, call.sent_id, call.name, call.index) for call in calls] == [
            ("a", "g1", "weather", 0),
            ("b", "g2", "clock", 1),
        ]
        assert [call.signature for call in calls] == ["c2ln", ""]
        assert [call.args for call in calls] == [{"city": "Oslo"}, {}]
        assert {(call.question, call.origin, call.beside) for call in calls} == {("q", "o", ("g3",))}


def test_without_names_every_call_is_captured_under_an_id_of_its_own() -> None:
    calls = captured_calls(chunk({"function_call": {"name": "weather"}, "thought_signature": "c2ln"}, READ))
    assert [(call.name, call.signature, call.sent_id) for call in calls] == [
        ("weather", "c2ln", ""),
        ("read_file", "", "g3"),
    ]
    assert len({call.id for call in calls}) == 2
    assert all(call.id.startswith("call_") for call in calls)


def test_arguments_that_come_in_pieces_are_put_together() -> None:
    pieces = [
        chunk({"functionCall": {"name": "weather", "willContinue": True}, "thoughtSignature": "c2ln"}),
        chunk({"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "Os"}]}}),
        chunk(
            {"functionCall": {"partialArgs": [{"jsonPath": "$.city", "stringValue": "lo"}]}},
            {"functionCall": {}},
        ),
        chunk(NOON),
    ]
    rain, noon = captured_calls(pieces)
    assert (rain.args, rain.signature, noon.name) == ({"city": "Oslo"}, "c2ln", "clock")
    calls = captured_calls(pieces, {"weather"})
    assert parts_of(withhold(pieces, calls)) == [NOON]


@pytest.mark.parametrize("answer", [{}, [], {"candidates": None}, {"candidates": [{"content": {}}]}, chunk()])
def test_an_answer_without_calls_has_none(answer: Any) -> None:
    assert captured_calls(answer) == ()
    assert withhold(answer, ()) == (answer if isinstance(answer, list) else [answer])


def test_only_the_first_candidate_counts() -> None:
    answer = {"candidates": [{"index": 1, "content": {"parts": [RAIN]}}]}
    assert captured_calls(answer) == ()
    mixed = {"candidates": [{"content": {"parts": [NOON]}}, {"index": 1, "content": {"parts": [RAIN]}}]}
    (seen,) = withhold(mixed, captured_calls(mixed))
    assert seen["candidates"][1]["content"]["parts"] == [RAIN]


def test_the_client_is_told_what_is_waited_for_instead_of_the_calls() -> None:
    answer = [
        chunk({"text": "Let me see."}),
        chunk(RAIN),
        chunk(NOON, finishMessage="Model generated function call(s)."),
        chunk({"text": ""}, finishReason="STOP"),
    ]
    calls = captured_calls(answer)
    seen = withhold(answer, calls)
    assert parts_of(seen) == [{"text": "Let me see."}, {"text": placeholder(calls)}]
    assert "weather, clock" in placeholder(calls)
    assert "finishMessage" not in seen[2]["candidates"][0]
    assert seen[3]["candidates"][0]["finishReason"] == "STOP"
    assert answer[1] == chunk(RAIN)
    assert parts_of(withhold(answer, calls, waiting=False)) == [{"text": "Let me see."}, {"text": ""}]


def test_a_client_with_calls_of_its_own_sees_those_alone() -> None:
    answer = chunk(RAIN, READ, finishReason="STOP")
    calls = captured_calls(answer, {"weather"})
    assert parts_of(withhold(answer, calls)) == [READ]


def test_a_last_chunk_without_candidates_still_tells() -> None:
    answer = [
        chunk(RAIN),
        {"candidates": [{"finishReason": "STOP"}]},
        {"usageMetadata": {"totalTokenCount": 1}},
    ]
    calls = captured_calls(answer)
    assert parts_of(withhold(answer, calls)) == [{"text": placeholder(calls)}]
