"""What a search for tools shows, read by the vendors' own SDKs; what they send for it, read by us."""

from __future__ import annotations

import json
from typing import Any, get_args, get_type_hints

import msgspec
import pytest
from anthropic.types import (
    Message,
    ServerToolUseBlock,
    ToolSearchToolBm25_20251119Param,
    ToolSearchToolRegex20251119Param,
    ToolSearchToolResultBlock,
    ToolSearchToolResultError,
    ToolSearchToolSearchResultBlock,
)
from anthropic.types.beta import BetaMessage
from openai.types.responses import (
    NamespaceTool,
    Response,
    ResponseToolSearchCall,
    ResponseToolSearchOutputItem,
    ToolSearchTool,
)

from dragoman.dialects import anthropic, openai_responses
from dragoman.dialects.openai_responses.encode import Echo
from dragoman.ir import Event, ServerCall, ServerResult, TextDelta, collect
from tests.corpus.responses_adapter import parse_events
from tests.oracle import test_anthropic_sdk as claude
from tests.oracle import test_openai_responses as gpt
from tests.unit.dialects.anthropic import stream_checks as messages
from tests.unit.dialects.openai_responses import stream_checks as responses
from tests.unit.dialects.openai_responses.builders import function, namespace
from tests.unit.dialects.stream_checks import call, whole_stream

Json = dict[str, Any]

FOUND = ServerResult(call_id="toolu_1", kind="tool_search", tools=("a", "crm.b"))
RESULTS = {
    "found": FOUND,
    "nothing": msgspec.structs.replace(FOUND, tools=()),
    "wrong": msgspec.structs.replace(FOUND, tools=(), error="invalid_tool_input", output="missing )"),
    "too slow": msgspec.structs.replace(FOUND, tools=(), error="execution_time_exceeded"),
}
NAMES = ("tool_search_tool_regex", "tool_search_tool_bm25")


def searched(result: ServerResult, name: str, call: list[Event]) -> list[Event]:
    asking = ServerCall(id=result.call_id, kind="tool_search", name=name, args=b'{"pattern":"x"}')
    return [TextDelta("so"), asking, result, TextDelta("then"), *call]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("case", RESULTS)
def test_anthropic_reads_the_stream_and_the_whole_answer(case: str, name: str) -> None:
    events = whole_stream(searched(RESULTS[case], name, call("toolu_2")))
    body = anthropic.encode_response(collect(events), messages.answer())
    strict = Message.model_validate_json(body, strict=True)
    BetaMessage.model_validate_json(body, strict=True)
    assert claude.plain(claude.accumulated(events)) == claude.plain(strict)
    assert not any(block.model_extra for block in strict.content)
    _, asking, result, _, used = strict.content
    assert isinstance(asking, ServerToolUseBlock)
    assert (asking.name, asking.input, asking.id) == (name, {"pattern": "x"}, "srvtoolu_1")
    assert isinstance(result, ToolSearchToolResultBlock)
    assert result.tool_use_id == asking.id
    if RESULTS[case].error:
        assert isinstance(result.content, ToolSearchToolResultError)
        assert result.content.error_code == RESULTS[case].error
    else:
        assert isinstance(result.content, ToolSearchToolSearchResultBlock)
        assert tuple(one.tool_name for one in result.content.tool_references) == RESULTS[case].tools
    assert used.type == "tool_use"
    for event in messages.parse(messages.stream_bytes(events)):
        assert not claude.STREAM_EVENT.validate_python(event["data"]).model_extra


@pytest.mark.parametrize("form", [ToolSearchToolRegex20251119Param, ToolSearchToolBm25_20251119Param])
def test_every_tool_that_anthropic_can_ask_with_is_understood(form: type) -> None:
    hints = get_type_hints(form)
    (name,) = get_args(hints["name"])
    assert name in NAMES
    for kind in get_args(hints["type"]):
        later = {"name": "a", "input_schema": {"type": "object"}, "defer_loading": True}
        body = {**claude.ASK, "tools": [{"type": kind, "name": name}, later]}
        decoded = anthropic.decode_request(json.dumps(body).encode(), {})
        (search,) = decoded.request.server_tools
        assert (search.kind, search.name, decoded.notes) == ("tool_search", name, ())


TOOLS = [
    function("a", defer_loading=True),
    namespace("crm", function("b", defer_loading=True), description="C"),
]
ECHO = Echo(sources=(msgspec.json.encode(TOOLS),), carries=True)


@pytest.mark.parametrize("case", RESULTS)
def test_openai_reads_the_stream_and_the_whole_answer(case: str) -> None:
    given = msgspec.structs.replace(responses.answer(), echo=ECHO)
    events = whole_stream(searched(RESULTS[case], "tool_search", responses.call("call_1")))
    body = openai_responses.encode_response(collect(events), given)
    strict = Response.model_validate_json(body, strict=True)
    with gpt.streaming(events, given).responses.stream(**gpt.ASK) as reading:
        last: Any = list(reading)[-1]
    assert gpt.plain(last.response) == gpt.plain(strict) == json.loads(body)
    _, asking, found, _, used = strict.output
    assert isinstance(asking, ResponseToolSearchCall)
    assert (asking.execution, asking.call_id, asking.status) == ("server", None, "completed")
    assert isinstance(found, ResponseToolSearchOutputItem)
    assert (found.execution, found.call_id) == ("server", None)
    assert found.status == ("incomplete" if RESULTS[case].error else "completed")
    if case == "found":
        first, second = found.tools
        assert first.type == "function"
        assert isinstance(second, NamespaceTool)
        assert [tool.name for tool in second.tools] == ["b"]
    else:
        assert found.tools == []
    assert used.type == "function_call"
    for event in parse_events(responses.stream_bytes(events, given)):
        assert not responses.SDK_EVENT.validate_python(event["data"]).model_extra


@pytest.mark.parametrize(
    "execution", get_args(get_args(ToolSearchTool.model_fields["execution"].annotation)[0])
)
def test_every_execution_that_openai_can_ask_for_is_understood(execution: str) -> None:
    body = {**gpt.ASK, "tools": [{"type": "tool_search", "execution": execution}, *TOOLS]}
    request = openai_responses.decode_request(json.dumps(body).encode(), {}).request
    names = [tool.name for tool in request.tools]
    assert names == (["a", "crm.b"] if execution == "server" else ["tool_search"])
    assert bool(request.server_tools) is (execution == "server")


def test_what_the_sdks_bring_back_is_what_we_showed() -> None:
    events = whole_stream(searched(FOUND, NAMES[0], call("toolu_2")))
    content = claude.accumulated(events).model_dump(mode="json", exclude_none=True)["content"]
    later = {"name": "a", "input_schema": {"type": "object"}, "defer_loading": True}
    tools = [{"type": NAMES[0], "name": NAMES[0]}, later]
    history = [{"role": "user", "content": "q"}, {"role": "assistant", "content": content}]
    body = {**claude.ASK, "messages": history, "tools": tools}
    decoded = anthropic.decode_request(json.dumps(body).encode(), {})
    assert decoded.request.found == ("a",)
    assert decoded.request.messages[1].parts[2] == FOUND
