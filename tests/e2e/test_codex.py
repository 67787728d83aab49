"""Codex, new and old, with each way it offers its tools: functions, grammars, JavaScript; compaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import MODEL, Finished, Place, install_agent
from tests.e2e.clients import INSTALL_S
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.recording_proxy import Tap, recording_proxy
from tests.e2e.sample_files import make_png

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

NEW, OLD = "0.166.0", "0.50.0"
ADD = "*** Begin Patch\n*** Add File: a.txt\n+one\n*** End Patch\n"
CHANGE = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\n"
WRONG = "*** Begin Patch\n*** Update File: missing.txt\n@@\n-one\n+two\n*** End Patch\n"
FLAGS = ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "--json")


@pytest.fixture
def tap(gateway: Gateway) -> Iterator[Tap]:
    with recording_proxy(gateway.url) as tap:
        yield tap
        assert not tap.refused(), "\n".join(tap.refused())


def codex(place: Place, tap: Tap, *argv: str, version: str = NEW, wire: str = "responses") -> Finished:
    """As docs/clients.md says it is set up by hand."""
    place.write_home(
        ".codex/config.toml",
        f"""model_provider = "gateway"
[model_providers.gateway]
name = "gateway"
base_url = "{tap.url}/v1"
wire_api = "{wire}"
env_key = "GATEWAY_KEY"
[features]
plugins = false
apps = false
remote_plugin = false
""",
    )
    command = [str(install_agent("codex", version)), *FLAGS, *argv]
    return place.run(command, {"GATEWAY_KEY": GATEWAY_KEY})


def items(run: Finished, kind: str) -> list[dict[str, Any]]:
    return [
        event["item"]
        for event in run.check().events
        if event["type"] == "item.completed" and event["item"]["type"] == kind
    ]


def execute(command: str) -> str:
    return use("exec_command", {"cmd": command})


def test_functions_of_a_model_it_does_not_know(tmp_path: Path, tap: Tap, google: Google) -> None:
    place = Place(tmp_path)
    (place.cwd / "dot.png").write_bytes(make_png(width=8, height=8))
    steps = plan(
        execute("echo one > a.txt"),
        together(execute("cat a.txt"), execute("echo ran > b.txt")),
        execute("cat missing.txt"),
        use("view_image", {"path": str(place.cwd / "dot.png")}),
    )
    run = codex(place, tap, "-m", MODEL, steps)
    commands = items(run, "command_execution")
    assert [command["exit_code"] for command in commands] == [0, 0, 0, 1]
    assert sorted(command["aggregated_output"] for command in commands[1:3]) == ["", "one\n"]
    assert (place.cwd / "b.txt").read_text() == "ran\n"
    last = google.requests()[-1]
    assert "image/png" in str(last["contents"])
    assert [len(calls) for calls in calls_of(last)] == [1, 2, 1, 1]
    assert items(run, "reasoning")
    assert google.sentinels() == 0


def calls_of(request: dict[str, Any]) -> list[list[str]]:
    turns = [
        [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        for content in request["contents"]
        if content.get("role") == "model"
    ]
    return [names for names in turns if names]


def test_a_file_is_edited_through_the_patch_grammar_and_the_session_goes_on(
    tmp_path: Path, tap: Tap, google: Google
) -> None:
    place = Place(tmp_path)
    steps = plan(
        use("apply_patch", {"input": ADD}),
        together(execute("cat a.txt"), execute("echo ran > b.txt")),
        use("apply_patch", {"input": WRONG}),
        use("apply_patch", {"input": CHANGE}),
    )
    run = codex(place, tap, "-m", "gpt-5.5", steps)
    kinds = [change["changes"][0]["kind"] for change in items(run, "file_change")]
    assert kinds == ["add", "update"]
    assert (place.cwd / "a.txt").read_text() == "two\n"
    assert (place.cwd / "b.txt").read_text() == "ran\n"
    (said,) = items(run, "agent_message")
    assert "missing.txt" in said["text"]
    again = codex(place, tap, "-m", "gpt-5.5", "resume", "--last", execute("echo later > c.txt"))
    assert (place.cwd / "c.txt").read_text() == "later\n"
    assert items(again, "command_execution")[0]["exit_code"] == 0
    assert calls_of(google.requests()[-1])[-1] == ["exec_command"]
    assert google.sentinels() == 0


def test_its_newest_models_write_javascript(tmp_path: Path, tap: Tap, google: Google) -> None:
    place = Place(tmp_path)
    first = 'const run = await tools.exec_command({cmd: "echo one > a.txt; cat a.txt"}); text(run.output)'
    second = 'text("before"); throw new Error("on purpose")'
    third = "const patched = await tools.apply_patch(" + repr(CHANGE) + "); text(String(patched))"
    steps = plan(*(use("functions.exec", {"input": script}) for script in (first, second, third)))
    run = codex(place, tap, steps)
    assert tap.bodies("/v1/responses")[0]["input"][0]["type"] == "additional_tools"
    (said,) = items(run, "agent_message")
    assert "on purpose" in said["text"]
    assert (place.cwd / "a.txt").read_text() == "two\n", said["text"]
    assert google.sentinels() == 0


def test_it_compacts_and_goes_on(tmp_path: Path, tap: Tap, google: Google) -> None:
    place = Place(tmp_path)
    long_once = "if [ -e seen ]; then echo short; else touch seen; yes 0123456789abcdef | head -n 3000; fi"
    steps = plan(execute(long_once), execute("echo end > end.txt"), say="all done")
    run = codex(place, tap, "-m", MODEL, "-c", "model_auto_compact_token_limit=11000", steps)
    assert [message["text"] for message in items(run, "agent_message")] == ["all done"]
    assert (place.cwd / "end.txt").read_text() == "end\n"
    bodies = tap.bodies("/v1/responses")
    assert [bool(body.get("tools")) for body in bodies] == [True, False, True, True, True]
    assert any(item["type"] == "function_call" for item in bodies[1]["input"])
    assert not any(item["type"] == "function_call" for item in bodies[2]["input"])
    assert google.sentinels() == 0


def test_a_tool_is_searched_for_and_a_sub_agent_started(tmp_path: Path, tap: Tap, google: Google) -> None:
    place = Place(tmp_path)
    steps = plan(
        use("tool_search", {"query": "spawn agent", "limit": 5}),
        use("multi_agent_v1.spawn_agent", {"message": "say I am the child"}),
        execute("echo one > a.txt"),
    )
    run = codex(place, tap, "-m", "gpt-5.5", steps).check()
    assert (place.cwd / "a.txt").read_text() == "one\n", run.out
    assert any("I am the child" in str(one.answered.body) for one in tap.seen())
    assert google.sentinels() == 0


def test_the_web_is_searched_beside_its_own_tools_and_the_session_goes_on(
    tmp_path: Path, tap: Tap, google: Google
) -> None:
    """What Google ran comes back to it as it came, in the same turn and in the next (known problems K1, K2, K3)."""
    place = Place(tmp_path)
    asked = "search the web, then say A dragoman is an interpreter. He was needed."
    run = codex(place, tap, "-m", MODEL, asked)
    (search,) = items(run, "web_search")
    assert search["action"]["type"] == "search"
    (said,) = items(run, "agent_message")
    assert said["text"] == "A dragoman is an interpreter. He was needed."
    again = codex(
        place, tap, "-m", MODEL, "resume", "--last", "search the news and " + execute("echo later > c.txt")
    )
    assert len(items(again, "web_search")) == 1
    assert (place.cwd / "c.txt").read_text() == "later\n"
    (message,) = [
        item
        for item in tap.bodies("/v1/responses")[1]["input"]
        if item["type"] == "message" and item["role"] == "assistant"
    ]
    cited = [
        (note["title"], note["start_index"], note["end_index"])
        for note in message["content"][0]["annotations"]
    ]
    assert cited == [("example.com", 0, 30), ("example.com", 30, 44), ("example.org", 30, 44)]
    for request in google.requests():
        assert {"googleSearch": {}} in request["tools"]
        assert request["toolConfig"] == {"includeServerSideToolInvocations": True}
    kinds = [
        [next(iter(part)) for part in content["parts"]]
        for content in google.requests()[-1]["contents"]
        if content["role"] == "model"
    ]
    assert kinds == [
        ["toolCall", "toolResponse", "text", "text"],
        ["toolCall", "toolResponse", "functionCall"],
    ]
    assert google.sentinels() == 0


def test_a_typed_answer(tmp_path: Path, tap: Tap) -> None:
    place = Place(tmp_path)
    number = {"type": ["integer", "null"]}
    schema = {"type": "object", "properties": {"n": number, "s": {"type": "string"}}}
    place.write_home("schema.json", schema | {"required": ["n", "s"], "additionalProperties": False})
    run = codex(place, tap, "-m", "gpt-5.5", "--output-schema", str(place.home / "schema.json"), "An object")
    (said,) = items(run, "agent_message")
    assert set(json.loads(said["text"])) == {"n", "s"}


def test_a_busy_google_is_waited_for(tmp_path: Path, tap: Tap, google: Google) -> None:
    """Codex gives up at once on a 429, so it must not see one."""
    place = Place(tmp_path)
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.1s"}
    for _ in range(4):  # more than the gateway tries by itself
        google.refuse_next(429, "Resource has been exhausted", "RESOURCE_EXHAUSTED", [retry])
    codex(place, tap, "-m", MODEL, execute("echo one > a.txt")).check()
    assert (place.cwd / "a.txt").read_text() == "one\n"
    assert google.all_refused()
    assert len(tap.paths()) > 2


def test_its_built_in_provider_falls_back_from_a_websocket(tmp_path: Path, gateway: Gateway) -> None:
    place = Place(tmp_path)
    place.write_home(
        ".codex/config.toml", "features = {plugins = false, apps = false, remote_plugin = false}\n"
    )
    with recording_proxy(gateway.url) as tap:
        address = f'openai_base_url="{tap.url}/v1"'
        command = [
            str(install_agent("codex")),
            "-c",
            address,
            *FLAGS,
            "-m",
            "gpt-5.5",
            execute("echo one > a.txt"),
        ]
        place.run(command, {"CODEX_API_KEY": GATEWAY_KEY}).check()
    assert (place.cwd / "a.txt").read_text() == "one\n"
    assert tap.paths() == ["GET /v1/responses", "POST /v1/responses", "POST /v1/responses"]
    assert [one.answered.status for one in tap.seen()] == [426, 200, 200]


@pytest.mark.parametrize("wire", ["responses", "chat"])
def test_the_old_one_speaks_both(tmp_path: Path, tap: Tap, google: Google, wire: str) -> None:
    """One call at a time: on Responses it asks for that, on Chat it joins parallel calls into one."""
    place = Place(tmp_path)
    commands = [["bash", "-lc", "echo one > a.txt"], ["cat", "missing.txt"], ["apply_patch", CHANGE]]
    steps = plan(*(use("shell", {"command": command}) for command in commands))
    run = codex(place, tap, "-m", MODEL, steps, version=OLD, wire=wire)
    assert [command["exit_code"] for command in items(run, "command_execution")] == [0, 1]
    assert len(items(run, "file_change")) == 1
    assert (place.cwd / "a.txt").read_text() == "two\n"
    path = {"responses": "/v1/responses", "chat": "/v1/chat/completions"}[wire]
    assert tap.paths() == [f"POST {path}"] * 4
    assert google.sentinels() == 0


def test_it_is_launched_over_the_users_own_settings(tmp_path: Path) -> None:
    place = Place(tmp_path)
    own = 'model = "gpt-5.6-sol"\nmodel_provider = "else"\n[model_providers.else]\nname = "else"\n'
    place.write_home(".codex/config.toml", own + 'base_url = "http://127.0.0.1:9/v1"\n')
    steps = plan(together(execute("echo one > a.txt"), execute("echo ran > b.txt")))
    env = {"OPENAI_API_KEY": "sk-elsewhere", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    run = place.launch("codex", *FLAGS, steps, env=env)
    assert len(items(run, "command_execution")) == 2
    assert (place.cwd / "b.txt").read_text() == "ran\n"
    assert (place.home / ".codex/config.toml").read_text().startswith(own)
