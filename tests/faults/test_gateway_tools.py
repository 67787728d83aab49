"""Tools that the gateway runs itself, while Google, tools, servers, files and clients fail in every way."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dragoman.config import Config, McpConfig, McpServer, Profile, ToolsConfig
from dragoman.errors import ConfigError
from dragoman.gateway.context import Gateway
from dragoman.gateway.gateway_tools import resources
from dragoman.store import MemoryStore
from tests.faults.harness import (
    EMPTY,
    HELLO,
    KEY,
    TOOLS,
    FakeGoogle,
    answers,
    chunk,
    events_of,
    gateway,
    refuses,
    streams,
    text_of,
    types_of,
)

Json = dict[str, Any]

SAMPLE = McpServer(command=(sys.executable, str(Path(__file__).parents[1] / "unit/tools/mcp_sample.py")))
PYTHON = '''
import asyncio
import threading
from pathlib import Path

from dragoman.tools import tool

HERE = Path(__file__).parent


@tool
def lookup(word: str) -> str:
    """Look a word up."""
    return f"{word} means something"


@tool
async def wait(seconds: float) -> str:
    """Wait; says in files that it began and that it was stopped."""
    (HERE / "began").touch()
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        (HERE / "stopped").touch()
        raise
    return "waited"


@tool
def broken() -> str:
    """Breaks."""
    raise RuntimeError("boom")
'''


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / "tools").mkdir(parents=True)
    (home / "tools" / "mine.py").write_text(PYTHON)
    return home


def settings(home: Path, *tools: str, **more: Any) -> Json:
    servers = more.pop("servers", {})
    profile = Profile(tools=tools or ("python:mine",), **more)
    return {"home": str(home), "profiles": {"team": profile}, "mcp": McpConfig(servers=servers)}


def calls(*names: str, text: str = "", signature: str = "c2ln", **args: Any) -> bytes:
    parts: list[Json] = [{"text": text}] if text else []
    parts += [
        {"functionCall": {"name": name, "args": args, "id": f"g{number}"}}
        for number, name in enumerate(names)
    ]
    first = next(part for part in parts if "functionCall" in part)
    first["thoughtSignature"] = signature
    return chunk(*parts) + chunk({"text": ""}, finish="STOP")


def responses(body: Json) -> list[Json]:
    """The results in the last content of a request."""
    found = [part.get("functionResponse") for part in body["contents"][-1]["parts"]]
    return [one for one in found if one]


def declared(body: Json) -> list[str]:
    return [one["name"] for tools in body.get("tools", ()) for one in tools["functionDeclarations"]]


def audit(home: Path) -> list[Json]:
    log = home / "audit.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


async def test_a_python_tool_runs_and_is_audited(home: Path) -> None:
    google = FakeGoogle(streams(calls("lookup", text="Let me see.", word="x")), streams(HELLO))
    async with gateway(google, **settings(home)) as running:
        response = await running.messages()
        events = await events_of(response)
    assert text_of(events) == "Let me see.\n\nHello"
    assert types_of(events).count("message_start") == types_of(events).count("message_stop") == 1
    assert not any("tool_use" in json.dumps(event) for event in events[1:-2])
    assert declared(google.arrived[0].body) == ["get_weather", "lookup", "wait", "broken"]
    (result,) = responses(google.arrived[1].body)
    assert result["response"] == {"output": "x means something"}
    assert google.arrived[1].body["contents"][1]["parts"][1]["thoughtSignature"] == "c2ln"
    (entry,) = audit(home)
    assert entry["tool"] == "lookup"
    assert entry["outcome"] == "ok"
    assert entry["profile"] == "team"
    assert entry["request"] == response.headers["x-dragoman-request-id"]
    assert entry["caller"] == sha256(b"scope:" + KEY.encode()).hexdigest()[:32]


async def test_a_whole_answer_and_parallel_calls_in_their_order(home: Path) -> None:
    parts: list[Json] = [
        {"functionCall": {"name": "wait", "args": {"seconds": 0.2}, "id": "g1"}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "lookup", "args": {"word": "y"}, "id": "g2"}},
        {"functionCall": {"name": "broken", "args": {}, "id": "g3"}},
    ]
    asks = json.loads(chunk(*parts, finish="STOP")[6:])
    says = json.loads(chunk({"text": "Done."}, finish="STOP")[6:])
    google = FakeGoogle(answers(asks), answers(says))
    async with gateway(google, **settings(home)) as running:
        body = await (await running.messages(stream=False)).json()
    assert [block["text"] for block in body["content"]] == ["Done."]
    found = responses(google.arrived[1].body)
    assert [one["id"] for one in found] == ["g1", "g2", "g3"]
    assert [one["response"] for one in found] == [
        {"output": "waited"},
        {"output": "y means something"},
        {"error": "RuntimeError: boom"},
    ]


async def test_an_mcp_server_is_started_once_and_shared(home: Path) -> None:
    google = FakeGoogle(streams(calls("mcp__py__add", a=2, b=3)), streams(HELLO))
    google.answer_to = lambda arrived: (  # type: ignore[method-assign]
        streams(HELLO) if responses(arrived.body) else streams(calls("mcp__py__add", a=2, b=3))
    )
    servers = {"py": SAMPLE}
    async with gateway(google, **settings(home, "mcp:py/add", servers=servers)) as running:
        events = await asyncio.gather(*(_events(running.messages()) for _ in range(5)))
        pids = {task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("mcp-")}
        assert pids == {"mcp-py"}
    assert [text_of(one) for one in events] == ["Hello"] * 5
    assert all(declared(one.body) == ["get_weather", "mcp__py__add"] for one in google.arrived)
    results = [one["response"] for arrived in google.arrived for one in responses(arrived.body)]
    assert [result["result"] for result in results] == [5] * 5
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("mcp-")]


async def _events(asking: Any) -> list[Json]:
    return await events_of(await asking)


async def test_a_server_that_dies_is_an_error_and_comes_back(home: Path) -> None:
    script = [
        calls("mcp__py__crash"),
        HELLO,
        calls("mcp__py__add", a=1, b=1),
        HELLO,
    ]
    google = FakeGoogle(*map(streams, script))
    async with gateway(google, **settings(home, "mcp:py", servers={"py": SAMPLE})) as running:
        assert text_of(await _events(running.messages())) == "Hello"
        assert "went away" in responses(google.arrived[1].body)[0]["response"]["error"]
        assert text_of(await _events(running.messages())) == "Hello"
    assert responses(google.arrived[3].body)[0]["response"] == {"result": 2}


async def test_a_server_that_does_not_start_costs_nothing_but_its_tools(
    home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    google = FakeGoogle(streams(HELLO))
    broken = McpServer(command=(sys.executable, "-c", "raise SystemExit('no licence')"))
    missing = McpServer(command=("no-such-program-here",))
    tools = ("python:mine/lookup", "mcp:broken", "mcp:missing")
    servers = {"broken": broken, "missing": missing}
    with caplog.at_level(logging.WARNING, "dragoman"):
        async with gateway(google, **settings(home, *tools, servers=servers)) as running:
            for _ in range(2):
                response = await running.messages()
                assert response.headers["x-dragoman-notes"] == "2"
                assert text_of(await events_of(response)) == "Hello"
    assert declared(google.arrived[0].body) == ["get_weather", "lookup"]
    told = [record.getMessage() for record in caplog.records if "MCP server" in record.getMessage()]
    assert len(told) == 2
    assert any("no licence" in line for line in told)
    assert any("no program 'no-such-program-here'" in line for line in told)


async def test_a_server_that_is_slow_to_start_is_waited_for_a_little(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resources, "START_WAIT_S", 0.05)
    google = FakeGoogle(streams(HELLO))
    slow = McpServer(command=("/bin/sh", "-c", f"sleep 1; exec {sys.executable} {SAMPLE.command[1]}"))
    async with gateway(google, **settings(home, "mcp:py/add", servers={"py": slow})) as running:
        await _events(running.messages())
        assert declared(google.arrived[0].body) == ["get_weather"]
        async with asyncio.timeout(60):
            while "mcp__py__add" not in declared(google.arrived[-1].body):
                await _events(running.messages())


async def test_python_that_cannot_be_loaded_is_tried_again(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resources, "_RETRY_S", 0.0)
    file = home / "tools" / "mine.py"
    file.write_text("import no_such_module")
    google = FakeGoogle(streams(HELLO))
    async with gateway(google, **settings(home)) as running:
        await _events(running.messages())
        assert declared(google.arrived[-1].body) == ["get_weather"]
        assert "no_such_module" in caplog.text
        file.write_text(PYTHON)
        await _events(running.messages())
        assert "lookup" in declared(google.arrived[-1].body)
        assert "is there again" in caplog.text


class TestFailures:
    async def test_a_round_that_fails_is_tried_again(self, home: Path) -> None:
        script = [
            streams(calls("lookup", text="So.", word="x")),
            refuses(503),
            streams(EMPTY),
            streams(HELLO),
        ]
        google = FakeGoogle(*script)
        async with gateway(google, upstream={"max_attempts": 4}, **settings(home)) as running:
            events = await _events(running.messages())
        assert text_of(events) == "So.\n\nHello"
        assert len(google.arrived) == 4
        assert google.arrived[1].body == google.arrived[2].body == google.arrived[3].body
        assert len(audit(home)) == 1

    async def test_a_round_that_fails_for_good_is_an_error_in_the_stream(self, home: Path) -> None:
        google = FakeGoogle(streams(calls("lookup", text="So.", word="x")), refuses(400, "no"))
        async with gateway(google, **settings(home)) as running:
            events = await _events(running.messages())
        assert types_of(events)[-2:] == ["content_block_stop", "error"]

    async def test_a_round_that_was_shown_in_part_is_not_repeated(self, home: Path) -> None:
        script = [streams(calls("lookup", word="x")), streams(chunk({"text": "Ha"}), cut=True)]
        google = FakeGoogle(*script)
        async with gateway(google, **settings(home)) as running:
            events = await _events(running.messages())
        assert text_of(events) == "Ha"
        assert types_of(events)[-1] == "error"
        assert len(google.arrived) == 2

    async def test_a_model_that_will_not_stop_is_stopped(self, home: Path) -> None:
        google = FakeGoogle(*(streams(calls("lookup", word=str(number))) for number in range(9)))
        async with gateway(google, **settings(home, max_rounds=2)) as running:
            response = await running.messages()
            assert (await response.json())["error"]["message"] == "the model gave an empty answer"
        assert [declared(one.body) for one in google.arrived[2:]] == [["get_weather"]] * 3
        assert len(audit(home)) == 2

    async def test_the_time_of_an_answer_ends(self, home: Path) -> None:
        google = FakeGoogle(streams(calls("wait", seconds=60)), streams(HELLO))
        async with gateway(google, **settings(home, max_seconds=0.3)) as running:
            assert text_of(await _events(running.messages())) == "Hello"
        assert "is over" in responses(google.arrived[1].body)[0]["response"]["error"]
        assert declared(google.arrived[1].body) == ["get_weather"]
        assert (home / "tools" / "stopped").exists()
        assert audit(home)[0]["outcome"] == "cancelled"

    async def test_a_time_out_of_the_tools_own(self, home: Path) -> None:
        google = FakeGoogle(streams(calls("wait", seconds=60)), streams(HELLO))
        tools = ToolsConfig(timeout_s=0.2)
        async with gateway(google, tools=tools, **settings(home)) as running:
            assert text_of(await _events(running.messages())) == "Hello"
        assert "longer than 0.2 s" in responses(google.arrived[1].body)[0]["response"]["error"]

    async def test_a_client_that_leaves_stops_the_tool(self, home: Path) -> None:
        google = FakeGoogle(streams(calls("wait", text="So.", seconds=60)), streams(HELLO))
        async with gateway(google, **settings(home)) as running:
            response = await running.messages()
            while not (home / "tools" / "began").exists():
                await asyncio.sleep(0.01)
            response.close()
            async with asyncio.timeout(30):
                while not (home / "tools" / "stopped").exists():
                    await asyncio.sleep(0.01)
            while running.app.running:
                await asyncio.sleep(0.01)
        assert len(google.arrived) == 1
        assert [entry["outcome"] for entry in audit(home)] == ["cancelled"]

    async def test_pings_while_a_tool_runs(self, home: Path) -> None:
        google = FakeGoogle(streams(calls("wait", text="So.", seconds=0.5)), streams(HELLO))
        async with gateway(google, server={"ping_s": 0.05}, **settings(home)) as running:
            events = await _events(running.messages())
        assert types_of(events).count("ping") > 2
        assert text_of(events) == "So.\n\nHello"


class TestWho:
    async def ask(self, running: Any, key: str = KEY, **more: Any) -> None:
        body = {
            "model": "claude-sonnet-4-5",
            "max_tokens": 9000,
            "messages": [{"role": "user", "content": "q"}],
        }
        headers = {"x-api-key": key}
        async with running.session.post(
            running.url + "/v1/messages", json=body | more, headers=headers
        ) as got:
            await got.read()

    @pytest.mark.parametrize(
        ("conditions", "asked", "gets"),
        [
            ({}, {}, True),
            ({}, {"key": "AIza-somebodys-own-google-key"}, False),
            ({"keys": (f"sha256:{sha256(KEY.encode()).hexdigest()[:16]}",)}, {}, True),
            ({"keys": (f"sha256:{sha256(b'another').hexdigest()}",)}, {}, False),
            ({"models": ("claude-*",)}, {}, True),
            ({"models": ("gpt-*", "gemini-*")}, {}, False),
            ({"models": ("claude-*",), "sessions": ("team-*",)}, {}, False),
            ({"only_beside_tools": True}, {}, False),
            ({"only_beside_tools": True}, {"tools": TOOLS}, True),
            (
                {"models": ("claude-*",), "sessions": ("team-*",)},
                {"metadata": {"user_id": "user_x_account__session_team-1"}},
                True,
            ),
        ],
    )
    async def test_a_profile_is_for_those_it_names(
        self, home: Path, conditions: Json, asked: Json, gets: bool
    ) -> None:
        google = FakeGoogle(answers(json.loads(chunk({"text": "x"}, finish="STOP")[6:])))
        async with gateway(google, **settings(home, **conditions)) as running:
            await self.ask(running, **asked)
        assert ("lookup" in declared(google.arrived[0].body)) == gets

    async def test_a_session_is_what_the_client_says(self, home: Path) -> None:
        google = FakeGoogle(answers(json.loads(chunk({"text": "x"}, finish="STOP")[6:])))
        async with gateway(google, **settings(home, sessions=("team-*",))) as running:
            for session in ("team-1", "other"):
                body = {"model": "m", "input": "q", "prompt_cache_key": session}
                await (await running.post("/v1/responses", **body)).read()
        assert [bool(declared(one.body)) for one in google.arrived] == [True, False]

    async def test_a_dialect_without_a_word_for_sessions_has_the_header(self, home: Path) -> None:
        google = FakeGoogle(answers(json.loads(chunk({"text": "x"}, finish="STOP")[6:])))
        body = {"messages": [{"role": "user", "content": [{"text": "q"}]}]}
        async with gateway(google, **settings(home, sessions=("team-*",))) as running:
            for session in ("team-1", "other"):
                running.headers["x-dragoman-session"] = session
                await (await running.post("/model/m/converse", **body)).read()
        assert [bool(declared(one.body)) for one in google.arrived] == [True, False]

    async def test_without_keys_only_where_the_settings_say_so(self, home: Path) -> None:
        google = FakeGoogle(answers(json.loads(chunk({"text": "x"}, finish="STOP")[6:])))
        async with gateway(google, server={"no_auth": True}, **settings(home)) as running:
            await self.ask(running, key="anything")
        assert declared(google.arrived[0].body) == ["lookup", "wait", "broken"]

    async def test_no_tools_where_tool_calling_is_off(self, home: Path) -> None:
        google = FakeGoogle(answers(json.loads(chunk({"text": "x"}, finish="STOP")[6:])))
        async with gateway(google, enable_tool_calling=False, **settings(home)) as running:
            await self.ask(running)
        assert declared(google.arrived[0].body) == []

    async def test_two_profiles_together(self, home: Path) -> None:
        more = settings(home)
        more["profiles"] = {
            "one": Profile(tools=("python:mine/lookup",), max_rounds=1),
            "two": Profile(tools=("python:mine",)),
        }
        google = FakeGoogle(streams(calls("wait", seconds=0)), streams(HELLO))
        async with gateway(google, **more) as running:
            await _events(running.messages())
        assert declared(google.arrived[0].body) == ["get_weather", "lookup", "wait", "broken"]
        assert declared(google.arrived[1].body) == ["get_weather"]  # the tighter limit of the two
        assert audit(home)[0]["profile"] == "two"

    async def test_a_key_nobody_has_is_told(self, home: Path, caplog: pytest.LogCaptureFixture) -> None:
        async with gateway(FakeGoogle(streams(HELLO)), **settings(home, keys=("sha256:" + "0" * 16,))):
            assert "profiles.team.keys: no gateway key has the hash" in caplog.text


class TestFiles:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "project"
        (root / "docs").mkdir(parents=True)
        (root / "a.txt").write_text("content of a")
        (tmp_path / "secret.txt").write_text("secret")
        return root

    async def results(self, home: Path, script: list[bytes], **more: Any) -> tuple[list[Json], list[str]]:
        google = FakeGoogle(*map(streams, [*script, HELLO]))
        async with gateway(google, **settings(home, "fs:*", **more)) as running:
            await _events(running.messages())
        found = [responses(one.body)[0]["response"] for one in google.arrived[1:]]
        return found, declared(google.arrived[0].body)

    async def test_reading_is_allowed_inside_the_root(self, home: Path, root: Path) -> None:
        script = [calls("read_file", path="a.txt"), calls("read_file", path="../secret.txt")]
        (inside, outside), names = await self.results(home, script, root=str(root))
        assert inside == {"output": "content of a"}
        assert "error" in outside
        assert "secret" not in outside["error"].replace("secret.txt", "")
        assert "write_file" not in names
        assert "edit_file" not in names

    async def test_writing_needs_a_rule(self, home: Path, root: Path) -> None:
        script = [
            calls("write_file", path="docs/new.md", content="new"),
            calls("write_file", path="a.txt", content="new"),
        ]
        allow = ("write_file(docs/**)",)
        (written, refused), names = await self.results(home, script, root=str(root), allow=allow)
        assert "docs/new.md created" in written["output"]
        assert (root / "docs" / "new.md").read_text() == "new"
        assert "nobody can be asked" in refused["error"]
        assert (root / "a.txt").read_text() == "content of a"
        assert "write_file" in names
        assert "edit_file" not in names
        assert [entry["outcome"] for entry in audit(home)] == ["ok", "refused"]

    async def test_a_deny_rule_wins(self, home: Path, root: Path) -> None:
        script = [calls("read_file", path="a.txt")]
        (refused,), _ = await self.results(home, script, root=str(root), deny=("read_file(*.txt)",))
        assert "not allowed here" in refused["error"]

    async def test_a_root_that_is_not_there(self, home: Path, tmp_path: Path) -> None:
        _, names = await self.results(home, [], root=str(tmp_path / "nowhere"))
        assert names == ["get_weather"]

    @pytest.mark.parametrize(
        ("tools", "more", "words"),
        [
            (("fs:write_file",), {}, "profiles.team.tools[0]: no rule allows write_file"),
            (("fs:rm",), {}, "there is no file tool 'rm'"),
            (("fs:*",), {"allow": ("write_fil(docs/**)",)}, "did you mean write_file"),
            (("fs:*",), {"allow": ("write file",)}, "is no rule"),
        ],
    )
    def test_rules_that_cannot_be_meant_are_refused_at_the_start(
        self, home: Path, root: Path, tools: tuple[str, ...], more: Json, words: str
    ) -> None:
        config = Config(**settings(home, *tools, root=str(root), **more))
        with pytest.raises(ConfigError) as refused:
            Gateway(config, MemoryStore(), keys=(KEY,))
        assert words in str(refused.value)


async def test_a_mixed_step_is_whole_when_the_results_arrive(home: Path) -> None:
    parts: list[Json] = [
        {"functionCall": {"name": "lookup", "args": {"word": "x"}, "id": "g1"}, "thoughtSignature": "c2ln"},
        {"functionCall": {"name": "get_weather", "args": {"city": "Oslo"}, "id": "g2"}},
        {"functionCall": {"name": "lookup", "args": {"word": "y"}, "id": "g3"}},
    ]
    google = FakeGoogle(streams(chunk(*parts, finish="STOP")), streams(HELLO))
    async with gateway(google, **settings(home)) as running:
        events = await _events(running.messages(model="gemini-3.8-flash"))
        starts = [event["content_block"] for event in events if event["type"] == "content_block_start"]
        (use,) = [block for block in starts if block["type"] == "tool_use"]
        messages = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": [{**use, "input": {"city": "Oslo"}}]},
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": use["id"], "content": "rain"}],
            },
        ]
        for key in ({}, {"x-api-key": "unknown"}):
            headers = running.headers | key
            body = {"model": "gemini-3.8-flash", "max_tokens": 9000, "messages": messages, "stream": True}
            async with running.session.post(f"{running.url}/v1/messages", json=body, headers=headers) as got:
                await got.read()
    step, results = google.arrived[1].body["contents"][1:]
    assert [part["functionCall"]["id"] for part in step["parts"]] == ["g1", "g2", "g3"]
    assert [part.get("thoughtSignature") for part in step["parts"]] == ["c2ln", None, None]
    said = [part["functionResponse"]["response"]["output"] for part in results["parts"]]
    assert said == ["x means something", "rain", "y means something"]


async def test_what_was_hidden_from_one_caller_is_hidden_from_another(home: Path) -> None:
    other = "dgm-another-key-of-sufficient-length"
    google = FakeGoogle(streams(calls("lookup", word="x")), streams(HELLO))
    async with gateway(google, keys=(KEY, other), **settings(home)) as running:
        await _events(running.messages())
        talk = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "more"},
        ]
        for key in (KEY, other):
            running.headers = {"authorization": f"Bearer {key}"}
            await _events(running.messages(messages=talk))
    mine, others = (one.body["contents"] for one in google.arrived[2:])
    assert len(mine) == 5
    assert len(others) == 3


async def test_a_request_without_tools_of_ours_asks_the_store_for_nothing_more(home: Path) -> None:
    google = FakeGoogle(streams(HELLO))
    asked: list[set[str]] = []
    async with gateway(google, **settings(home, models=("nobody",))) as running:
        store = running.app.gateway.store
        recall = store.get_values

        async def watched(keys: Any) -> dict[str, str]:
            asked.append(set(keys))
            return await recall(keys)

        store.get_values = watched  # type: ignore[method-assign]
        talk = [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "Hello"},
            {"role": "user", "content": "more"},
        ]
        await _events(running.messages(messages=talk))
    assert not [key for keys in asked for key in keys if "hidden" in key]


async def test_the_connection_of_a_client_of_another_dialect(home: Path) -> None:
    """The same loop behind Chat, Responses and Gemini."""
    google = FakeGoogle()
    google.answer_to = lambda arrived: (  # type: ignore[method-assign]
        streams(HELLO) if responses(arrived.body) else streams(calls("lookup", word="x"))
    )
    bodies: dict[str, Json] = {
        "/v1/chat/completions": {
            "model": "m",
            "messages": [{"role": "user", "content": "q"}],
            "stream": True,
        },
        "/v1/responses": {"model": "m", "input": "q", "stream": True},
        "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse": {
            "contents": [{"role": "user", "parts": [{"text": "q"}]}]
        },
    }
    async with gateway(google, **settings(home)) as running:
        for path, body in bodies.items():
            response: aiohttp.ClientResponse = await running.post(path, **body)
            said = await response.text()
            assert response.status == 200
            assert "Hello" in said
            assert "lookup" not in said
    assert len(audit(home)) == 3
