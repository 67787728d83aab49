"""What a program sends about tools, and that we read back what we wrote."""

from __future__ import annotations

import msgspec
import pytest

from dragoman.dialects.amazonq import tools as outgoing
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Text, Tool, ToolCall, ToolChoice, ToolResult
from tests.unit.dialects.amazonq.builders import messages, request, user

CALL = ToolCall(id="t1", name="fs_read", args=b'{"path":"a"}')


def test_tools_come_back() -> None:
    tools = [Tool(name="a", description="A.", schema=b'{"type":"object"}'), Tool(name="b")]
    wires = msgspec.json.decode(msgspec.json.encode(outgoing.encode_tools(tools)))
    found = request(user("x", context={"tools": wires})).tools
    assert [(one.name, one.description) for one in found] == [("a", "A."), ("b", "")]


@pytest.mark.parametrize(
    "result",
    [
        ToolResult(call_id="t1", content=(Text(text="done"),)),
        ToolResult(call_id="t1", content=(Text(text="no"),), is_error=True),
        ToolResult(call_id="t1", response=b'{"a": 1}'),
        ToolResult(call_id="t1"),
    ],
)
def test_calls_and_results_come_back(result: ToolResult) -> None:
    found = messages(outgoing.encode_calls([CALL], "x"), outgoing.encode_results([result]))
    call = msgspec.structs.replace(CALL, args=b'{"path": "a"}')
    assert [message.parts for message in found] == [(Text(text="x"), call), (result,)]


def test_words_beside_json_are_a_block_of_their_own() -> None:
    both = ToolResult(call_id="t1", content=(Text(text="seen:"), Text(text="all")), response=b'{"a":1}')
    wire = outgoing.encode_results([both])["userInputMessage"]["userInputMessageContext"]["toolResults"][0]
    assert wire["content"] == [{"text": "seen:\nall"}, {"json": {"a": 1}}]


def test_files_have_no_room_in_a_result() -> None:
    with pytest.raises(InvalidRequest, match="hold no files"):
        outgoing.encode_results([ToolResult(call_id="t1", content=(Media(mime="image/png", data="AA=="),))])


@pytest.mark.parametrize("choice", [ToolChoice(mode="any"), ToolChoice(names=("a",))])
def test_the_model_chooses_its_tools_itself(choice: ToolChoice) -> None:
    outgoing.encode_tool_choice(ToolChoice())
    with pytest.raises(InvalidRequest):
        outgoing.encode_tool_choice(choice)
