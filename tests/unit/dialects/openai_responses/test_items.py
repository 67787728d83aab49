"""Every kind of input item, as neutral parts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.openai_responses.compaction import PREFACE, SUMMARY_PROMPT, UNREADABLE, seal_summary
from dragoman.ir import AFTER_TEXT, ON_THOUGHT, Media, Signature, Text, Thought, ToolCall, ToolResult, seal
from tests.unit.dialects.builders import PIXEL, SIGNATURE
from tests.unit.dialects.openai_responses.builders import (
    PICTURE,
    Json,
    call,
    decode,
    function,
    message,
    messages,
    namespace,
    notes,
    output,
    parts,
    reasoning,
    refused,
    request,
    user,
)


def test_shorthand_and_every_role() -> None:
    got = messages({"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, user("c"))
    assert [said.role for said in got] == ["user", "model", "user"]
    assert parts({"type": "message", "content": "no role"}) == (Text(text="no role"),)


def test_what_the_assistant_said_and_refused() -> None:
    said = message(
        "assistant",
        {"type": "output_text", "text": "yes", "annotations": [], "logprobs": []},
        {"type": "refusal", "refusal": "no"},
    )
    assert messages(user("q"), said)[1].parts == (Text(text="yes"), Text(text="no"))


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ('{"a": 1}', b'{"a": 1}'),
        ("", b"{}"),
        ("  ", b"{}"),
        ("null", b"{}"),
        ({"a": 1}, b'{"a": 1}'),
        (None, b"{}"),
        ('{"a":"cut \\ud83d"}', b'{"a":"cut \\ufffd"}'),
    ],
)
def test_arguments_come_back_as_they_were(arguments: Any, args: bytes) -> None:
    assert messages(user("q"), call(arguments=arguments))[1].parts == (
        ToolCall(id="call_1", name="read", args=args),
    )
    assert notes(user("q"), call(arguments=arguments)) == []


@pytest.mark.parametrize(
    ("arguments", "args"), [("[1]", b'{"input":[1]}'), ("{cut", b'{"input":"{cut"}'), ("7", b'{"input":7}')]
)
def test_arguments_that_are_no_object_are_wrapped_and_not_lost(arguments: str, args: bytes) -> None:
    (part,) = messages(user("q"), call(arguments=arguments))[1].parts
    assert isinstance(part, ToolCall)
    assert part.args == args
    assert notes(user("q"), call(arguments=arguments)) == [
        "mended input[1].arguments: arguments must be a JSON object; wrapped in one"
    ]


def test_a_call_without_arguments_at_all() -> None:
    bare = {"type": "function_call", "call_id": "call_1", "name": "now"}
    assert messages(user("q"), bare)[1].parts == (ToolCall(id="call_1", name="now", args=b"{}"),)


def test_a_call_in_a_namespace_has_the_name_gemini_knows() -> None:
    (part,) = messages(user("q"), call(name="spawn_agent", namespace="multi_agent_v1"))[1].parts
    assert isinstance(part, ToolCall)
    assert part.name == "multi_agent_v1.spawn_agent"


def test_g1_a_free_form_call_is_a_call_with_one_text() -> None:
    patch = '*** Begin Patch\n*** End "Patch"'
    item = {"type": "custom_tool_call", "call_id": "call_p", "name": "apply_patch", "input": patch}
    (part,) = messages(user("q"), item)[1].parts
    assert isinstance(part, ToolCall)
    assert (part.name, part.arguments) == ("apply_patch", {"input": patch})
    done = {"type": "custom_tool_call_output", "call_id": "call_p", "output": "Done"}
    assert messages(user("q"), item, done)[2].parts == (
        ToolResult(call_id="call_p", content=(Text(text="Done"),)),
    )


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("done", (Text(text="done"),)),
        ("", ()),
        (None, ()),
        ([], ()),
        ({"ok": True}, (Text(text='{"ok": true}'),)),
        (5, (Text(text="5"),)),
        (
            [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": PICTURE}],
            (Text(text="see"), Media(mime="image/png", data=PIXEL)),
        ),
        ([{"type": "input_text", "text": ""}], ()),
    ],
)
def test_what_a_tool_answers(value: Any, content: tuple[Any, ...]) -> None:
    assert messages(user("q"), call(), output(value))[2].parts == (
        ToolResult(call_id="call_1", content=content),
    )


def test_an_output_may_leave_its_text_out() -> None:
    bare = {"type": "apply_patch_call_output", "call_id": "c", "status": "completed"}
    assert parts(bare) == (ToolResult(call_id="c"),)


def test_a_failed_patch_is_an_error() -> None:
    failed = {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no such file"}
    assert parts(failed) == (ToolResult(call_id="c", content=(Text(text="no such file"),), is_error=True),)


CALLS: dict[str, tuple[Json, Json]] = {
    "local_shell": (
        {"type": "local_shell_call", "id": "lsh", "call_id": "c", "status": "completed"}
        | {"action": {"type": "exec", "command": ["ls"], "env": {}, "timeout_ms": None}},
        {"command": ["ls"], "env": {}},
    ),
    "shell": (
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"], "timeout_ms": 5}},
        {"commands": ["ls"], "timeout_ms": 5},
    ),
    "apply_patch": (
        {"type": "apply_patch_call", "call_id": "c", "status": "completed"}
        | {"operation": {"type": "delete_file", "path": "a"}},
        {"type": "delete_file", "path": "a"},
    ),
    "tool_search": (
        {"type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": {"query": "mail"}},
        {"query": "mail"},
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_of_openais_own_types(name: str) -> None:
    item, args = CALLS[name]
    (part,) = messages(user("q"), item)[1].parts
    assert isinstance(part, ToolCall)
    assert (part.id, part.name, part.arguments) == ("c", name, args)


def test_a_call_with_nothing_in_it_is_still_a_call() -> None:
    (part,) = messages(user("q"), {"type": "shell_call", "call_id": "c"})[1].parts
    assert isinstance(part, ToolCall)
    assert part.args == b"{}"


def test_a_shells_output_is_kept_whole() -> None:
    said = [{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 1}}]
    (part,) = parts({"type": "shell_call_output", "call_id": "c", "output": said})
    assert isinstance(part, ToolResult)
    (text,) = part.content
    assert isinstance(text, Text)
    assert json.loads(text.text) == said


def test_a_local_shells_output_is_found_by_either_id() -> None:
    for field in ("call_id", "id"):
        (part,) = parts({"type": "local_shell_call_output", field: "call_1", "output": "x"})
        assert isinstance(part, ToolResult)
        assert part.call_id == "call_1"


@pytest.mark.parametrize(
    ("item", "where"),
    [
        (call(call_id=""), ".call_id"),
        ({**call(), "call_id": None, "id": "fc_1"}, ".call_id"),
        (output(call_id=""), ".call_id"),
        (call(name=""), ".name"),
        ({"type": "custom_tool_call", "call_id": "c", "input": "x"}, ".name"),
        ({"type": "shell_call", "call_id": "c", "action": "ls"}, ".action"),
        (output([{"type": "input_video"}]), ".output[0]"),
        (call(arguments="x") | {"arguments": 5} | {"name": ""}, ".name"),
        ({"type": "item_reference", "id": "msg_9"}, ".id"),
        ({"id": "msg_9"}, ".id"),
        ({"type": "tool_search_output", "call_id": "c", "tools": [{"type": "mcp"}]}, ".tools[0]"),
    ],
)
def test_what_cannot_be_used_is_refused_at_its_place(item: Json, where: str) -> None:
    assert refused(user("q"), item).where == f"input[1]{where}"


def test_an_unknown_reference_says_which_item_is_missing() -> None:
    assert "'msg_9'" in refused({"type": "item_reference", "id": "msg_9"}).message


def test_a1_g4_a_signature_returns_to_its_call() -> None:
    got = messages(user("q"), reasoning("call_2"), call("call_1"), call("call_2"), output())[1]
    assert got.parts == (
        Thought(text="hm"),
        ToolCall(id="call_1", name="read"),
        ToolCall(id="call_2", name="read", signature=SIGNATURE),
    )


def test_a_carrier_without_words_leaves_nothing_but_its_signature() -> None:
    got = messages(user("q"), reasoning("call_1", words=""), call())[1]
    assert got.parts == (ToolCall(id="call_1", name="read", signature=SIGNATURE),)


def test_a_signature_whose_call_is_gone_is_dropped() -> None:
    got = messages(user("q"), reasoning("call_9", words=""), message("assistant", "x"))[1]
    assert got.parts == (Text(text="x"),)


def test_a2_a_thoughts_own_signature_stays_on_it() -> None:
    assert messages(user("q"), reasoning(ON_THOUGHT))[1].parts == (Thought(text="hm", signature=SIGNATURE),)


def test_a_signature_behind_the_text_stands_behind_it_again() -> None:
    got = messages(user("q"), reasoning(AFTER_TEXT), message("assistant", "x"))[1]
    assert got.parts == (Thought(text="hm"), Text(text="x"), Text(text="", signature=SIGNATURE))


def test_two_steps_with_one_id_keep_their_own_signatures() -> None:
    other = Signature("b3RoZXI", "gemini-g3")
    second = {**reasoning(), "encrypted_content": seal(other, "call_1")}
    got = messages(user("q"), reasoning("call_1"), call(), output(), second, call(), output())
    signatures = [p.signature for said in got for p in said.parts if isinstance(p, ToolCall)]
    assert signatures == [SIGNATURE, other]


def test_a9_foreign_reasoning_is_dropped_with_a_note_and_its_words_stay_thoughts() -> None:
    foreign = reasoning(encrypted_content="gAAAAABo-openai")
    assert messages(user("q"), foreign, call())[1].parts[0] == Thought(text="hm")
    assert notes(user("q"), foreign, call()) == [
        "dropped input[1].encrypted_content: this reasoning is not Gemini's and means nothing to it"
    ]


def test_reasoning_content_counts_where_there_is_no_summary() -> None:
    content = [{"type": "reasoning_text", "text": "raw"}]
    assert messages(user("q"), reasoning(words="", content=content))[1].parts == (Thought(text="raw"),)
    two = [{"type": "summary_text", "text": "a"}, {"type": "summary_text", "text": "b"}]
    assert messages(user("q"), reasoning(summary=two, content=content))[1].parts == (Thought(text="a\n\nb"),)
    assert messages(user("q"), reasoning(words="")) == messages(user("q"))


FOREIGN: dict[str, tuple[Json, str]] = {
    "web_search_call": ({"action": {"type": "search", "query": ["odd"]}}, "odd"),
    "mcp_call": ({"server_label": "s", "name": "f", "arguments": "[1]", "output": "42"}, "42"),
    "file_search_call": ({"queries": ["q"], "results": None}, '["q"]'),
    "image_generation_call": ({"revised_prompt": "a cat", "result": PIXEL}, "a cat"),
    "computer_call": ({"call_id": "c", "action": {"type": "click", "x": 1, "y": 2}}, "click"),
    "program": ({"call_id": "c", "code": "run()", "fingerprint": "zzz"}, "run()"),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_server_tools_of_other_models_are_kept_as_words(kind: str) -> None:
    fields, words = FOREIGN[kind]
    item = {"type": kind, "id": "x_1", "status": "completed", **fields}
    said = messages(user("q"), item)[1]
    (part,) = said.parts
    assert said.role == "model"
    assert isinstance(part, Text)
    assert part.text.startswith(f"[{kind}] {{")
    assert words in part.text
    assert not any(hidden in part.text for hidden in ("x_1", "completed", PIXEL, "zzz", "null"))


def test_j2_a_picture_of_another_model_is_dropped_with_a_note() -> None:
    item = {"type": "image_generation_call", "id": "ig", "status": "completed", "result": PIXEL}
    assert notes(user("q"), item) == [
        "dropped input[1].result: a picture the other model made is not sent back"
    ]
    assert notes(user("q"), {**item, "result": None}) == []


def test_what_answered_a_server_tool_is_the_users() -> None:
    assert messages({"type": "program_output", "id": "x"})[0].role == "user"


def test_a_screenshot_is_seen() -> None:
    shot = {"type": "computer_call_output", "call_id": "c"}
    got = parts({**shot, "output": {"type": "computer_screenshot", "image_url": PICTURE}})
    assert got[1] == Media(mime="image/png", data=PIXEL)
    assert refused(shot).where == "input[0].output[0]"


@pytest.mark.parametrize("kind", ["configuration_update"])
def test_what_means_nothing_to_gemini_is_noted(kind: str) -> None:
    assert notes(user("q"), {"type": kind, "tools": []}) == [
        f"dropped input[1]: {kind} has no meaning for Gemini"
    ]
    assert messages(user("q"), {"type": kind}) == messages(user("q"))


def test_what_one_agent_writes_to_another_can_be_read() -> None:
    item = {"type": "agent_message", "author": "/root", "recipient": "/root/a"}
    content = [{"type": "encrypted_content", "encrypted_content": "look at b.py"}]
    assert parts({**item, "content": content}) == (
        Text(text="[message from /root to /root/a]"),
        Text(text="look at b.py"),
    )


def test_additional_tools_are_tools() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [namespace("functions", function())]}
    got = request(item, message("developer", "base"), user("q"), tools=[function("top")])
    assert [tool.name for tool in got.tools] == ["top", "functions.read"]
    assert [text.text for text in got.system] == ["base"]
    assert got.tools[1].where == "input[0].tools[0].tools[0]"


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary", "context_compaction"])
def test_g3_a_compaction_is_the_summary_it_holds(kind: str) -> None:
    item = {"type": kind, "encrypted_content": seal_summary("we fixed it")}
    assert parts(item, user("go on")) == (Text(text=PREFACE + "we fixed it"), Text(text="go on"))


@pytest.mark.parametrize("word", ["gAAAAA", None, seal_summary("x")[:-6], "dgmc1.!", "dgmc1.AAAA"])
def test_g3_a_compaction_that_cannot_be_read_does_not_end_the_session(word: str | None) -> None:
    item = {"type": "compaction", "encrypted_content": word}
    assert parts(item, user("go on"))[0] == Text(text=UNREADABLE)
    assert len(notes(item, user("go on"))) == 1


def test_g3_a_trigger_asks_for_a_summary_and_for_nothing_else() -> None:
    trigger = {"type": "compaction_trigger"}
    text = {"format": {"type": "json_object"}}
    got = decode(user("q"), call(), output(), trigger, tools=[function()], tool_choice="required", text=text)
    assert got.request.messages[-1].parts == (Text(text=SUMMARY_PROMPT),)
    assert (got.request.tool_choice.mode, got.request.output) == ("none", None)
    assert [tool.name for tool in got.request.tools] == ["read"]
    assert got.echo.compacts


def test_g3_instructions_alone_can_be_compacted() -> None:
    got = request(message("developer", "base"), {"type": "compaction_trigger"})
    assert [text.text for text in got.system] == ["base"]
    assert [said.parts for said in got.messages] == [(Text(text=SUMMARY_PROMPT),)]
