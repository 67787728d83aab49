"""Searches for tools in a history: the model reads again what it did, step by step."""

from __future__ import annotations

import json

import pytest

from dragoman.ir import (
    Message,
    Part,
    ServerCall,
    ServerKind,
    ServerResult,
    Signature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from dragoman.translation.repair import repair, search_tool_result
from dragoman.translation.repair.tool_searches import expand_searches

ASKED = Message(role="user", parts=(Text(text="q"),))
SIGNED = Signature("c2ln", "gemini-g3")
NOTE = "These functions are declared now and can be called."


def searched(identity: str = "s1", kind: ServerKind = "tool_search") -> ServerCall:
    return ServerCall(id=identity, kind=kind, name="seek", args=b'{"pattern":"a"}', signature=SIGNED)


def found(*names: str, identity: str = "s1") -> ServerResult:
    return ServerResult(call_id=identity, kind="tool_search", tools=names)


def model(*parts: Part) -> Message:
    return Message(role="model", parts=parts)


def steps(*parts: Part) -> list[tuple[str, list[str]]]:
    """Who says what; a call or a result by its id."""
    unfolded = expand_searches((ASKED, model(*parts)))
    assert unfolded[0] is ASKED
    return [(message.role, [_told(part) for part in message.parts]) for message in unfolded[1:]]


def _told(part: Part) -> str:
    match part:
        case Text() | Thought():
            return part.text
        case ToolCall():
            return f"call {part.id}"
        case ToolResult():
            return f"result {part.call_id}"
    return type(part).__name__


CALL = ToolCall(id="c1", name="get_weather")
SO, THEN = Text(text="so"), Text(text="then")


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ((SO, THEN, CALL), [("model", ["so", "then", "call c1"])]),
        (
            (SO, searched(), found("a"), THEN, CALL),
            [("model", ["so", "call s1"]), ("user", ["result s1"]), ("model", ["then", "call c1"])],
        ),
        (
            (searched(), found("a"), searched("s2"), found(identity="s2"), CALL),
            [
                ("model", ["call s1"]),
                ("user", ["result s1"]),
                ("model", ["call s2"]),
                ("user", ["result s2"]),
                ("model", ["call c1"]),
            ],
        ),
        (
            (searched(), searched("s2"), found("a"), found(identity="s2")),
            [("model", ["call s1", "call s2"]), ("user", ["result s1", "result s2"])],
        ),
        ((searched(), found("a")), [("model", ["call s1"]), ("user", ["result s1"])]),
        ((CALL, searched(), found("a"), THEN), [("model", ["call c1", "call s1", "then"]), ("user", ["result s1"])]),
        ((searched(),), [("model", ["call s1"])]),
        ((found("a"),), [("user", ["result s1"])]),
        (
            (searched(kind="web_search"), Text(text="x")),
            [("model", ["ServerCall", "x"])],
        ),
    ],
    ids=["none", "one", "two", "together", "last", "beside a call", "cut off", "lost call", "of another kind"],
)  # fmt: skip
def test_a_search_is_a_step(parts: tuple[Part, ...], expected: list[tuple[str, list[str]]]) -> None:
    assert steps(*parts) == expected


def test_the_call_is_as_it_was() -> None:
    (turn, answered) = expand_searches((model(searched(), found("a", "b")),))
    assert turn.parts == (ToolCall(id="s1", name="seek", args=b'{"pattern":"a"}', signature=SIGNED),)
    (result,) = answered.parts
    assert result == search_tool_result(found("a", "b"), "seek")
    assert isinstance(result, ToolResult)
    assert json.loads(result.response) == {"tools": ["a", "b"], "note": NOTE}


def test_a_search_without_ids_is_told_by_its_place() -> None:
    messages = expand_searches((model(searched(""), found("a", identity="")),))
    assert messages[0].role == "model"
    repaired, notes = repair((ASKED, *messages), ends_with_user=False)
    assert [message.role for message in repaired] == ["user", "model", "user"]
    assert notes == ()


def test_nothing_found_is_no_error() -> None:
    result = search_tool_result(found(), "seek")
    assert json.loads(result.response)["tools"] == []
    assert not result.is_error


@pytest.mark.parametrize(("output", "told"), [("missing )", "missing )"), ("", "unavailable")])
def test_an_error_is_one(output: str, told: str) -> None:
    failed = ServerResult(call_id="s1", kind="tool_search", error="unavailable", output=output)
    assert search_tool_result(failed, "seek") == ToolResult(
        call_id="s1", name="seek", content=(Text(text=told),), is_error=True
    )


def test_results_of_a_mixed_step_meet_again() -> None:
    mixed = model(CALL, searched(), found("a"))
    answered = Message(role="user", parts=(ToolResult(call_id="c1"),))
    repaired, notes = repair((ASKED, mixed, answered), ends_with_user=True)
    ids = [part.call_id for part in repaired[2].parts if isinstance(part, ToolResult)]
    assert ids == ["c1", "s1"]
    assert notes == ()


def test_the_same_message_gives_the_same_steps() -> None:
    turn = model(searched(), found("a"), CALL)
    first, second = expand_searches((turn,)), expand_searches((ASKED, turn))
    assert all(one is other for one, other in zip(first, second[1:], strict=True))


def test_only_the_model_searches() -> None:
    odd = Message(role="user", parts=(searched(), found("a")))
    assert expand_searches((odd,)) == (odd,)
