"""Messages of a conversation: roles, calls, results, signatures."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.openai_chat.messages import legacy_id
from dragoman.ir import (
    AFTER_TEXT,
    ANY_ORIGIN,
    ON_TEXT,
    ON_THOUGHT,
    Part,
    Signature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    seal,
)
from tests.unit.dialects.builders import SIGNATURE
from tests.unit.dialects.openai_chat.builders import (
    Json,
    assistant,
    call,
    custom_call,
    decode,
    google,
    messages,
    noted,
    parts,
    refused,
    request,
    result,
    sealed,
    system,
    text,
    user,
)


def said(words: str, signature: Signature | None = None) -> Text:
    return Text(text=words, signature=signature)


@pytest.mark.parametrize("role", ["system", "developer"])
def test_instructions_at_the_beginning_are_the_systems(role: str) -> None:
    asked = request(system("be", role=role), system("brief", "", role=role), user("hi"))
    assert asked.system == (said("be"), said("brief"))
    assert [message.role for message in asked.messages] == ["user"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_later_instructions_are_remarks_at_their_place(role: str) -> None:
    asked = request(user("hi"), system("now", role=role), assistant("yes"))
    assert asked.system == ()
    assert [message.role for message in asked.messages] == ["user", "system", "model"]
    assert asked.messages[1].parts == (said("now"),)


def test_instructions_alone_become_the_users_words() -> None:
    asked = decode(system("be"), system("say hello"))
    assert asked.request.system == (said("be"),)
    assert [(message.role, message.parts) for message in asked.request.messages] == [
        ("user", (said("say hello"),))
    ]
    assert [(note.kind, note.where) for note in asked.notes] == [("moved", "messages[1]")]


MODEL: dict[str, tuple[Json, tuple[Part, ...]]] = {
    "text": (assistant("hi"), (said("hi"),)),
    "nothing": (assistant(None), ()),
    "empty text beside a call": (assistant("", call()), (ToolCall(id="call_1", name="Read"),)),
    "parts": (assistant([text("a"), {"type": "refusal", "refusal": "b"}]), (said("a"), said("b"))),
    "refusal": (assistant(None, refusal="no"), (said("no"),)),
    "nulls": (assistant("hi", refusal=None, tool_calls=None, function_call=None, audio=None), (said("hi"),)),
    "thoughts are kept as such": (
        assistant("hi", reasoning_content="hm"),
        (Thought(text="hm"), said("hi")),
    ),
    "two calls behind text": (
        assistant("both", call(), call('{"a": 1}', "call_2", "Bash")),
        (
            said("both"),
            ToolCall(id="call_1", name="Read"),
            ToolCall(id="call_2", name="Bash", args=b'{"a": 1}'),
        ),
    ),
    "a call without a type": (
        assistant(None, {"id": "x", "function": {"name": "f", "arguments": "{}"}}),
        (ToolCall(id="x", name="f"),),
    ),
    "g1 a custom call": (
        assistant(None, custom_call('*** "patch"\n')),
        (ToolCall(id="call_1", name="patch", args=b'{"input":"*** \\"patch\\"\\n"}'),),
    ),
    "the older function_call": (
        assistant(None, function_call={"name": "f", "arguments": '{"a":1}'}),
        (ToolCall(id=legacy_id("f"), name="f", args=b'{"a":1}'),),
    ),
}


@pytest.mark.parametrize("name", MODEL)
def test_what_the_model_said(name: str) -> None:
    wire, expected = MODEL[name]
    (_, message) = messages(user("q"), wire)
    assert (message.role, message.parts) == ("model", expected)
    assert noted(user("q"), wire) == []


#: What the client kept as arguments, what they become, and whether that is worth a note.
ARGUMENTS: dict[str, tuple[Any, bytes, bool]] = {
    "p2 nothing is unescaped": (
        '{"a": "\\u00fc \\\\n", "b":1.0e2 }',
        b'{"a": "\\u00fc \\\\n", "b":1.0e2 }',
        False,
    ),
    "unicode": ('{"ü":"\u2028"}', '{"ü":"\u2028"}'.encode(), False),
    "empty": ("", b"{}", False),
    "blank": ("  ", b"{}", False),
    "null as text": ("null", b"{}", False),
    "null": (None, b"{}", False),
    "the object itself": ({"a": 1}, b'{"a": 1}', False),
    "half a character": ('{"a":"\\ud83d"}', b'{"a":"\\ufffd"}', False),
    "a list": ("[1, 2]", b'{"input":[1, 2]}', True),
    "a string": ('"x"', b'{"input":"x"}', True),
    "a bare list": ([1], b'{"input":[1]}', True),
    "cut off": ('{"a": "b', b'{"input":"{\\"a\\": \\"b"}', True),
    "too deep to be read": ("[" * 5000, b'{"input":"' + b"[" * 5000 + b'"}', True),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_in_the_history_lose_nothing(name: str) -> None:
    kept, expected, is_noted = ARGUMENTS[name]
    wire = assistant(None, call("{}"), call(kept, "call_2"))
    (_, message) = messages(user("q"), wire)
    (_, found) = message.parts
    assert isinstance(found, ToolCall)
    assert found.args == expected
    assert isinstance(json.loads(found.args), dict)
    where = "messages[1].tool_calls[1].function.arguments"
    assert noted(user("q"), wire) == ([("mended", where)] if is_noted else [])


def test_arguments_of_the_older_form_are_mended_too() -> None:
    wire = assistant(None, function_call={"name": "f", "arguments": "oops"})
    assert noted(wire) == [("mended", "messages[0].function_call.arguments")]


def test_results_of_one_step_are_one_turn() -> None:
    given = messages(
        user("q"),
        assistant(None, call(), call("{}", "call_2")),
        result("a"),
        result("b", "call_2"),
        user("go"),
    )
    assert [message.role for message in given] == ["user", "model", "user", "user"]
    assert given[2].parts == (
        ToolResult(call_id="call_1", content=(said("a"),)),
        ToolResult(call_id="call_2", content=(said("b"),)),
    )


def test_joined_results_are_the_same_value_every_turn() -> None:
    start = (user("q"), assistant(None, call(), call("{}", "call_2")), result("a"), result("b", "call_2"))
    first, second = messages(*start), messages(*start, assistant("done"), user("thanks"))
    assert first[2] is second[2]
    third = messages(*start[:3], result("other", "call_2"))
    assert third[2] != first[2]
    assert len(messages(*start, result("c", "call_3"))[2].parts) == 3


RESULTS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "text": ("sunny", ("sunny",)),
    "empty": ("", ()),
    "nothing": (None, ()),
    "parts": ([text("a"), text(""), text("b")], ("a", "b")),
}


@pytest.mark.parametrize("name", RESULTS)
def test_content_of_a_result(name: str) -> None:
    content, expected = RESULTS[name]
    assert parts(result(content)) == (
        ToolResult(call_id="call_1", content=tuple(said(words) for words in expected)),
    )


def test_a_function_message_answers_the_last_call_of_its_function() -> None:
    given = messages(
        user("q"),
        assistant(None, function_call={"name": "f", "arguments": "{}"}),
        {"role": "function", "name": "f", "content": "42"},
    )
    (asked,), (answered,) = given[1].parts, given[2].parts
    assert isinstance(asked, ToolCall)
    assert isinstance(answered, ToolResult)
    assert asked.id == answered.call_id
    assert noted(user("q"), {"role": "function", "name": "f", "content": "42"}) == []


SIGNED: dict[str, tuple[Json, tuple[Part, ...]]] = {
    "a call": (
        assistant(None, call(extra_content=sealed()), call("{}", "call_2")),
        (ToolCall(id="call_1", name="Read", signature=SIGNATURE), ToolCall(id="call_2", name="Read")),
    ),
    "text": (assistant("hi", extra_content=sealed(ON_TEXT)), (said("hi", SIGNATURE),)),
    "the last of several texts": (
        assistant([text("a"), text("b")], extra_content=sealed(ON_TEXT)),
        (said("a"), said("b", SIGNATURE)),
    ),
    "text that is gone": (assistant("", extra_content=sealed(ON_TEXT)), (said("", SIGNATURE),)),
    "behind text": (
        assistant("hi", call(), extra_content=sealed(AFTER_TEXT)),
        (said("hi"), said("", SIGNATURE), ToolCall(id="call_1", name="Read")),
    ),
    "a2 a thought": (
        assistant("hi", reasoning_content="hm", extra_content=sealed(ON_THOUGHT)),
        (Thought(text="hm", signature=SIGNATURE), said("hi")),
    ),
    "a thought that was not kept": (
        assistant("hi", extra_content=sealed(ON_THOUGHT)),
        (Thought(text="", signature=SIGNATURE), said("hi")),
    ),
    "the older form": (
        assistant(
            None,
            function_call={"name": "f", "arguments": "{}"},
            extra_content=sealed(legacy_id("f")),
        ),
        (ToolCall(id=legacy_id("f"), name="f", signature=SIGNATURE),),
    ),
    "a call of Google's own endpoint": (
        assistant(None, call(extra_content=google("Ej+/_-Q="))),
        (ToolCall(id="call_1", name="Read", signature=Signature("Ej+/_-Q=", ANY_ORIGIN)),),
    ),
    "text of Google's own endpoint": (
        assistant("hi", extra_content=google("EjQK")),
        (said("hi", Signature("EjQK", ANY_ORIGIN)),),
    ),
    "somebody else's extras": (assistant("hi", extra_content={"other": 1}), (said("hi"),)),
    "no signature": (assistant("hi", extra_content={"google": {}}), (said("hi"),)),
}


@pytest.mark.parametrize("name", SIGNED)
def test_a1_a_signature_returns_to_its_part(name: str) -> None:
    wire, expected = SIGNED[name]
    (_, message) = messages(user("q"), wire)
    assert message.parts == expected
    assert noted(user("q"), wire) == []


WORD = ".extra_content.google.thought_signature"
DROPPED: dict[str, tuple[Json, str]] = {
    "damaged": (
        assistant("hi", call(extra_content=google(seal(SIGNATURE, "call_1")[:-1]))),
        f".tool_calls[0]{WORD}",
    ),
    "moved to another call": (
        assistant("hi", call(extra_content=sealed("call_9"))),
        f".tool_calls[0]{WORD}",
    ),
    "no base64": (assistant("hi", call(extra_content=google("!"))), f".tool_calls[0]{WORD}"),
    "of a call, on the message": (assistant("hi", call(), extra_content=sealed("call_9")), WORD),
    "of a call that is gone": (assistant("hi", extra_content=sealed("call_1")), WORD),
    "damaged on the message": (assistant("hi", extra_content=google("dgm1.a.b.c.d")), WORD),
}


@pytest.mark.parametrize("name", DROPPED)
def test_a4_a9_a_signature_that_is_not_its_parts_is_dropped(name: str) -> None:
    wire, where = DROPPED[name]
    (_, message) = messages(user("q"), wire)
    assert all(getattr(part, "signature", None) is None for part in message.parts)
    assert noted(user("q"), wire) == [("dropped", f"messages[1]{where}")]


@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_names_of_speakers_are_dropped_with_a_note(role: str) -> None:
    spoken = {"role": role, "content": "x", "name": "bob", "tool_call_id": "call_1"}
    assert noted(user("q"), spoken) == [("dropped", "messages[1].name")]


REFUSED: dict[str, tuple[Json, str, str]] = {
    "unknown role": ({"role": "robot", "content": "x"}, ".role", "'robot' is not a role"),
    "result without an id": ({"role": "tool", "content": "x"}, ".tool_call_id", "needs the tool_call_id"),
    "function without a name": ({"role": "function", "content": "x"}, ".name", "needs the name"),
    "call without an id": (assistant(None, call(identity="")), ".tool_calls[0]", "needs an id"),
    "call without a name": (assistant(None, call(), call(name="")), ".tool_calls[1]", "name of its function"),
    "call without a function": (assistant(None, {"id": "x"}), ".tool_calls[0]", "needs an id"),
    "custom call without its form": (
        assistant(None, {**call(), "type": "custom"}),
        ".tool_calls[0]",
        "needs an id",
    ),
    "function_call without a name": (
        assistant(None, function_call={"arguments": "{}"}),
        ".function_call",
        "needs the name",
    ),
    "audio of an answer": (assistant(None, audio={"id": "a"}), ".audio", "transcript"),
    "number as content": ({"role": "user", "content": 7}, ".content", "Expected `str | array | null`"),
    "number as text": (
        {"role": "user", "content": [text("a"), {"type": "text", "text": 7}]},
        ".content[1].text",
        "Expected `str | null`",
    ),
    "no type": ({"role": "user", "content": [{"text": "a"}]}, ".content[0]", "missing required field"),
    "calls that are no list": (assistant(None, tool_calls={}), ".tool_calls", "Expected `array | null`"),
    "image in instructions": (
        {"role": "system", "content": [{"type": "image_url", "image_url": "x"}]},
        ".content[0]",
        "use text",
    ),
    "image from the model": (
        {"role": "assistant", "content": [text("a"), {"type": "image_url", "image_url": "x"}]},
        ".content[1]",
        "use text",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_is_refused_with_its_place(name: str) -> None:
    wire, where, why = REFUSED[name]
    error = refused(user("q"), wire)
    assert error.where == f"messages[1]{where}"
    assert why in error.message


def test_a_message_that_is_none() -> None:
    assert refused(user("q"), 7).where == "messages[1]"  # type: ignore[arg-type]


def test_text_without_words_is_text() -> None:
    assert parts({"role": "user", "content": [{"type": "text"}]}) == (said(""),)
    assert request(system({"type": "text"}), user("q")).system == ()
