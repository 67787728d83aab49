"""Thought signatures: the same part, the right back end, the sentinel only where it must stand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.ir import Message, Signature, Thought
from tests.unit.dialects.gemini.builders import (
    NEW,
    OLD,
    OURS,
    SENTINEL,
    call,
    contents_of,
    encode,
    model,
    notes_of,
    remark,
    result,
    user,
)

SECOND = Signature("c2Vjb25k", "gemini-g3")
FOREIGN = [
    Signature("x", "vertex-g3"),
    Signature("x", "gemini-g4"),
    Signature("x", "gemini-g25"),
    Signature("x", "anthropic"),
]


def signatures(contents: list[dict[str, Any]]) -> list[list[str | None]]:
    return [[part.get("thoughtSignature") for part in turn["parts"]] for turn in contents]


def test_a1_a13_a_signature_returns_on_the_same_call_unmodified() -> None:
    contents = contents_of(
        user("q"),
        model("I look", call(1, signature=OURS), call(2)),
        user(result(1, "a"), result(2, "b")),
        model(call(3, signature=SECOND)),
        user(result(3, "c")),
    )
    assert signatures(contents) == [[None], [None, OURS.data, None], [None, None], [SECOND.data], [None]]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a9_a_signature_of_another_origin_is_dropped_with_a_note(foreign: Signature) -> None:
    encoded = encode(user("q"), model(Thought(text="t", signature=foreign), "a"), user("z"))
    assert foreign.data not in [
        part.get("thoughtSignature") for part in json.loads(encoded.body)["contents"][1]["parts"]
    ]
    assert [(note.kind, note.where) for note in encoded.notes] == [("dropped", "messages")]
    assert foreign.origin in encoded.notes[0].why


def test_a9_many_signatures_of_one_origin_make_one_note() -> None:
    foreign = FOREIGN[0]
    steps = (
        user("q"),
        model(call(1, signature=foreign), call(2, signature=foreign)),
        user(result(1), result(2)),
    )
    assert [note.kind for note in notes_of(*steps)] == ["dropped", "sentinel"]


@pytest.mark.parametrize("foreign", [None, *FOREIGN])
def test_a6_a_foreign_step_of_the_current_turn_gets_the_sentinel_on_its_first_call_only(
    foreign: Signature | None,
) -> None:
    contents = contents_of(
        user("old"),
        model(call(1)),
        user(result(1)),
        model("done"),
        user("new"),
        model("I look", call(2, signature=foreign), call(3)),
        user(result(2), result(3)),
        model(call(4, signature=OURS)),
        user(result(4)),
        model(call(5)),
        user(result(5)),
    )
    assert signatures(contents) == [
        [None], [None], [None], [None],
        [None], [None, SENTINEL, None], [None, None],
        [OURS.data], [None],
        [SENTINEL], [None],
    ]  # fmt: skip


def test_a7_the_sentinel_is_literal_on_the_wire() -> None:
    assert (
        b'"thoughtSignature":"skip_thought_signature_validator"'
        in encode(user("q"), model(call()), user(result())).body
    )


def test_a8_every_sentinel_is_noted_with_its_place() -> None:
    notes = notes_of(user("q"), model(call(1)), user(result(1)), model(call(2)), user(result(2)))
    assert [(note.kind, note.where) for note in notes] == [
        ("sentinel", "contents[1]"),
        ("sentinel", "contents[3]"),
    ]


@pytest.mark.parametrize(
    "messages",
    [
        (user("q"), model("a"), user("z")),
        (user("q"), model(call(1, signature=OURS), call(2)), user(result(1), result(2))),
        (user("q"), model(call(1)), user(result(1)), user("thanks")),
        (user("q"), model(call(1)), user(result(1)), model("a"), user("z")),
        (user("q"), model(call(1)), user(result(1)), model("a"), remark("note")),
    ],
)
def test_a8_no_sentinel_where_none_is_needed(messages: tuple[Message, ...]) -> None:
    assert SENTINEL.encode() not in encode(*messages).body


def test_a6_a_remark_behind_results_starts_no_new_turn() -> None:
    contents = contents_of(user("q"), model(call(1)), user(result(1)), remark("note"))
    assert signatures(contents) == [[None], [SENTINEL], [None]]


def test_a13_a_signature_on_a_later_call_does_not_excuse_the_first() -> None:
    contents = contents_of(user("q"), model(call(1), call(2, signature=OURS)), user(result(1), result(2)))
    assert signatures(contents)[1] == [SENTINEL, OURS.data]


def test_a_history_without_any_user_turn_is_all_current() -> None:
    assert signatures(contents_of(model(call(1)), user(result(1))))[0] == [SENTINEL]


@pytest.mark.parametrize(
    ("to", "backend", "needed"),
    [
        (OLD, "gemini", False),
        ("gemini-2.5-pro", "vertex", False),
        (NEW, "gemini", True),
        (NEW, "vertex", True),
        ("gemini-4-argon", "gemini", True),
        ("gemma-4-31b-it", "gemini", True),
    ],
)
def test_only_models_from_3_on_demand_signatures(to: str, backend: str, needed: bool) -> None:
    contents = contents_of(user("q"), model(call(1)), user(result(1)), to=to, backend=backend)
    assert signatures(contents)[1] == [SENTINEL if needed else None]


@pytest.mark.parametrize(
    ("to", "backend", "origin"),
    [
        (OLD, "gemini", "gemini-g25"),
        (NEW, "gemini", "gemini-g3"),
        (NEW, "vertex", "vertex-g3"),
        (NEW, "emulator", "emulator-g3"),
        ("gemini-4-carbon", "gemini", "gemini-g4"),
        ("gemini-5-neon", "gemini", "gemini-g5"),
        ("gemini-flash-latest", "gemini", "gemini-g3"),
        ("gemma-4-31b-it", "gemini", "gemini-gemma4"),
    ],
)
def test_a9_an_origin_names_back_end_and_family(to: str, backend: str, origin: str) -> None:
    target = Target(model=to, backend=backend)
    assert gemini.origin_of(target) == origin
    assert "." not in origin
    mine = Signature("bWluZQ==", origin)
    assert signatures(
        contents_of(user("q"), model(call(1, signature=mine)), user(result(1)), to=to, backend=backend)
    )[1] == [mine.data]


@pytest.mark.parametrize("behind", [(), (call(2),), (call(2), "text", call(3, name="other"))])
def test_the_sentinel_stands_behind_everything_else_of_the_first_call(behind: tuple[Any, ...]) -> None:
    calls = [part for part in behind if not isinstance(part, str)]
    answers = [result(1, "a"), *(result(number, "b") for number, _ in enumerate(calls, 2))]
    parts = contents_of(user("q"), model("I look", call(1), *behind), user(*answers))[1]["parts"]
    plain = contents_of(user("q"), model("I look", call(1), *behind), user(*answers), model("a"), user("z"))
    assert [*parts[1]] == ["functionCall", "thoughtSignature"]
    assert parts[1].pop("thoughtSignature") == SENTINEL
    assert parts == plain[1]["parts"]
