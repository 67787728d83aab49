"""Tools that the gateway runs itself and the model has to find first: of servers a client defers, of large profiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage
from openai.types.responses import Response

from dragoman.config import McpServer, ToolsConfig
from tests.faults.harness import HELLO, TOOLS, FakeGoogle, answers, events_of, gateway, streams, text_of
from tests.faults.test_client_mcp import ADD, SAYS, ask, kinds, one_call, settings, whole
from tests.faults.test_gateway_tools import declared
from tests.faults.test_gateway_tools import settings as profile
from tests.unit.tools.test_mcp_http import free_port, serving

Json = dict[str, Any]

SEARCH: Json = {"type": "tool_search"}
DEFERRED: Json = {**ADD, "defer_loading": True}
REGEX = {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"}
USER: Json = {"role": "user", "content": "q"}
FINDS = one_call("tool_search", paths=["mcp__py__add"])
ADDS = one_call("mcp__py__add", a=2, b=3)

#: 250 tools in ten lines.
MANY = """
from dragoman.tools import tool

def make(number):
    def call(word: str = "") -> str:
        return f"{number} says {word}"
    call.__name__ = f"tool_{number:03}"
    call.__doc__ = f"Asks the oracle of {number} cities."
    return tool(call)

for number in range(250):
    globals()[f"tool_{number:03}"] = make(number)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


class TestResponses:
    @pytest.mark.parametrize("lost", [False, True], ids=["remembered", "store lost"])
    async def test_a_server_is_searched_and_what_was_found_stays_declared(
        self, home: Path, lost: bool
    ) -> None:
        google = FakeGoogle(*map(whole, (FINDS, ADDS, SAYS, SAYS)))
        async with gateway(google, **settings(home)) as running:
            body = await ask(running, SEARCH, DEFERRED)
            if lost:
                running.app.gateway.store._values.clear()  # type: ignore[attr-defined]
            await ask(running, SEARCH, DEFERRED, given=[USER, *body["output"], USER])
        found = ["tool_search", "mcp__py__add"]
        assert [declared(one.body) for one in google.arrived] == [["tool_search"], found, found, found]
        assert kinds(body) == [
            "mcp_list_tools",
            "tool_search_call",
            "tool_search_output",
            "mcp_call",
            "message",
        ]
        (loaded,) = body["output"][2]["tools"]
        assert (loaded["type"], loaded["server_label"], loaded["allowed_tools"]) == ("mcp", "py", ["add"])
        assert body["output"][3]["output"] == "5"
        Response.model_validate(body, strict=True)

    async def test_the_same_through_a_kept_conversation(self, home: Path) -> None:
        google = FakeGoogle(*map(whole, (FINDS, ADDS, SAYS, ADDS, SAYS)))
        async with gateway(google, **settings(home)) as running:
            first = await ask(running, SEARCH, DEFERRED)
            again = await ask(running, given="more", previous_response_id=first["id"])
        assert kinds(again) == ["mcp_call", "message"]
        assert declared(google.arrived[-1].body) == ["tool_search", "mcp__py__add"]

    async def test_what_is_found_later_stands_beside_what_was(self, home: Path) -> None:
        later = one_call("tool_search", paths=["mcp__py__fail"])
        google = FakeGoogle(*map(whole, (FINDS, SAYS, later, SAYS)))
        async with gateway(google, **settings(home)) as running:
            first = await ask(running, SEARCH, DEFERRED)
            again = await ask(running, SEARCH, DEFERRED, given=[USER, *first["output"], USER])
        (loaded,) = again["output"][1]["tools"]
        assert loaded["allowed_tools"] == ["fail"]
        assert declared(google.arrived[-1].body) == ["tool_search", "mcp__py__add", "mcp__py__fail"]

    async def test_where_any_call_is_demanded_the_model_may_search_first(self, home: Path) -> None:
        google = FakeGoogle(*map(whole, (FINDS, ADDS, SAYS)))
        async with gateway(google, **settings(home)) as running:
            await ask(running, SEARCH, DEFERRED, tool_choice="required")
        bodies = [one.body for one in google.arrived]
        assert declared(bodies[0]) == ["tool_search"]
        calling = bodies[0]["toolConfig"]["functionCallingConfig"]
        assert (calling["mode"], calling.get("allowedFunctionNames")) == ("ANY", ["tool_search"])
        assert "toolConfig" not in bodies[1]

    async def test_without_a_search_nothing_waits(self, home: Path) -> None:
        google = FakeGoogle(whole(SAYS))
        async with gateway(google, **settings(home)) as running:
            await ask(running, DEFERRED)
        assert declared(google.arrived[0].body) == ["mcp__py__add", "mcp__py__fail"]


class TestAnthropic:
    @pytest.mark.parametrize("lost", [False, True], ids=["remembered", "store lost"])
    async def test_a_toolset_waits_but_for_those_it_names(self, home: Path, lost: bool) -> None:
        port = free_port()
        url = f"http://127.0.0.1:{port}/mcp"
        finds = streams(one_call(REGEX["name"], pattern="header"))
        google = FakeGoogle(finds, streams(one_call("mcp__web__header")), streams(HELLO), streams(HELLO))
        toolset: Json = {
            "type": "mcp_toolset",
            "mcp_server_name": "web",
            "default_config": {"defer_loading": True},
            "configs": {"steps": {"defer_loading": False}},
        }
        asked: Json = {
            "mcp_servers": [{"type": "url", "name": "web", "url": url}],
            "tools": [REGEX, toolset],
        }
        server = McpServer(url=url, requests=True)
        async with serving(port, "stateless"), gateway(google, **settings(home, web=server)) as running:
            events = await events_of(await running.messages(**asked))
            blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
            searched = next(event for event in events if event.get("delta", {}).get("partial_json"))
            blocks[0]["input"] = json.loads(searched["delta"]["partial_json"])
            said = [{"type": "text", "text": text_of(events)} if b["type"] == "text" else b for b in blocks]
            if lost:
                running.app.gateway.store._values.clear()  # type: ignore[attr-defined]
            more = [USER, {"role": "assistant", "content": said}, USER]
            await events_of(await running.messages(**asked, messages=more))
        first = [REGEX["name"], "mcp__web__steps"]
        found = [*first, "mcp__web__header"]
        assert [declared(one.body) for one in google.arrived] == [first, found, found, found]
        assert [block["type"] for block in blocks] == [
            "server_tool_use",
            "tool_search_tool_result",
            "mcp_tool_use",
            "mcp_tool_result",
            "text",
        ]
        assert blocks[1]["content"]["tool_references"][0]["tool_name"] == "mcp__web__header"
        BetaMessage.model_validate({**events[0]["message"], "content": blocks})


class TestProfiles:
    async def test_of_250_tools_the_first_are_declared_and_the_others_found(self, home: Path) -> None:
        (home / "tools").mkdir(parents=True)
        (home / "tools" / "many.py").write_text(MANY)
        finds = streams(one_call("find_tools", query="tool_222"))
        uses = streams(one_call("tool_222", word="yes"))
        google = FakeGoogle(finds, uses, streams(HELLO), streams(HELLO))
        searching: Json = {"tools": ToolsConfig(search_above=10)}
        async with gateway(google, **profile(home, "python:many"), **searching) as running:
            events = await events_of(await running.messages())
            said = {"role": "assistant", "content": text_of(events)}
            more = [{"role": "user", "content": "hi"}, said, USER]
            await events_of(await running.messages(messages=more))
        assert text_of(events) == "Hello"
        sent = [declared(one.body) for one in google.arrived]
        assert sent[0] == ["get_weather", "find_tools", *(f"tool_{number:03}" for number in range(10))]
        assert sent[1][: len(sent[0])] == sent[0]
        assert sent[1][len(sent[0])] == "tool_222"
        assert sent[1] == sent[2] == sent[3]
        (told,) = google.arrived[2].body["contents"][-1]["parts"]
        assert told["functionResponse"]["response"] == {"output": "222 says yes"}

    async def test_what_is_declared_is_counted(self, home: Path) -> None:
        (home / "tools").mkdir(parents=True)
        (home / "tools" / "many.py").write_text(MANY)
        google = FakeGoogle(answers({"totalTokens": 7}))
        body = {"model": "claude-x", "messages": [USER], "tools": TOOLS}
        searching: Json = {"tools": ToolsConfig(search_above=2)}
        async with gateway(google, **profile(home, "python:many"), **searching) as running:
            counted = await running.post("/v1/messages/count_tokens", **body)
            assert await counted.json() == {"input_tokens": 7}
        sent = google.arrived[0].body["generateContentRequest"]
        assert declared(sent) == ["get_weather", "find_tools", "tool_000", "tool_001"]

    async def test_a_server_that_is_not_there_costs_no_count(self, home: Path) -> None:
        google = FakeGoogle(answers({"totalTokens": 7}))
        gone = McpServer(command=("/nowhere/at/all",), requests=True)
        async with gateway(google, **settings(home, py=gone)) as running:
            counted = await running.post(
                "/v1/responses/input_tokens", model="m", input="q", tools=[{**ADD, "server_label": "py"}]
            )
            assert (await counted.json())["input_tokens"] == 7
