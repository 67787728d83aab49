"""Every form of content block, in every position a client may put it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
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
from tests.unit.dialects.anthropic.builders import (
    Json,
    assistant,
    decode,
    document,
    image,
    messages,
    parts,
    refused,
    system,
    text,
    thinking,
    tool_result,
    tool_use,
    user,
)
from tests.unit.dialects.builders import PIXEL, SIGNATURE

PDF = "JVBERi0="
CLAUDE_SIGNATURE = "EqQBCgIYAhIkYmFzZTY0IG9mIHNvbWVib2R5IGVsc2U="
DAMAGED = seal(SIGNATURE, ON_THOUGHT)[:-1] + "x"


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (text("hello"), [Text(text="hello")]),
        (text(""), [Text(text="")]),
        (text(" "), [Text(text=" ")]),
        ({"type": "text"}, [Text(text="")]),
        (text("x", citations=None, cache_control={"type": "ephemeral"}), [Text(text="x")]),
        (image(), [Media(mime="image/png", data=PIXEL)]),
        (
            image(type="url", url="https://h/a.png?x=1#y"),
            [Media(mime="image/png", uri="https://h/a.png?x=1#y")],
        ),
        (image(type="url", url="https://h/a.JPG"), [Media(mime="image/jpeg", uri="https://h/a.JPG")]),
        (image(type="url", url="https://h/a"), [Text(text="(image: https://h/a)")]),
        (
            document({"type": "base64", "media_type": "application/pdf", "data": PDF}),
            [Media(mime="application/pdf", data=PDF)],
        ),
        (document({"type": "url", "url": "https://h/a"}), [Media(mime="application/pdf", uri="https://h/a")]),
        (document({"type": "text", "media_type": "text/plain", "data": "words"}), [Text(text="words")]),
        (document({"type": "content", "content": "words"}), [Text(text="words")]),
        (
            document({"type": "content", "content": [text("a"), image()]}),
            [Text(text="a"), Media(mime="image/png", data=PIXEL)],
        ),
        (
            document({"type": "text", "data": "words"}, title="T", context="C", citations={"enabled": True}),
            [Text(text="T C"), Text(text="words")],
        ),
        (document({"type": "text", "data": "words"}, title=None, context=None), [Text(text="words")]),
        (
            {"type": "search_result", "title": "T", "source": "https://h", "content": [text("found")]},
            [Text(text="T https://h"), Text(text="found")],
        ),
        ({"type": "search_result"}, [Text(text="")]),
        ({"type": "compaction", "content": "what was before"}, [Text(text="what was before")]),
        ({"type": "compaction", "content": None, "encrypted_content": "x"}, []),
        ({"type": "tool_reference", "tool_name": "Read"}, [Text(text="The tool Read is now available.")]),
        ({"type": "someday", "text": "words"}, [Text(text="words")]),
        ({"type": "container_upload", "file_id": "f"}, []),
        ({"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}, "trigger": None}, []),
        ({"type": "mcp_tool_listing", "mcp_server_name": "s", "tools": []}, []),
    ],
)
@pytest.mark.parametrize("say", [user, assistant, system])
def test_block(say: Any, block: Json, expected: list[Part]) -> None:
    assert list(parts(say(block))) == expected


@pytest.mark.parametrize("content", ["", "words"])
@pytest.mark.parametrize("say", [user, assistant, system])
def test_string_content_is_one_text(say: Any, content: str) -> None:
    assert parts(say(content)) == (Text(text=content),)


@pytest.mark.parametrize("content", [None, []])
def test_content_may_be_absent(content: Any) -> None:
    assert messages({"role": "user", "content": content}) == (Message(role="user", parts=()),)
    assert messages({"role": "user"}) == (Message(role="user", parts=()),)


@pytest.mark.parametrize(
    ("given", "args"),
    [
        ({"input": {"a": [1, "\\n"]}}, b'{"a": [1, "\\\\n"]}'),
        ({"input": {}}, b"{}"),
        (
            {"input": {"__unparsedToolInput": {"raw": "{", "len": 1}}},
            b'{"__unparsedToolInput": {"raw": "{", "len": 1}}',
        ),
        ({"input": None}, b"{}"),
        ({"input": "x"}, b'{"input":"x"}'),
        ({"input": [1]}, b'{"input":[1]}'),
        ({"input": 5}, b'{"input":5}'),
    ],
)
def test_c10_tool_use_keeps_its_arguments_byte_for_byte_and_always_as_an_object(
    given: Json, args: bytes
) -> None:
    decoded = decode(
        assistant(tool_use(**given, cache_control={"type": "ephemeral"}, caller={"type": "direct"}))
    )
    assert decoded.request.messages[0].parts == (ToolCall(id="toolu_1", name="Read", args=args),)
    mended = [note.where for note in decoded.notes]
    assert mended == ([] if isinstance(given["input"], dict | None) else ["messages[0].content[0].input"])


def test_tool_use_without_input_calls_with_nothing() -> None:
    assert parts(assistant({"type": "tool_use", "id": "a", "name": "f"})) == (ToolCall(id="a", name="f"),)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("done", (Text(text="done"),)),
        ("", ()),
        (None, ()),
        ([], ()),
        ([text("a"), text(""), text("b")], (Text(text="a"), Text(text="b"))),
        ([text("a"), image()], (Text(text="a"), Media(mime="image/png", data=PIXEL))),
        (
            [document({"type": "base64", "media_type": "application/pdf", "data": PDF}, title="T")],
            (Text(text="T"), Media(mime="application/pdf", data=PDF)),
        ),
        (
            [{"type": "search_result", "title": "T", "source": "S", "content": [text("x")]}],
            (Text(text="T S"), Text(text="x")),
        ),
        (
            [{"type": "tool_reference", "tool_name": "Read"}],
            (Text(text="The tool Read is now available."),),
        ),
        ([thinking(), tool_use()], ()),
        ([{"type": "browser_state", "tabs": []}, text("x")], (Text(text="x"),)),
    ],
)
def test_j1_everything_a_tool_result_may_hold_is_kept(
    content: Any, expected: tuple[Text | Media, ...]
) -> None:
    assert parts(user(tool_result(content))) == (ToolResult(call_id="toolu_1", content=expected),)


@pytest.mark.parametrize(("flag", "is_error"), [(True, True), (False, False), (None, False)])
def test_c5_is_error_is_kept(flag: bool | None, is_error: bool) -> None:
    assert parts(user(tool_result("x", is_error=flag))) == (
        ToolResult(call_id="toolu_1", content=(Text(text="x"),), is_error=is_error),
    )


def test_tool_result_without_content() -> None:
    assert parts(user({"type": "tool_result", "tool_use_id": "a"})) == (ToolResult(call_id="a"),)


@pytest.mark.parametrize(
    "url", ["data:image/png;base64," + PIXEL, "DATA:image/png;charset=x;base64," + PIXEL]
)
def test_j2_a_data_address_is_a_file_and_never_text(url: str) -> None:
    assert parts(user(image(type="url", url=url))) == (Media(mime="image/png", data=PIXEL),)
    assert parts(user(document({"type": "url", "url": url}))) == (Media(mime="image/png", data=PIXEL),)


@pytest.mark.parametrize("say", [user, assistant, system])
@pytest.mark.parametrize(
    "block",
    [
        image(type="base64", media_type="image/png", data=""),
        image(type="base64", data=PIXEL),
        image(type="url", url=""),
        image(type="url", url="data:text/plain,hello"),
        image(type="file", file_id="file_1"),
        image(type="someday"),
        document({"type": "url"}),
    ],
)
def test_j3_a_file_that_cannot_be_read_is_refused_at_its_place(say: Any, block: Json) -> None:
    assert refused(user("a"), say("b", block)).where == "messages[1].content[1].source"


def test_a_file_inside_a_result_is_refused_at_its_place() -> None:
    nested = tool_result([text("a"), image(type="file", file_id="f")])
    assert refused(user("a", nested)).where == "messages[0].content[1].content[1].source"


def test_a_file_inside_a_document_is_refused_at_its_place() -> None:
    nested = document({"type": "content", "content": [text("a"), image(type="file", file_id="f")]})
    assert refused(user(nested)).where == "messages[0].content[0].source.content[1].source"


class TestThinking:
    @pytest.mark.parametrize("signature", ["", None, CLAUDE_SIGNATURE, DAMAGED, "dgm1", "dgm1.a.b.c"])
    def test_a9_a_signature_that_is_not_ours_is_dropped(self, signature: str | None) -> None:
        assert parts(assistant(thinking(signature))) == (Thought(text="hm"),)
        assert parts(assistant(thinking(signature, ""))) == ()

    def test_a9_redacted_thinking_of_another_model_is_dropped(self) -> None:
        assert parts(assistant({"type": "redacted_thinking", "data": CLAUDE_SIGNATURE}, "x")) == (
            Text(text="x"),
        )

    def test_a2_ours_comes_back_on_the_thought(self) -> None:
        sealed = seal(SIGNATURE, ON_THOUGHT)
        assert parts(assistant(thinking(sealed))) == (Thought(text="hm", signature=SIGNATURE),)
        assert parts(assistant({"type": "redacted_thinking", "data": sealed})) == (
            Thought(text="", signature=SIGNATURE),
        )

    def test_a1_ours_comes_back_on_its_call_and_on_no_other(self) -> None:
        sealed = seal(SIGNATURE, "toolu_2")
        got = parts(assistant(thinking(sealed), tool_use("toolu_1"), tool_use("toolu_2")))
        assert got == (
            Thought(text="hm"),
            ToolCall(id="toolu_1", name="Read"),
            ToolCall(id="toolu_2", name="Read", signature=SIGNATURE),
        )

    def test_a1_also_when_the_client_moved_the_block_behind_the_call(self) -> None:
        got = parts(assistant(tool_use(), thinking(seal(SIGNATURE, "toolu_1"), "")))
        assert got == (ToolCall(id="toolu_1", name="Read", signature=SIGNATURE),)

    def test_a12_a_signature_whose_call_is_gone_goes_with_it(self) -> None:
        assert parts(assistant(thinking(seal(SIGNATURE, "toolu_9"), ""), tool_use())) == (
            ToolCall(id="toolu_1", name="Read"),
        )

    def test_a2_the_signature_of_a_closing_part_stands_at_the_end(self) -> None:
        got = parts(assistant(thinking(seal(SIGNATURE, AFTER_TEXT), ""), "answer"))
        assert got == (Text(text="answer"), Text(text="", signature=SIGNATURE))

    def test_a_target_nobody_writes_is_dropped(self) -> None:
        assert parts(assistant(thinking(seal(SIGNATURE, ON_TEXT), ""), "x")) == (Text(text="x"),)

    def test_several_signatures_each_find_their_part(self) -> None:
        got = parts(
            assistant(
                thinking(seal(SIGNATURE, ON_THOUGHT), "a"),
                thinking(seal(SIGNATURE, "toolu_1"), ""),
                tool_use(),
            )
        )
        assert got == (
            Thought(text="a", signature=SIGNATURE),
            ToolCall(id="toolu_1", name="Read", signature=SIGNATURE),
        )


@pytest.mark.parametrize("block", [{"type": "someday"}, {"type": "someday", "data": "x"}])
def test_an_unknown_block_is_refused_by_name_and_place(block: Json) -> None:
    error = refused(user("a"), assistant("b", block))
    assert (error.kind, error.where) == ("invalid_request", "messages[1].content[1]")
    assert "'someday'" in error.message
    assert refused(user(tool_result([text("a"), block]))).where == "messages[0].content[0].content[1]"


def test_a_dropped_block_is_noted() -> None:
    decoded = decode(user("a"), user({"type": "container_upload", "file_id": "f"}))
    assert [(note.kind, note.where) for note in decoded.notes] == [("dropped", "messages[1].content[0]")]


class TestReminders:
    REMINDER = "<system-reminder>\nremember\n</system-reminder>"

    def test_beside_results_they_are_the_programs_remarks(self) -> None:
        got = messages(user(tool_result(), self.REMINDER, "and now?"))
        assert got == (
            Message(
                role="user",
                parts=(ToolResult(call_id="toolu_1", content=(Text(text="done"),)), Text(text="and now?")),
            ),
            Message(role="system", parts=(Text(text=self.REMINDER),)),
        )

    def test_alone_they_stay_with_the_user(self) -> None:
        assert messages(user(self.REMINDER, "hi")) == (
            Message(role="user", parts=(Text(text=self.REMINDER), Text(text="hi"))),
        )

    def test_results_alone_are_one_message(self) -> None:
        assert len(messages(user(tool_result()))) == 1

    def test_many_of_them_cost_no_more_than_their_number(self) -> None:
        many = [tool_result(identity=f"toolu_{n}") for n in range(3000)]
        many += [text(f"{self.REMINDER}{n}") for n in range(3000)]
        rest, remarks = messages(user(*many))
        assert (len(rest.parts), len(remarks.parts)) == (3000, 3000)
