"""MCP servers in a request: read, chosen, repeated without secrets, kept without logins, consented to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.openai_responses.conversation_state import inheritable
from dragoman.dialects.openai_responses.encode import Echo
from dragoman.ir import ANY_TOOL, RemoteMcpServer, Text, ToolCall, ToolChoice, ToolFilter, ToolResult
from tests.unit.dialects.openai_responses.builders import (
    body,
    decode,
    function,
    messages,
    refused,
    request,
    user,
)

Json = dict[str, Any]

LABEL: Json = {"type": "mcp", "server_label": "s"}
SECRET: Json = {**LABEL, "server_url": "https://s", "headers": {"X": "one"}, "authorization": "two"}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, {"ask_approval": ANY_TOOL}),
        ({"require_approval": "always"}, {"ask_approval": ANY_TOOL}),
        ({"require_approval": "never"}, {"skip_approval": ANY_TOOL}),
        ({"require_approval": {"never": {"tool_names": ["a"]}}}, {"skip_approval": ToolFilter(names=("a",))}),
        (
            {"require_approval": {"always": {"read_only": False, "tool_names": ["a"]}}},
            {"ask_approval": ToolFilter(names=("a",))},
        ),
        ({"allowed_tools": ["a", "b"]}, {"ask_approval": ANY_TOOL, "allowed": ToolFilter(names=("a", "b"))}),
        (
            {"allowed_tools": {"read_only": True}},
            {"ask_approval": ANY_TOOL, "allowed": ToolFilter(read_only=True)},
        ),
        (
            {"server_url": "https://s", "headers": {"X": "one"}, "authorization": "two"},
            {
                "ask_approval": ANY_TOOL,
                "url": "https://s",
                "headers": (("X", "one"), ("Authorization", "Bearer two")),
            },
        ),
    ],
)
def test_a_server_is_read(more: Json, expected: Json) -> None:
    decoded = decode(tools=[function(), {**LABEL, **more}])
    assert decoded.request.remotes == (RemoteMcpServer(label="s", where="tools[1]", **expected),)
    assert decoded.notes == ()


def test_a_server_that_the_conversation_brings() -> None:
    item = {"type": "additional_tools", "tools": [LABEL]}
    assert [remote.label for remote in request(user("q"), item).remotes] == ["s"]


def test_whose_tools_were_listed_is_known() -> None:
    listing = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []}
    others = {**LABEL, "server_label": "t"}
    found = request(user("q"), listing, tools=[LABEL, others]).remotes
    assert {remote.label: remote.listed for remote in found} == {"s": True, "t": False}
    assert messages(user("q"), listing) == messages(user("q"))


def test_a_summary_uses_no_servers() -> None:
    assert request(user("q"), {"type": "compaction_trigger"}, tools=[LABEL]).remotes == ()


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({"type": "mcp", "server_label": "s"}, ToolChoice(mode="any", names=("mcp__s__*",))),
        ({"type": "mcp", "server_label": "s", "name": "a"}, ToolChoice(mode="any", names=("mcp__s__a",))),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "s"}]},
            ToolChoice(names=("mcp__s__*",)),
        ),
    ],
)
def test_a_choice_of_a_server(choice: Json, expected: ToolChoice) -> None:
    assert request(tools=[LABEL], tool_choice=choice).tool_choice == expected
    unknown = json.loads(json.dumps(choice).replace('"s"', '"t"'))
    assert refused(tools=[LABEL], tool_choice=unknown).where == "tool_choice.type"


def test_an_answer_repeats_no_secrets() -> None:
    echo = decode(tools=[function(), SECRET]).echo
    assert isinstance(echo, Echo)
    tools = json.loads(bytes(echo.fields["tools"]))
    assert tools[1] == {**LABEL, "server_url": "https://s", "headers": {"X": "<redacted>"}}
    (plain,) = json.loads(bytes(decode(tools=[LABEL]).echo.fields["tools"]))
    assert plain == LABEL


@pytest.mark.parametrize(
    ("tools", "kept"),
    [
        ([SECRET, function("mcp")], [{**LABEL, "server_url": "https://s"}, function("mcp")]),
        ([function()], [function()]),
        ("mcp", "mcp"),
        (["mcp"], ["mcp"]),
    ],
)
def test_a_session_keeps_no_logins(tools: Any, kept: Any) -> None:
    assert json.loads(inheritable(body(user("q"), tools=tools)).tools) == kept


ASKED: Json = {
    "type": "mcp_approval_request",
    "id": "mcpr_call_1",
    "server_label": "s",
    "name": "f",
    "arguments": '{"a":1}',
}


class TestConsent:
    def answer(self, approve: bool, **more: Any) -> Json:
        answer = {"type": "mcp_approval_response", "approval_request_id": "mcpr_call_1", "approve": approve}
        return {**answer, **more}

    def test_a_request_is_a_call_and_its_answer_a_result_to_be(self) -> None:
        _, call, result = messages(user("q"), ASKED, self.answer(True))
        assert call.parts == (ToolCall(id="call_1", name="mcp__s__f", args=b'{"a":1}'),)
        (said,) = result.parts
        assert isinstance(said, ToolResult)
        assert (said.call_id, said.approval, said.is_error) == ("call_1", "yes", False)

    def test_a_refusal_says_why(self) -> None:
        *_, result = messages(user("q"), ASKED, self.answer(False, reason="no money"))
        content = (Text(text="The user has declined this call. no money"),)
        assert result.parts == (ToolResult(call_id="call_1", content=content, is_error=True, approval="no"),)

    def test_a_call_that_was_carried_out_tells_everything(self) -> None:
        call = {
            "type": "mcp_call",
            "id": "mcp_call_1",
            "server_label": "s",
            "name": "f",
            "arguments": '{"a":1}',
            "output": "5",
        }
        asked, answered = (user("q"), ASKED), self.answer(True)
        done = {**call, "approval_request_id": "mcpr_call_1"}
        assert messages(*asked, answered, done) == messages(user("q"), call)
        another = {**call, "approval_request_id": "mcpr_call_2"}
        assert len(messages(*asked, answered, another)) == 4

    def test_arguments_that_are_an_object(self) -> None:
        _, call = messages(user("q"), {**ASKED, "arguments": {"a": 1}})
        assert call.parts == (ToolCall(id="call_1", name="mcp__s__f", args=b'{"a": 1}'),)
