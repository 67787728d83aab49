"""Every kind of content block, in every position a client may put it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.ir import (
    AFTER_TEXT,
    ON_THOUGHT,
    Media,
    Message,
    Part,
    Text,
    Thought,
    ToolCall,
    ToolResult,
    seal,
)
from tests.unit.dialects.bedrock.builders import (
    PDF,
    Json,
    assistant,
    document,
    image,
    notes,
    parts,
    reasoning,
    refusal,
    refused,
    request,
    system,
    tool_result,
    tool_use,
    user,
)
from tests.unit.dialects.builders import PIXEL, SIGNATURE

CLAUDE_SIGNATURE = "EqQBCgIYAhIkYmFzZTY0IG9mIHNvbWVib2R5IGVsc2U="
PICTURE = Media(mime="image/png", data=PIXEL)
PAPER = Media(mime="application/pdf", data=PDF)
FOUND = {"title": "T", "source": "https://h", "content": [{"text": "found"}]}


def result(*content: Text | Media, **more: Any) -> ToolResult:
    return ToolResult(call_id="t1", content=content, **more)


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        ({"text": "hello"}, [Text(text="hello")]),
        ({"text": ""}, [Text(text="")]),
        ({"text": "hello", "image": None}, [Text(text="hello")]),
        (image(), [PICTURE]),
        (document(), [Text(text="report"), PAPER]),
        ({"cachePoint": {"type": "default", "ttl": "1h"}}, []),
        ({"guardContent": {"text": {"text": "careful", "qualifiers": ["query"]}}}, [Text(text="careful")]),
        ({"guardContent": image()}, [PICTURE]),
        ({"searchResult": FOUND}, [Text(text="T https://h"), Text(text="found")]),
        ({"searchResult": {}}, [Text(text="")]),
        (
            {"citationsContent": {"content": [{"text": "a"}, {"text": "b"}], "citations": [{"title": "T"}]}},
            [Text(text="a"), Text(text="b")],
        ),
        ({"citationsContent": {}}, []),
        ({"toolAddition": {"tool": {"name": "Read"}}}, [Text(text="The tool Read is now available.")]),
        ({"toolRemoval": {"tool": {"name": "Read"}}}, [Text(text="The tool Read is no longer available.")]),
    ],
)
@pytest.mark.parametrize("say", [user, assistant, system])
def test_block(say: Any, block: Json, expected: list[Part]) -> None:
    assert parts(say(block)) == expected


@pytest.mark.parametrize("content", [None, []])
def test_content_may_be_empty(content: Any) -> None:
    assert request({"role": "user", "content": content}).messages == (Message(role="user", parts=()),)


@pytest.mark.parametrize(
    ("role", "neutral"), [("user", "user"), ("assistant", "model"), ("system", "system")]
)
def test_roles(role: str, neutral: str) -> None:
    assert [message.role for message in request({"role": role, "content": [{"text": "x"}]}).messages] == [
        neutral
    ]


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ({"input": {"a": [1, "\\n"]}}, b'{"a": [1, "\\\\n"]}'),
        ({"input": None}, b"{}"),
        ({"input": "x"}, b'{"input":"x"}'),
        ({"input": [1]}, b'{"input":[1]}'),
    ],
)
def test_p2_arguments_are_kept_byte_for_byte(given: Json, args: bytes) -> None:
    assert parts(assistant(tool_use(**given))) == [ToolCall(id="t1", name="Read", args=args)]


def test_arguments_that_are_no_object_are_noted() -> None:
    assert notes(assistant(tool_use(input=5))) == [("mended", "messages[0].content[0].toolUse.input")]


def test_a_tool_that_ran_on_amazons_servers_is_told_as_text() -> None:
    use = tool_use(name="nova_grounding", input={"q": 1}, type="server_tool_use")
    found = tool_result({"text": "sunny"}, type="nova_grounding_result")
    assert parts(assistant(use, found)) == [
        Text(text='[server_tool_use nova_grounding] {"q": 1}'),
        Text(text="[nova_grounding_result]"),
        Text(text="sunny"),
    ]


#: The content of a result and its status, and what the model gets.
RESULTS: dict[str, tuple[list[Json], str | None, ToolResult]] = {
    "text": ([{"text": "ok"}], None, result(Text(text="ok"))),
    "success": ([{"text": "ok"}], "success", result(Text(text="ok"))),
    "an error": ([{"text": "no"}], "error", result(Text(text="no"), is_error=True)),
    "nothing": ([], None, result()),
    "empty text": ([{"text": ""}], None, result()),
    "a JSON object as it is": ([{"json": {"a": [1]}}], None, result(response=b'{"a": [1]}')),
    "other JSON is wrapped": ([{"json": [1, 2]}], None, result(response=b'{"output":[1, 2]}')),
    "JSON's null is an answer too": ([{"json": None}], None, result(response=b'{"output":null}')),
    "JSON text is wrapped": ([{"json": "x"}], None, result(response=b'{"output":"x"}')),
    "a JSON object that tells of an error": (
        [{"json": {"code": 1}}],
        "error",
        result(response=b'{"error":{"code": 1}}', is_error=True),
    ),
    "c4 several blocks in order": (
        [{"text": "a"}, {"json": {"b": 1}}, {"text": "c"}],
        None,
        result(Text(text="a"), Text(text='{"b": 1}'), Text(text="c")),
    ),
    "JSON twice": ([{"json": {}}, {"json": 1}], None, result(Text(text="{}"), Text(text="1"))),
    "j1 a picture beside text": (
        [{"text": "see"}, image()],
        None,
        result(Text(text="see"), PICTURE),
    ),
    "a picture beside JSON": ([{"json": {"a": 1}}, image()], None, result(PICTURE, response=b'{"a": 1}')),
    "a document": ([document()], None, result(Text(text="report"), PAPER)),
    "a search result": (
        [{"searchResult": FOUND}],
        None,
        result(Text(text="T https://h"), Text(text="found")),
    ),
    "a video": (
        [{"video": {"format": "mp4", "source": {"bytes": "AAAA"}}}],
        None,
        result(Media(mime="video/mp4", data="AAAA")),
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_tool_result(name: str) -> None:
    content, status, expected = RESULTS[name]
    assert parts(user(tool_result(*content, status=status))) == [expected]


def test_a_result_without_content_is_empty() -> None:
    assert parts(user({"toolResult": {"toolUseId": "t1"}})) == [result()]


def test_a1_a_calls_signature_rides_in_the_reasoning_before_it() -> None:
    said = assistant(reasoning("hm", seal(SIGNATURE, "t1")), tool_use("t1"), tool_use("t2"))
    assert parts(said) == [
        Thought(text="hm"),
        ToolCall(id="t1", name="Read", args=b"{}", signature=SIGNATURE),
        ToolCall(id="t2", name="Read", args=b"{}"),
    ]


def test_a1_reasoning_without_words_is_only_a_carrier() -> None:
    (found,) = parts(assistant(reasoning("", seal(SIGNATURE, "t1")), tool_use("t1")))
    assert found == ToolCall(id="t1", name="Read", args=b"{}", signature=SIGNATURE)


def test_a2_a_signed_thought() -> None:
    assert parts(assistant(reasoning("hm", seal(SIGNATURE, ON_THOUGHT)))) == [
        Thought(text="hm", signature=SIGNATURE)
    ]


def test_a_signature_at_the_end() -> None:
    assert parts(assistant(reasoning("hm", seal(SIGNATURE, AFTER_TEXT)), {"text": "hi"})) == [
        Thought(text="hm"),
        Text(text="hi"),
        Text(text="", signature=SIGNATURE),
    ]


@pytest.mark.parametrize(
    ("block", "kept", "place"),
    [
        (reasoning("hm", CLAUDE_SIGNATURE), [Thought(text="hm")], "reasoningText"),
        (reasoning("", CLAUDE_SIGNATURE), [], "reasoningText"),
        (reasoning("hm", seal(SIGNATURE, ON_THOUGHT)[:-1] + "x"), [Thought(text="hm")], "reasoningText"),
        ({"reasoningContent": {"redactedContent": "c2VjcmV0"}}, [], "redactedContent"),
        ({"reasoningContent": {"redactedReasoning": {"data": "x"}}}, [], "redactedReasoning"),
    ],
)
def test_a4_reasoning_of_another_model_is_dropped_with_a_note(
    block: Json, kept: list[Part], place: str
) -> None:
    assert parts(assistant(block)) == kept
    assert notes(assistant(block)) == [
        ("dropped", f"messages[0].content[0].reasoningContent.{place}"),
    ]


@pytest.mark.parametrize("signature", [None, ""])
def test_reasoning_without_a_signature_is_a_thought(signature: str | None) -> None:
    assert parts(assistant(reasoning("hm", signature))) == [Thought(text="hm")]
    assert notes(assistant(reasoning("hm", signature))) == []


@pytest.mark.parametrize(
    ("block", "where"),
    [
        ({"guardContent": {"text": {"text": "x"}}}, "guardContent"),
        ({"citationsContent": {"content": [], "citations": [{}]}}, "citationsContent.citations"),
        (document(citations={"enabled": True}), "document.citations"),
    ],
)
def test_what_is_lost_is_noted(block: Json, where: str) -> None:
    assert notes(user(block)) == [("dropped", f"messages[0].content[0].{where}")]


def test_what_is_not_lost_is_not_noted() -> None:
    assert notes(user({"cachePoint": {"type": "default"}}, document(citations={"enabled": False}))) == []


@pytest.mark.parametrize(
    ("message", "where"),
    [
        (user({"hologram": {}}), "messages[1].content[0]"),
        (user("a", {}), "messages[1].content[1]"),
        (user({"text": "a", "image": {}}), "messages[1].content[0]"),
        (user({"text": 5}), "messages[1].content[0].text"),
        (user({"text": None}), "messages[1].content[0].text"),
        (user({"text": None, "image": None}), "messages[1].content[0]"),
        ({"role": "user", "content": "x"}, "messages[1].content"),
        ({"role": "user", "content": [5]}, "messages[1].content[0]"),
        ({"role": "tool", "content": []}, "messages[1].role"),
        ({"role": 5}, "messages[1].role"),
        ({"content": []}, "messages[1]"),
        (user({"image": {"format": "png"}}), "messages[1].content[0].image"),
        (assistant(tool_use(identity="")), "messages[1].content[0].toolUse"),
        (assistant(tool_use(name="")), "messages[1].content[0].toolUse"),
        (assistant(tool_use(toolUseId=5)), "messages[1].content[0].toolUse.toolUseId"),
        (user(tool_result(identity="")), "messages[1].content[0].toolResult"),
        (user(tool_result({"hologram": 1})), "messages[1].content[0].toolResult.content[0]"),
        (user(tool_result({"toolUse": {}})), "messages[1].content[0].toolResult.content[0]"),
        (user(tool_result({"text": "a"}, {"text": 5})), "messages[1].content[0].toolResult.content[1].text"),
        (
            user(tool_result({"audio": {"format": "mp3", "source": {"bytes": "AA=="}}})),
            "messages[1].content[0].toolResult.content[0]",
        ),
        (assistant({"reasoningContent": {}}), "messages[1].content[0].reasoningContent"),
        (
            assistant({"reasoningContent": {"reasoningText": {"text": 5}}}),
            "messages[1].content[0].reasoningContent.reasoningText.text",
        ),
        (user({"guardContent": {"video": {}}}), "messages[1].content[0].guardContent"),
        (
            user({"searchResult": {"content": [{"image": {}}]}}),
            "messages[1].content[0].searchResult.content[0]",
        ),
        (user({"toolAddition": {"tool": 5}}), "messages[1].content[0].toolAddition.tool"),
    ],
)
def test_a_wrong_message_is_refused_at_its_place(message: Json, where: str) -> None:
    error = refused(user("a"), message)
    assert (error.kind, error.where) == ("invalid_request", where)


def test_a_kind_of_content_nobody_knows_is_named() -> None:
    assert "'hologram' is not understood" in refused(user({"hologram": {}})).message


def test_a_number_no_computer_can_hold_is_refused_where_it_stands() -> None:
    raw = json.dumps({"messages": [user(tool_result({"json": {"x": "HERE"}}))]}).encode()
    error = refusal(raw.replace(b'"HERE"', b"1e999"))
    assert error.where.startswith("messages[0].content[0].toolResult.content[0].json")
