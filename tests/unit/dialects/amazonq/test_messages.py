"""One message of either side: words, results, calls, thoughts, files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.base import Target
from dragoman.ir import (
    AFTER_TEXT,
    ON_THOUGHT,
    Media,
    Message,
    Part,
    SealedSignature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from dragoman.translation.exchange import Exchange
from tests.unit.dialects.amazonq.builders import (
    ASSISTANT,
    CONTEXT,
    CURRENT,
    HISTORY,
    USER,
    assistant,
    body,
    document,
    image,
    messages,
    noted,
    parts,
    reasoning,
    refused,
    result,
    results,
    sealed,
    use,
    user,
)
from tests.unit.dialects.builders import PIXEL, SIGNATURE

PNG = Media(mime="image/png", data=PIXEL)
TEXT, JSON = {"text": "done"}, {"json": {"stdout": "ok"}}


@pytest.mark.parametrize(
    ("given", "content", "response"),
    [
        ([TEXT], ("done",), b""),
        ([JSON], (), b'{"stdout": "ok"}'),
        ([TEXT, JSON], ("done", '{"stdout": "ok"}'), b""),
        ([JSON, TEXT], ('{"stdout": "ok"}', "done"), b""),
        ([{"json": [1, 2]}], ("[1, 2]",), b""),
        ([{"json": "words"}], ('"words"',), b""),
        ([{"text": ""}, TEXT], ("done",), b""),
        ([{"text": None, "json": {"a": 1}}], (), b'{"a": 1}'),
        ([{"text": "x", "json": None}], ("x",), b""),
        ([{"json": None}, {}], (), b""),
        ([], (), b""),
    ],
)
def test_every_block_of_a_result_is_kept_in_its_order(
    given: list[dict[str, Any]], content: tuple[str, ...], response: bytes
) -> None:
    (found,) = parts(results(result(*given, status="success")))
    expected = tuple(Text(text=text) for text in content)
    assert found == ToolResult(call_id="t1", content=expected, response=response)


def test_a_failure_is_told_as_google_knows_it() -> None:
    (words, object_) = parts(
        results(result(TEXT, status="error"), result(JSON, identity="t2", status="error", toolName="x"))
    )
    assert words == ToolResult(call_id="t1", content=(Text(text="done"),), is_error=True)
    assert object_ == ToolResult(
        call_id="t2", name="x", response=b'{"error":{"stdout": "ok"}}', is_error=True
    )


@pytest.mark.parametrize(("status", "key"), [("success", "output"), ("error", "error")])
def test_a_reference_inside_a_result_is_no_file_of_googles(status: str, key: str) -> None:
    schema = result({"json": {"items": {"$ref": "#/x"}}}, status=status)
    exchange = Exchange(AmazonQ(), new_id=lambda: "0" * 16)
    exchange.decode(body(user("hi"), assistant("", use(input={})), results(schema)))
    sent = json.loads(exchange.encode(Target(model="gemini-3.8-flash")))
    (part,) = sent["contents"][2]["parts"]
    assert part["functionResponse"]["response"] == {key: '{"items":{"$ref":"#/x"}}'}
    assert "moved" in {note.kind for note in exchange.notes}


def test_unknown_content_of_a_result_is_refused_with_its_place() -> None:
    error = refused(results(result(TEXT, {"image": {"format": "png"}})))
    assert error.where == f"{CURRENT}{CONTEXT}.toolResults[0].content[1]"
    assert "image" in error.message
    assert refused(results(result({"text": 5}))).where == f"{CURRENT}{CONTEXT}.toolResults[0].content[0].text"


def test_cancelled_tools_and_a_new_prompt_are_results_first() -> None:
    cancelled = results(
        result({"text": "cancelled"}, status="error"), content="do otherwise", images=[image()]
    )
    found = messages(cancelled)
    answered = ToolResult(call_id="t1", content=(Text(text="cancelled"),), is_error=True)
    assert found == (
        Message(role="user", parts=(answered,)),
        Message(role="user", parts=(Text(text="do otherwise"), PNG)),
    )


def test_files_beside_nothing_but_results_are_the_last_tools() -> None:
    seen = results(
        result(TEXT), result({"text": "See images data supplied"}, identity="t2"), images=[image()]
    )
    first, last = parts(seen)
    assert isinstance(first, ToolResult)
    assert first.content == (Text(text="done"),)
    assert last == ToolResult(call_id="t2", content=(Text(text="See images data supplied"), PNG))
    (of_json,) = parts(results(result(JSON), images=[image()]))
    assert of_json == ToolResult(call_id="t1", content=(Text(text='{"stdout": "ok"}'), PNG))


def test_words_documents_and_images_of_the_user() -> None:
    assert parts(
        user("look", images=[image(), image("jpeg")], documents=[document(), document("md", name=None)])
    ) == (
        Text(text="look"),
        Text(text="a"),
        Media(mime="application/pdf", data="JVBERi0="),
        Media(mime="text/plain", data="JVBERi0="),
        PNG,
        Media(mime="image/jpeg", data=PIXEL),
    )
    assert parts(user("", images=[image()])) == (PNG,)
    assert parts(user("x", images=[], documents=[])) == (Text(text="x"),)


@pytest.mark.parametrize(
    ("form", "mime"),
    [("pdf", "application/pdf"), ("csv", "text/csv"), ("html", "text/html"), ("txt", "text/plain")],
)
def test_documents_that_gemini_reads(form: str, mime: str) -> None:
    assert parts(user("", documents=[document(form, name=None)])) == (Media(mime=mime, data="JVBERi0="),)


@pytest.mark.parametrize("form", ["doc", "docx", "xls", "xlsx", "png"])
def test_documents_that_gemini_cannot_read_are_refused_never_dropped(form: str) -> None:
    error = refused(user("x", documents=[document(), document(form)]))
    assert (error.where, error.code) == (f"{CURRENT}{USER}.documents[1].format", "file_type")
    assert form in error.message


@pytest.mark.parametrize("form", ["bmp", "pdf", ""])
def test_unknown_images_are_refused(form: str) -> None:
    error = refused(user("x", images=[image(form)]))
    assert (error.where, error.code) == (f"{CURRENT}{USER}.images[0].format", "image_format")


@pytest.mark.parametrize("source", [{}, {"source": None}, {"source": {"bytes": ""}}])
def test_a_file_without_bytes_is_refused(source: dict[str, Any]) -> None:
    error = refused(user("x"), assistant("y"), user("z", images=[{"format": "png", **source}]))
    assert error.where == f"{CURRENT}{USER}.images[0].source.bytes"


def test_what_kind_of_question_it_is_means_nothing_to_gemini() -> None:
    assert noted(user("x", userIntent="EXPLAIN_CODE_SELECTION")) == [
        ("dropped", f"{CURRENT}{USER}.userIntent")
    ]


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ({"input": {"a": "\\n"}}, b'{"a": "\\\\n"}'),
        ({"input": None}, b"{}"),
        ({}, b"{}"),
        ({"input": {}}, b"{}"),
    ],
)
def test_p2_arguments_are_kept_byte_for_byte(given: dict[str, Any], args: bytes) -> None:
    assert parts(assistant("", use(**given))) == (ToolCall(id="t1", name="fs_read", args=args),)


def test_arguments_that_are_no_object_are_wrapped() -> None:
    odd = assistant("x", use(input={}), use("t2", input="ls"))
    assert messages(odd)[0].parts[2] == ToolCall(id="t2", name="fs_read", args=b'{"input":"ls"}')
    assert noted(odd) == [("mended", f"{CURRENT}{ASSISTANT}.toolUses[1].input")]


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        (sealed(ON_THOUGHT), (Thought(text="hm", signature=SIGNATURE), Text(text="x"), "t1", "t2")),
        (sealed("t1"), (Thought(text="hm"), Text(text="x"), "+t1", "t2")),
        (
            sealed(AFTER_TEXT),
            (Thought(text="hm"), Text(text="x"), "t1", "t2", Text(text="", signature=SIGNATURE)),
        ),
        (sealed("gone"), (Thought(text="hm"), Text(text="x"), "t1", "t2")),
        (None, (Thought(text="hm"), Text(text="x"), "t1", "t2")),
    ],
)
def test_a_signature_in_the_reasoning_goes_where_it_belongs(
    signature: str | None, expected: tuple[Part | str, ...]
) -> None:
    found = messages(assistant("x", use(), use("t2"), **reasoning(signature=signature)), user("y"))[0].parts
    assert tuple(_short(part) for part in found) == expected


def _short(part: Part) -> Part | str:
    if not isinstance(part, ToolCall):
        return part
    return f"+{part.id}" if part.signature == SIGNATURE else part.id


@pytest.mark.parametrize("signature", [None, sealed("t1")])
def test_a_call_of_a_renamed_tool_gets_no_signature_back(signature: str | None) -> None:
    """Google would refuse what it signed under the tool's old name; the store is not asked for it either."""
    renamed = assistant("x", use("t1", "dummy"), use("t2"), **reasoning(signature=signature))
    exchange = Exchange(AmazonQ(), new_id=lambda: "n")
    exchange.decode(body(user(), renamed, results(result(TEXT), result(TEXT, identity="t2")), user()))
    assert "t1" not in exchange.missing_keys
    assert "t2" in exchange.missing_keys
    sent = json.loads(
        exchange.encode(Target(model="gemini-3.8-flash"), {"t1": SealedSignature(SIGNATURE, "t1")})
    )
    calls = [part for part in sent["contents"][1]["parts"] if "functionCall" in part]
    assert [part["functionCall"]["name"] for part in calls] == ["dummy", "fs_read"]
    assert not any("thoughtSignature" in part for part in calls)


def test_a4_reasoning_of_other_models_is_dropped_with_a_note() -> None:
    foreign = assistant("x", **reasoning(signature="EqQBCgIYAhIk"))
    where = f"{HISTORY}[0]{ASSISTANT}.reasoningContent"
    assert noted(foreign, user()) == [("dropped", f"{where}.reasoningText.signature")]
    assert messages(foreign, user())[0].parts == (Thought(text="hm"), Text(text="x"))
    redacted = assistant("x", reasoningContent={"redactedContent": "AAAA"})
    assert noted(redacted, user()) == [("dropped", f"{where}.redactedContent")]
    assert messages(redacted, user())[0].parts == (Text(text="x"),)
    assert noted(assistant("x", reasoningContent={}), user()) == []


def test_what_was_shown_beside_an_answer_is_not_told_again() -> None:
    links = assistant(
        "x", supplementaryWebLinks=[{"url": "u"}], references=[], followupPrompt=None, messageId="m"
    )
    assert noted(links, user()) == [("dropped", f"{HISTORY}[0]{ASSISTANT}.supplementaryWebLinks")]
