"""Real clients use an MCP server that only the gateway knows, in one conversation together with their own tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.agents import MODEL, TOOLS, Place, Tools
from tests.e2e.clients import INSTALL_S, Claude, install
from tests.e2e.conftest import CLASSIC, NEW
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.gemini_cli import GeminiCli
from tests.e2e.recording_proxy import Tap, recording_proxy
from tests.e2e.test_codex import codex, items
from tests.e2e.test_mcp_servers import VERSION

Json = dict[str, Any]

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

#: Its tools answer what they are given; no client is told of them.
SUM, ECHO = "mcp__all__get-sum", "mcp__all__echo"
_CLAUDE = Tools(
    write=lambda file, text: use("Write", {"file_path": str(file), "content": text}),
    read=lambda file: use("Read", {"file_path": str(file)}),
    edit=lambda file, old, new: use("Edit", {"file_path": str(file), "old_string": old, "new_string": new}),
    run=lambda command: use("Bash", {"command": command}),
    names=("Write", "Read", "Edit", "Bash"),
)


@pytest.fixture(scope="module")
def everything() -> Path:
    folder = install(f"mcp-everything-{VERSION}", f"@modelcontextprotocol/server-everything@{VERSION}")
    return folder / "node_modules" / ".bin" / "mcp-server-everything"


@pytest.fixture
def house(tmp_path: Path, google: Google, everything: Path) -> Iterator[Gateway]:
    """A gateway with a profile for everybody who has its key."""
    home = tmp_path / "gateway"
    home.mkdir()
    (home / "config.toml").write_text(
        f"""
[mcp.servers.all]
command = ["{everything}", "stdio"]

[profiles.team]
tools = ["mcp:all/get-sum", "mcp:all/echo"]
only_beside_tools = true
"""
    )
    gateway = Gateway(home, google.url)
    gateway.start()
    yield gateway
    gateway.stop()
    print(gateway.log())
    assert "Traceback" not in gateway.log()


@pytest.fixture
def tap(house: Gateway) -> Iterator[Tap]:
    with recording_proxy(house.url) as tap:
        yield tap
        assert not tap.refused(), "\n".join(tap.refused())


def first_plan(tools: Tools, cwd: Path) -> str:
    """Ours alone; ours and the client's at once, ours first and last; the client's alone."""
    return plan(
        use(SUM, {"a": 2, "b": 3}),
        together(
            use(ECHO, {"message": "one"}),
            tools.write(cwd / "a.txt", "written\n"),
            use(ECHO, {"message": "two"}),
        ),
        tools.run("cat a.txt > b.txt"),
        say="All done.",
    )


SECOND = plan(use(SUM, {"a": 20, "b": 3}), say="And again.")


def calls_of(request: Json) -> list[list[str]]:
    turns = [
        [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        for content in request["contents"]
        if content.get("role") == "model"
    ]
    return [names for names in turns if names]


def results_of(request: Json) -> list[str]:
    return [
        json.dumps(part["functionResponse"]["response"])
        for content in request["contents"]
        for part in content["parts"]
        if "functionResponse" in part
    ]


def last_request(google: Google) -> Json:
    return max(google.requests(), key=lambda request: len(request["contents"]))


def check(tools: Tools, cwd: Path, google: Google, home: Path) -> None:
    """Both sides did their work, and Google was told the whole story, in the second turn as well."""
    assert (cwd / "b.txt").read_text() == "written\n"
    write, _, _, shell = tools.names
    request = last_request(google)
    assert calls_of(request) == [[SUM], [ECHO, write, ECHO], [shell], [SUM]]
    results = results_of(request)
    assert "5" in results[0]
    assert "one" in results[1]
    assert "two" in results[3]
    assert "23" in results[5]
    entries = [json.loads(line) for line in (home / "audit.jsonl").read_text().splitlines()]
    assert [entry["tool"] for entry in entries] == [SUM, ECHO, ECHO, SUM]
    assert {entry["profile"] for entry in entries} == {"team"}
    assert all(entry["request"].startswith("req_") for entry in entries)


def nothing_of_ours_was_shown(tap: Tap) -> None:
    """Neither in what the clients got nor in what they brought back."""
    for one in tap.seen():
        answer = one.answered.body.decode(errors="replace")
        assert "functionCall" not in answer or SUM not in answer
        body: Any = json.loads(one.asked.body) if one.asked.body else {}
        declared = json.dumps(body.get("tools", []))
        assert "mcp__all__" not in declared


@pytest.mark.parametrize("version", [NEW, CLASSIC], ids=" ".join)
def test_claude_code(version: tuple[str, str], tmp_path: Path, tap: Tap, google: Google) -> None:
    program, model = version
    claude = Claude(version=program, model=model, folder=tmp_path / "c", url=tap.url, key=GATEWAY_KEY)
    run = claude.run(first_plan(_CLAUDE, claude.cwd)).check()
    assert run.result == "All done."
    assert run.names() == ["Write", "Bash"]
    again = claude.run(SECOND, "--resume", run.session).check()
    assert again.result == "And again."
    assert again.names() == []
    assert google.sentinels() == 0
    check(_CLAUDE, claude.cwd, google, tmp_path / "gateway")
    nothing_of_ours_was_shown(tap)


def test_codex(tmp_path: Path, tap: Tap, google: Google) -> None:
    place = Place(tmp_path / "c")
    tools = Tools(
        write=lambda file, text: use("exec_command", {"cmd": f"echo {text.strip()} > {file.name}"}),
        read=lambda file: use("exec_command", {"cmd": f"cat {file.name}"}),
        edit=lambda *_: "",
        run=lambda command: use("exec_command", {"cmd": command}),
        names=("exec_command",) * 4,
    )
    run = codex(place, tap, "-m", MODEL, first_plan(tools, place.cwd))
    assert [command["exit_code"] for command in items(run, "command_execution")] == [0, 0]
    assert items(run, "agent_message")[-1]["text"] == "All done."
    again = codex(place, tap, "-m", MODEL, "resume", "--last", SECOND)
    assert items(again, "agent_message")[-1]["text"] == "And again."
    assert google.sentinels() == 0
    check(tools, place.cwd, google, tmp_path / "gateway")
    nothing_of_ours_was_shown(tap)


def test_gemini_cli(tmp_path: Path, tap: Tap, google: Google) -> None:
    cli = GeminiCli(folder=tmp_path / "c", url=tap.url, key=GATEWAY_KEY)
    tools = TOOLS["gemini"]
    run = cli.run(first_plan(tools, cli.cwd), "-m", MODEL, "-o", "json").check()
    assert run.answer["response"].endswith("All done.")
    assert run.answer["stats"]["tools"]["totalCalls"] == 2
    assert google.sentinels() == 0  # in a resumed session Gemini CLI itself puts some on its old calls
    again = cli.run(SECOND, "-m", MODEL, "--resume", "latest", "-o", "json").check()
    assert again.answer["response"].endswith("And again.")
    check(tools, cli.cwd, google, tmp_path / "gateway")
    nothing_of_ours_was_shown(tap)
