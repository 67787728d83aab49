"""MCP servers that a request asks for: used where the operator allows it, shown in the client's own words."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage
from openai.types.responses import Response

from dragoman.config import McpConfig, McpServer
from tests.corpus.responses_adapter import parse_events
from tests.faults.harness import HELLO, FakeGoogle, Running, answers, chunk, events_of, gateway, streams
from tests.faults.test_gateway_tools import SAMPLE, audit, calls, declared, responses
from tests.unit.dialects.openai_responses import stream_checks
from tests.unit.tools.test_mcp_http import free_port, serving

Json = dict[str, Any]

OPEN = McpServer(command=SAMPLE.command, requests=True)
ADD = {"type": "mcp", "server_label": "py", "require_approval": "never", "allowed_tools": ["add", "fail"]}


def whole(data: bytes) -> Any:
    return answers(json.loads(data.partition(b"\r\n")[0][6:]))


def one_call(name: str, **args: Any) -> bytes:
    part = {"functionCall": {"name": name, "args": args, "id": "g1"}, "thoughtSignature": "c2ln"}
    return chunk(part, finish="STOP")


SAYS = chunk({"text": "Done."}, finish="STOP")


def settings(home: Path, **servers: McpServer) -> Json:
    home.mkdir(exist_ok=True)
    return {"home": str(home), "mcp": McpConfig(servers=servers or {"py": OPEN})}


async def ask(running: Running, *tools: Json, given: Any = "q", **more: Any) -> Json:
    body = {"model": "gemini-3.8-flash", "input": given, **({"tools": tools} if tools else {}), **more}
    response = await running.post("/v1/responses", **body)
    return dict(await response.json())


def kinds(body: Json) -> list[str]:
    return [item["type"] for item in body["output"]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


class TestResponses:
    async def test_a_whole_answer_lists_calls_and_says(self, home: Path) -> None:
        google = FakeGoogle(whole(one_call("mcp__py__add", a=2, b=3)), whole(SAYS))
        async with gateway(google, **settings(home)) as running:
            body = await ask(running, ADD)
        assert declared(google.arrived[0].body) == ["mcp__py__add", "mcp__py__fail"]
        assert responses(google.arrived[1].body)[0]["response"] == {"result": 5}
        assert kinds(body) == ["mcp_list_tools", "mcp_call", "message"]
        listed, called, _ = body["output"]
        assert [tool["name"] for tool in listed["tools"]] == ["add", "fail"]
        assert listed["server_label"] == called["server_label"] == "py"
        assert (called["name"], json.loads(called["arguments"])) == ("add", {"a": 2, "b": 3})
        assert called["output"] == "5"
        assert called["error"] is None
        assert called["approval_request_id"] is None
        Response.model_validate(body, strict=True)
        (entry,) = audit(home)
        assert entry["tool"] == "mcp__py__add"
        assert entry["request"].startswith("req_")

    async def test_a_stream_is_what_the_sdk_understands(self, home: Path) -> None:
        google = FakeGoogle(streams(calls("mcp__py__fail", text="So.", why="no luck")), streams(HELLO))
        async with gateway(google, **settings(home)) as running:
            body = {"model": "gemini-3.8-flash", "input": "q", "tools": [ADD], "stream": True}
            response = await running.post("/v1/responses", **body)
            data = await response.read()
        completed, _ = stream_checks.folded(data)
        assert completed is not None
        assert [item.type for item in completed.output] == [
            "mcp_list_tools",
            "message",
            "mcp_call",
            "message",
        ]
        call = completed.output[2]
        assert call.type == "mcp_call"
        assert "no luck" in str(call.error)
        events = [event["event"] for event in parse_events(data)]
        assert "response.mcp_list_tools.completed" in events
        assert "response.mcp_call_arguments.done" in events
        assert "response.mcp_call.failed" in events

    async def test_a_list_the_client_has_is_not_shown_again_and_the_history_is_whole(
        self, home: Path
    ) -> None:
        script = [one_call("mcp__py__add", a=2, b=3), SAYS, SAYS]
        google = FakeGoogle(*map(whole, script))
        async with gateway(google, **settings(home)) as running:
            first = await ask(running, ADD)
            again = await ask(running, ADD, given=[{"role": "user", "content": "q"}, *first["output"], USER])
        assert kinds(again) == ["message"]
        contents = google.arrived[2].body["contents"]
        assert [content["role"] for content in contents] == ["user", "model", "user", "model", "user"]
        assert contents[1]["parts"][0]["thoughtSignature"] == "c2ln"

    async def test_the_same_through_a_kept_conversation(self, home: Path) -> None:
        script = [one_call("mcp__py__add", a=2, b=3), SAYS, one_call("mcp__py__add", a=1, b=1), SAYS]
        google = FakeGoogle(*map(whole, script))
        secret = {**ADD, "headers": {"X-Key": "secret"}, "authorization": "token"}
        async with gateway(google, **settings(home)) as running:
            first = await ask(running, ADD)
            again = await ask(running, given="more", previous_response_id=first["id"])
            assert kinds(again) == ["mcp_call", "message"]
            refused = await ask(running, secret)
            assert "program" in refused["error"]["message"]

    async def test_a_lost_store_leaves_what_the_client_kept(self, home: Path) -> None:
        google = FakeGoogle(whole(one_call("mcp__py__add", a=2, b=3)), whole(SAYS), whole(SAYS))
        async with gateway(google, **settings(home)) as running:
            first = await ask(running, ADD)
            running.app.gateway.store._values.clear()  # type: ignore[attr-defined]
            await ask(running, ADD, given=[{"role": "user", "content": "q"}, *first["output"], USER])
        said = google.arrived[2].body["contents"][1]["parts"]
        assert "5" in said[0]["text"]

    @pytest.mark.parametrize(
        ("choice", "config"),
        [
            ("required", {"mode": "ANY", "allowedFunctionNames": ["mcp__py__add", "mcp__py__fail"]}),
            (
                {"type": "mcp", "server_label": "py"},
                {"mode": "ANY", "allowedFunctionNames": ["mcp__py__add", "mcp__py__fail"]},
            ),
            (
                {"type": "mcp", "server_label": "py", "name": "add"},
                {"mode": "ANY", "allowedFunctionNames": ["mcp__py__add"]},
            ),
            (
                {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "mcp", "server_label": "py"}]},
                {"mode": "VALIDATED", "allowedFunctionNames": ["mcp__py__add", "mcp__py__fail"]},
            ),
        ],
    )
    async def test_a_choice_counts_these_tools_as_the_clients_and_once(
        self, home: Path, choice: Any, config: Json
    ) -> None:
        google = FakeGoogle(whole(one_call("mcp__py__add", a=2, b=3)), whole(SAYS))
        async with gateway(google, **settings(home)) as running:
            await ask(running, ADD, tool_choice=choice)
        first, second = (one.body.get("toolConfig") for one in google.arrived)
        assert first == {"functionCallingConfig": config}
        assert second == (None if config["mode"] == "ANY" else first)


USER = {"role": "user", "content": "more"}
LABELLED = {"type": "mcp", "server_label": "mine", "require_approval": "never"}


ASKS = {"type": "mcp", "server_label": "py", "allowed_tools": ["add"]}


class TestApproval:
    async def first(self, running: Running, **more: Any) -> Json:
        body = await ask(running, ASKS, **more)
        assert kinds(body) == ["mcp_list_tools", "mcp_approval_request"]
        Response.model_validate(body, strict=True)
        return body

    def answer(self, body: Json, approve: bool, **more: Any) -> Json:
        request = body["output"][-1]
        assert (request["name"], json.loads(request["arguments"])) == ("add", {"a": 2, "b": 3})
        return {
            "type": "mcp_approval_response",
            "approval_request_id": request["id"],
            "approve": approve,
            **more,
        }

    @pytest.mark.parametrize("kept", [True, False], ids=["by reference", "in full"])
    async def test_a_call_waits_for_the_users_consent(self, home: Path, kept: bool) -> None:
        google = FakeGoogle(whole(one_call("mcp__py__add", a=2, b=3)), whole(SAYS), whole(SAYS))
        async with gateway(google, **settings(home)) as running:
            first = await self.first(running)
            assert audit(home) == []
            answer = self.answer(first, approve=True)
            history = [{"role": "user", "content": "q"}, *first["output"], answer]
            if kept:
                more = await ask(running, given=[answer], previous_response_id=first["id"])
            else:
                more = await ask(running, ASKS, given=history)
            assert kinds(more) == ["mcp_call", "message"]
            assert more["output"][0]["approval_request_id"] == first["output"][-1]["id"]
            assert [entry["outcome"] for entry in audit(home)] == ["ok"]
            if kept:
                await ask(running, given="and?", previous_response_id=more["id"])
            else:
                await ask(running, ASKS, given=[*history, *more["output"], USER])
        assert len(audit(home)) == 1  # never again
        call, result = google.arrived[1].body["contents"][1:]
        assert call["parts"][0]["thoughtSignature"] == "c2ln"
        assert result["parts"][0]["functionResponse"]["response"] == {"result": 5}
        assert google.arrived[2].body["contents"][-1]["parts"][0]["text"] in ("and?", "more")

    async def test_a_declined_call_is_not_run(self, home: Path) -> None:
        google = FakeGoogle(whole(one_call("mcp__py__add", a=2, b=3)), whole(SAYS))
        async with gateway(google, **settings(home)) as running:
            first = await self.first(running)
            answer = self.answer(first, approve=False, reason="too expensive")
            more = await ask(running, given=[answer], previous_response_id=first["id"])
        assert kinds(more) == ["message"]
        assert audit(home) == []
        told = responses(google.arrived[1].body)[0]["response"]["error"]
        assert told == "The user has declined this call. too expensive"

    async def test_consent_that_is_long_past_runs_nothing(self, home: Path) -> None:
        google = FakeGoogle(whole(one_call("mcp__py__add", a=2, b=3)), whole(SAYS))
        async with gateway(google, **settings(home)) as running:
            first = await self.first(running)
            answer = self.answer(first, approve=True)
            said = {"role": "assistant", "content": "something"}
            history = [{"role": "user", "content": "q"}, *first["output"], answer, said, USER]
            await ask(running, ASKS, given=history)
        assert audit(home) == []

    async def test_beside_a_call_that_needs_none_and_one_of_the_clients(self, home: Path) -> None:
        parts: list[Json] = [
            {"functionCall": {"name": name, "args": {"a": 2, "b": 3}, "id": f"g{number}"}}
            for number, name in enumerate(("mcp__py__fail", "mcp__py__add", "look"))
        ]
        parts[0]["thoughtSignature"] = "c2ln"
        parts[0]["functionCall"]["args"] = {"why": "no luck"}
        google = FakeGoogle(whole(chunk(*parts, finish="STOP")), whole(SAYS))
        tool = {
            "type": "mcp",
            "server_label": "py",
            "allowed_tools": {"tool_names": ["add", "fail"]},
            "require_approval": {"never": {"tool_names": ["fail"]}},
        }
        look = {"type": "function", "name": "look", "parameters": {}}
        async with gateway(google, **settings(home)) as running:
            first = await ask(running, tool, look)
            assert kinds(first) == ["mcp_list_tools", "function_call", "mcp_call", "mcp_approval_request"]
            answers_given = [
                {"type": "function_call_output", "call_id": first["output"][1]["call_id"], "output": "seen"},
                self.answer(first, approve=True),
            ]
            await ask(
                running,
                tool,
                look,
                given=[{"role": "user", "content": "q"}, *first["output"], *answers_given],
            )
        call, results = google.arrived[1].body["contents"][1:]
        assert [one["functionCall"]["id"] for one in call["parts"]] == ["g0", "g1", "g2"]
        said = [one["functionResponse"]["response"] for one in results["parts"]]
        assert "no luck" in said[0]["error"]
        assert said[1:] == [{"result": 5}, {"output": "seen"}]


class TestDoor:
    @pytest.mark.parametrize(
        "tool",
        [
            {"server_label": "other"},
            {"server_label": "py", "server_url": "http://169.254.169.254/latest"},
            {"server_label": "web", "server_url": "http://127.0.0.1:9/mcp/"},
            {"server_label": "closed"},
            {"server_label": "off"},
        ],
    )
    async def test_q9_an_address_or_a_label_nobody_allowed_is_refused(self, home: Path, tool: Json) -> None:
        google = FakeGoogle(whole(SAYS))
        servers = {
            "py": OPEN,
            "web": McpServer(url="http://127.0.0.1:9/mcp", requests=True),
            "closed": SAMPLE,
            "off": McpServer(command=SAMPLE.command, requests=True, enabled=False),
        }
        async with gateway(google, **settings(home, **servers)) as running:
            body = await ask(running, {"type": "mcp", "require_approval": "never", **tool})
        assert "is not called from here" in body["error"]["message"]
        assert body["error"]["param"] == "tools[0]"
        assert google.arrived == []

    async def test_without_any_server_in_the_settings(self, home: Path) -> None:
        google = FakeGoogle(whole(SAYS))
        async with gateway(google) as running:
            body = await ask(running, ADD)
        assert "is not called from here" in body["error"]["message"]

    async def test_not_for_a_caller_with_nothing_but_a_google_key(self, home: Path) -> None:
        google = FakeGoogle(whole(SAYS))
        async with gateway(google, **settings(home)) as running:
            running.headers = {"x-goog-api-key": "AIza-somebodys-own"}
            body = await ask(running, ADD)
        assert "is not called from here" in body["error"]["message"]

    async def test_a_server_that_is_down_is_an_error(self, home: Path) -> None:
        google = FakeGoogle(whole(SAYS))
        broken = McpServer(command=("/bin/false",), requests=True)
        async with gateway(google, **settings(home, py=broken)) as running:
            body = await ask(running, ADD)
        assert "'py' cannot be used now" in body["error"]["message"]

    async def test_a_connection_ends_although_the_request_is_refused(self, home: Path) -> None:
        port = free_port()
        url = f"http://127.0.0.1:{port}/mcp"
        google = FakeGoogle(whole(SAYS))
        mine = {**LABELLED, "server_url": url, "headers": {"X-Key": "k"}}
        broken = McpServer(command=("/bin/false",), requests=True)
        servers = {"web": McpServer(url=url, requests=True), "broken": broken}
        async with serving(port, "stateless"), gateway(google, **settings(home, **servers)) as running:
            for other in ("nobody-allowed", "broken"):
                body = await ask(running, mine, {**LABELLED, "server_label": other})
                assert body["error"]
                names = [task.get_name() for task in asyncio.all_tasks()]
                assert "mcp-web" not in names
        assert google.arrived == []

    async def test_headers_of_a_request_reach_that_server_and_are_kept_nowhere(self, home: Path) -> None:
        port = free_port()
        url = f"http://127.0.0.1:{port}/mcp"
        google = FakeGoogle(streams(calls("mcp__mine__header")), streams(HELLO))
        server = McpServer(url=url, requests=True, headers={"x-key": "operators", "X-Other": "kept"})
        tool = {
            "type": "mcp",
            "server_label": "mine",
            "server_url": url,
            "require_approval": "never",
            "headers": {"X-Key": "users-own-secret"},
            "authorization": "users-own-token",
        }
        async with serving(port, "stateless"), gateway(google, **settings(home, web=server)) as running:
            body = {"model": "gemini-3.8-flash", "input": "q", "tools": [tool], "stream": True}
            response = await running.post("/v1/responses", **body)
            data = await response.read()
            turns = running.app.gateway.store.turns._turns  # type: ignore[attr-defined]
            assert turns
            for turn in turns.values():
                for kept in (turn.data, turn.answer):
                    assert b"users-own" not in kept.replace(b'"output":"users-own-secret"', b"")
            assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("mcp-")]
        result = responses(google.arrived[1].body)[0]["response"]
        assert result == {"result": "users-own-secret"} or result == {"output": "users-own-secret"}
        assert b"users-own-token" not in data


class TestAnthropic:
    async def test_a_server_and_its_toolset(self, home: Path) -> None:
        port = free_port()
        url = f"http://127.0.0.1:{port}/mcp"
        google = FakeGoogle(streams(calls("mcp__web__header", text="So.")), streams(HELLO))
        server = McpServer(url=url, requests=True)
        asked: Json = {
            "mcp_servers": [{"type": "url", "name": "web", "url": url}],
            "tools": [
                {"type": "mcp_toolset", "mcp_server_name": "web", "configs": {"steps": {"enabled": False}}}
            ],
        }
        async with serving(port, "stateless"), gateway(google, **settings(home, web=server)) as running:
            events = await events_of(await running.messages(**asked))
            blocks = [event["content_block"] for event in events if event["type"] == "content_block_start"]
        assert declared(google.arrived[0].body) == ["mcp__web__header"]
        assert [block["type"] for block in blocks] == ["text", "mcp_tool_use", "mcp_tool_result", "text"]
        assert (blocks[1]["name"], blocks[1]["server_name"]) == ("header", "web")
        message = {**events[0]["message"], "content": blocks}
        BetaMessage.model_validate(message)

    async def test_one_that_is_not_allowed(self, home: Path) -> None:
        google = FakeGoogle(streams(HELLO))
        asked: Json = {"mcp_servers": [{"type": "url", "name": "web", "url": "http://127.0.0.1:9/mcp"}]}
        async with gateway(google, **settings(home)) as running:
            body = await (await running.messages(**asked)).json()
        assert "is not called from here" in body["error"]["message"]
