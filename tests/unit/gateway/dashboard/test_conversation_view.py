from __future__ import annotations

from typing import Any

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect
from dragoman.gateway.dashboard.conversation_view import ConversationView, TurnPart, view_conversation
from tests.unit.gateway.dashboard.builders import answer, captured

ANTHROPIC: ClientDialect = CLIENTS["anthropic"]
TOOL = {"name": "look up", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
PIXEL = "iVBORw0KGgo="


def ask(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"model": "claude-sonnet-4-5", "max_tokens": 9, "tools": [TOOL]}
    return {**base, "messages": list(messages), **more}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def pieces(shown: ConversationView) -> list[tuple[str, str, tuple[TurnPart, ...]]]:
    return [(turn.role, turn.by, turn.pieces) for turn in shown.turns]


def test_what_was_said_and_what_was_answered() -> None:
    asked = ask(user("hi"), system="Be kind.")
    thought = {"text": "hm", "thought": True}
    call = {"functionCall": {"name": "look_up", "args": {"n": 1}}}
    shown = view_conversation(captured(asked, ({}, answer(thought, {"text": "ok"}, call))), ANTHROPIC)
    assert shown.system == ("Be kind.",)
    assert [(tool.name, tool.description) for tool in shown.tools] == [("look up", "Looks.")]
    first, second = pieces(shown)
    assert first == ("user", "client", (TurnPart(kind="text", text="hi"),))
    assert second[:2] == ("model", "model")
    assert [(one.kind, one.text, one.name) for one in second[2]][:2] == [
        ("thought", "hm", ""),
        ("text", "ok", ""),
    ]
    assert second[2][2].kind == "call"
    assert second[2][2].data == '{"n":1}'
    assert shown.trouble == ""


def test_calls_and_results_of_the_history() -> None:
    history = (
        user("go"),
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "look up", "input": {"n": 2}}],
        },
        user([{"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no such thing"}]),
    )
    shown = view_conversation(captured(ask(*history), ({}, answer({"text": "sorry"}))), ANTHROPIC)
    call = pieces(shown)[1][2][0]
    result = pieces(shown)[2][2][0]
    assert (call.kind, call.id, call.name, call.data) == ("call", "t1", "look up", '{"n":2}')
    assert (result.kind, result.id, result.text, result.failed) == ("result", "t1", "no such thing", True)


def test_pictures_are_shown_and_other_files_named() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
    paper = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PIXEL}}
    shown = view_conversation(captured(ask(user([picture, paper])), ({}, answer({"text": "x"}))), ANTHROPIC)
    first, second = pieces(shown)[0][2]
    assert (first.mime, first.data) == ("image/png", PIXEL)
    assert (second.mime, second.data) == ("application/pdf", "")


def test_what_the_gateways_own_tools_said_stands_between_two_answers() -> None:
    contents: list[Any] = [{"role": "user", "parts": [{"text": "go"}]}]
    call = {"functionCall": {"name": "own", "args": {}}}
    result = {"functionResponse": {"name": "own", "response": {"found": 3}}}
    more = [*contents, {"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    exchange = captured(
        ask(user("go")),
        ({"contents": contents}, answer(call)),
        ({"contents": more}, answer({"text": "three"})),
    )
    shown = view_conversation(exchange, ANTHROPIC)
    assert [(role, by) for role, by, _ in pieces(shown)] == [
        ("user", "client"),
        ("model", "model"),
        ("user", "gateway"),
        ("model", "model"),
    ]
    assert '"found":3' in pieces(shown)[2][2][0].data


def test_an_attempt_that_failed_says_nothing_and_the_next_one_counts() -> None:
    error = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
    contents = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}
    both = captured(ask(user("hi")), (contents, error), (contents, answer({"text": "here"})))
    shown = view_conversation(both, ANTHROPIC)
    assert [by for _, by, _ in pieces(shown)] == ["client", "model"]
    assert shown.trouble == ""
    alone = view_conversation(captured(ask(user("hi")), (contents, error)), ANTHROPIC)
    assert "busy" in alone.trouble


def test_a_request_that_cannot_be_read_is_trouble_and_no_accident() -> None:
    shown = view_conversation(captured({"messages": 7}), ANTHROPIC)
    assert shown.turns == ()
    assert "could not be read" in shown.trouble
