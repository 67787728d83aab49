"""250 tools of which the model sees only what it has found: the vendors' SDKs on the real gateway, over many turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from anthropic import Anthropic
from openai import OpenAI
from openai.types.chat import ChatCompletionMessageFunctionToolCall

from benchmarks.mcp_tools import mcp_tools
from tests.e2e.clients import INSTALL_S, Claude
from tests.e2e.conftest import CLASSIC, NEW
from tests.e2e.directives import plan, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.sdk_rounds import MODES, Mode, ask, text_of

Json = dict[str, Any]

ABOVE = 10
ISSUE, MESSAGE = "mcp__github__create_issue", "mcp__slack__create_message"
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}


def declared(google: Google) -> list[list[str]]:
    bodies = [body for body in google.requests() if "tools" in body]
    return [[one["name"] for one in body["tools"][0]["functionDeclarations"]] for body in bodies]


@pytest.mark.parametrize("mode", MODES)
def test_anthropics_sdk_searches_through_the_gateway(client: Anthropic, google: Google, mode: Mode) -> None:
    tools = [*({**tool, "defer_loading": True} for tool in mcp_tools()), REGEX]
    wishes = [
        (use(REGEX["name"], {"pattern": "github__create_issue"}), ISSUE),
        (use(REGEX["name"], {"pattern": "create_message$"}), MESSAGE),
        ("", ISSUE),  # found two turns ago
    ]
    messages: list[Any] = []
    for search, name in wishes:
        steps = [step for step in (search, use(name, {"title": "It hangs"})) if step]
        messages.append({"role": "user", "content": plan(*steps, say="noted")})
        answer = ask(client, mode, messages, tools)
        kinds = [block.type for block in answer.content if block.type != "thinking"]
        expected = ["server_tool_use", "tool_search_tool_result"] if search else []
        assert kinds == [*expected, "tool_use"]
        assert answer.stop_reason == "tool_use"
        (call,) = (block for block in answer.content if block.type == "tool_use")
        assert (call.name, call.input) == (name, {"title": "It hangs"})
        result = {"type": "tool_result", "tool_use_id": call.id, "content": "done"}
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
        answer = ask(client, mode, messages, tools)
        assert text_of(answer) == "noted"
        messages.append({"role": "assistant", "content": answer.content})
    base = [REGEX["name"]]
    assert declared(google) == [
        base,
        *([[*base, ISSUE]] * 3),
        *([[*base, ISSUE, MESSAGE]] * 4),
    ]
    assert google.sentinels() == 0
    counted = client.messages.count_tokens(model="claude-sonnet", messages=messages, tools=cast("Any", tools))
    assert counted.input_tokens < 10_000


@pytest.fixture
def gpt(gateway: Gateway) -> Iterator[OpenAI]:
    with OpenAI(base_url=f"{gateway.url}/v1", api_key=GATEWAY_KEY, max_retries=0) as sdk:
        yield sdk


@pytest.mark.parametrize("kept", [True, False], ids=["kept by the gateway", "kept by the client"])
@pytest.mark.parametrize("mode", MODES)
def test_openais_sdk_searches_namespaces_through_the_gateway(
    gpt: OpenAI, google: Google, mode: Mode, kept: bool
) -> None:
    tools: list[Any] = [{"type": "tool_search"}, *_namespaces()]
    steps = (use("tool_search", {"paths": ["slack"]}), use("slack.create_message", {"title": "It hangs"}))
    asked: Json = {"role": "user", "content": plan(*steps, say="noted")}
    first = _respond(gpt, mode, model="gpt-5", input=[asked], tools=tools)
    items = [item for item in first.output if item.type != "reasoning"]
    assert [item.type for item in items] == ["tool_search_call", "tool_search_output", "function_call"]
    (space,) = items[1].tools
    assert (space.type, space.name, len(space.tools)) == ("namespace", "slack", 20)
    assert (items[2].name, items[2].namespace) == ("create_message", "slack")
    output: Json = {"type": "function_call_output", "call_id": items[2].call_id, "output": "done"}
    if kept:
        more: Json = {"previous_response_id": first.id, "input": [output]}
    else:
        said = [item.to_dict(mode="json") for item in first.output]
        more = {"input": [asked, *said, output], "tools": tools}
    assert _respond(gpt, mode, model="gpt-5", **more).output_text == "noted"
    found = [f"slack.{tool.name}" for tool in space.tools]
    assert declared(google) == [["tool_search"], ["tool_search", *found], ["tool_search", *found]]


def _namespaces() -> list[Json]:
    """The same tools as OpenAI likes to have them."""
    spaces: dict[str, list[Json]] = {}
    for tool in mcp_tools():
        _, server, name = tool["name"].split("__")
        function = {"type": "function", "name": name, "description": tool["description"], "strict": False}
        parameters = {"parameters": tool["input_schema"], "defer_loading": True}
        spaces.setdefault(server, []).append({**function, **parameters})
    return [
        {"type": "namespace", "name": name, "description": f"Everything about {name}", "tools": tools}
        for name, tools in spaces.items()
    ]


def _respond(gpt: OpenAI, mode: Mode, **fields: Any) -> Any:
    if mode == "whole":
        return gpt.responses.create(**fields)
    with gpt.responses.stream(**fields) as stream:
        return stream.get_final_response()


@pytest.fixture
def frugal(tmp_path: Path, google: Google) -> Iterator[Gateway]:
    own = Gateway(tmp_path / "gateway", google.url, TOOLS_SEARCH_ABOVE=str(ABOVE))
    own.start()
    yield own
    own.stop()
    assert "Traceback" not in own.log()


def test_a_chat_client_that_knows_nothing_of_it_is_spared_240_tools(frugal: Gateway, google: Google) -> None:
    gpt = OpenAI(base_url=f"{frugal.url}/v1", api_key=GATEWAY_KEY, max_retries=0)
    tools: list[Any] = [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["input_schema"],
            },
        }
        for tool in mcp_tools()
    ]
    messages: list[Any] = []
    for query, name in (
        ("create a slack message", MESSAGE),
        ("a calendar event", "mcp__calendar__create_event"),
    ):
        search = use("find_tools", {"query": query})
        messages.append({"role": "user", "content": plan(search, use(name, {"title": "x"}), say="noted")})
        choice = gpt.chat.completions.create(model="gpt-5", messages=messages, tools=tools).choices[0]
        assert choice.message.tool_calls is not None
        (call,) = choice.message.tool_calls
        assert isinstance(call, ChatCompletionMessageFunctionToolCall)
        assert (call.function.name, json.loads(call.function.arguments)) == (name, {"title": "x"})
        messages += [choice.message, {"role": "tool", "tool_call_id": call.id, "content": "done"}]
        choice = gpt.chat.completions.create(model="gpt-5", messages=messages, tools=tools).choices[0]
        assert choice.message.content == "noted"
        messages.append(choice.message)
        if query == "create a slack message":
            frugal.kill()
            frugal.restart()
    sent = declared(google)
    assert sent[0] == [*(tool["name"] for tool in mcp_tools()[:ABOVE]), "find_tools"]
    assert all(after[: len(before)] == before for before, after in pairwise(sent))
    assert len(sent[-1]) <= ABOVE + 1 + 2 * 5


@pytest.mark.clients
@pytest.mark.timeout(INSTALL_S)
@pytest.mark.parametrize(("version", "model"), [NEW, CLASSIC], ids=["new", "classic"])
def test_claude_code_that_sends_all_its_tools_is_searched_for(
    tmp_path: Path, google: Google, version: str, model: str
) -> None:
    """It sees nothing of the search; its tools that were found behind its back are its own to run."""
    own = Gateway(tmp_path / "gateway", google.url, TOOLS_SEARCH_ABOVE="2")
    own.start()
    claude = Claude(version=version, model=model, folder=tmp_path, url=own.url, key=GATEWAY_KEY)
    path = claude.cwd / "a.txt"
    path.write_text("one\n")
    steps = plan(
        use("find_tools", {"query": "Read, Write"}),
        use("Read", {"file_path": str(path)}),
        use("Write", {"file_path": str(path), "content": "two\n"}),
        say="All is written.",
    )
    run = claude.run(steps, env={"ENABLE_TOOL_SEARCH": "false"}).check()
    own.stop()
    assert run.names() == ["Read", "Write"]
    assert path.read_text() == "two\n"
    sent = [names for names in declared(google) if "find_tools" in names]
    assert len(sent[0]) == 3
    assert {"Read", "Write"} <= set(sent[1])
    assert all(after[: len(before)] == before for before, after in pairwise(sent))
    assert google.sentinels() == 0
