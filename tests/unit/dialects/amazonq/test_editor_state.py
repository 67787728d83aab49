"""What the program knows of the machine and the editor: told once, and again when it changes."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.ir import Message, Text
from tests.unit.dialects.amazonq.builders import (
    CONTEXT,
    CURRENT,
    assistant,
    messages,
    noted,
    refused,
    result,
    results,
    use,
    user,
)

ENV = {"operatingSystem": "linux", "currentWorkingDirectory": "/w"}


def _with(**states: Any) -> dict[str, Any]:
    return user("hi", context=states)


def _remarks(*given: dict[str, Any]) -> list[str]:
    parts = [part for message in messages(*given) if message.role == "system" for part in message.parts]
    return [part.text for part in parts if isinstance(part, Text)]


def test_the_model_learns_where_it_is() -> None:
    assert messages(_with(envState=ENV)) == (
        Message(role="user", parts=(Text(text="hi"),)),
        Message(
            role="system",
            parts=(Text(text='envState: {"operatingSystem":"linux","currentWorkingDirectory":"/w"}'),),
        ),
    )


@pytest.mark.parametrize(
    ("states", "told"),
    [
        (
            {"envState": {**ENV, "environmentVariables": []}},
            ['envState: {"operatingSystem":"linux","currentWorkingDirectory":"/w"}'],
        ),
        (
            {"gitState": {"status": "clean"}, "shellState": {"shellName": "zsh", "shellHistory": None}},
            ['gitState: {"status":"clean"}\nshellState: {"shellName":"zsh"}'],
        ),
        (
            {
                "editorState": {
                    "document": {"relativeFilePath": "a.py", "text": ""},
                    "cursorState": {"position": {"line": 0}},
                }
            },
            ['editorState: {"document":{"relativeFilePath":"a.py"},"cursorState":{"position":{"line":0}}}'],
        ),
        (
            {"additionalContext": [{"name": "rule", "innerContext": "be nice"}]},
            ['additionalContext: [{"name":"rule","innerContext":"be nice"}]'],
        ),
        ({"somethingNew": "words"}, ['somethingNew: "words"']),
        ({"envState": None, "editorState": {}, "diagnostic": {"a": None}, "additionalContext": []}, []),
    ],
)
def test_states_are_told_without_what_is_empty(states: dict[str, Any], told: list[str]) -> None:
    assert _remarks(_with(**states)) == told


def test_settings_of_the_program_are_noise() -> None:
    given = _with(userSettings={"hasConsentedToCrossRegionCalls": True}, envState={})
    assert _remarks(given) == []
    assert noted(given) == [("dropped", f"{CURRENT}{CONTEXT}.userSettings")]


def test_the_same_again_is_no_news() -> None:
    moved = {**ENV, "currentWorkingDirectory": "/x"}
    git = {"status": "clean"}
    told = _remarks(
        _with(envState=ENV, gitState=git),
        assistant("a"),
        _with(envState=ENV, gitState=git),
        assistant("b"),
        _with(envState=moved, gitState=git),
        assistant("c"),
        _with(),
        assistant("d"),
        _with(envState=ENV),
    )
    first = 'envState: {"operatingSystem":"linux","currentWorkingDirectory":"/w"}'
    assert told == [
        f'{first}\ngitState: {{"status":"clean"}}',
        'envState: {"operatingSystem":"linux","currentWorkingDirectory":"/x"}',
        first,
    ]


def test_the_same_news_are_the_same_message() -> None:
    one, other = (messages(_with(envState=ENV), assistant(word), user("x"))[1] for word in "ab")
    assert one is other


def test_news_stand_behind_results() -> None:
    given = results(result({"text": "done"}))
    given["userInputMessage"]["userInputMessageContext"]["envState"] = ENV
    found = messages(user("q"), assistant("", use()), given)
    assert [message.role for message in found] == ["user", "model", "user", "system"]


def test_a_state_nested_too_deeply_is_refused_by_name() -> None:
    deep: Any = 1
    for _ in range(600):
        deep = [deep]
    error = refused(_with(editorState=deep))
    assert error.where == f"{CURRENT}{CONTEXT}.editorState"
