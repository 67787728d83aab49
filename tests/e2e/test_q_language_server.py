"""Amazon Q's own agent engine, headless: it really reads, lists, writes and runs on what the gateway tells it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dragoman import emulator
from dragoman.emulator.testing import Emulator
from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import OVERFLOW, SENTINEL
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.e2e.hard_schemas import HOSTILE
from tests.e2e.mcp_server import SERVER, mcp_name
from tests.e2e.q_language_server import QServer, q_server
from tests.e2e.recording_proxy import Tap, recording_proxy
from tests.e2e.sample_files import make_png
from tests.unit.dialects.amazonq.strict_reader import read

CHAT = "/generateAssistantResponse"

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.fixture
def gemini() -> Iterator[Emulator]:
    """By script, since the engine escapes the quotation marks of every prompt: no directive would survive."""
    with emulator.running({"otherwise": "refuse", "steps": []}) as gemini:
        yield gemini
    assert [request for request in gemini.requests if request.status != 200] == []
    assert not any(SENTINEL in request.body for request in gemini.requests)


@pytest.fixture
def tap(tmp_path: Path, gemini: Emulator) -> Iterator[Tap]:
    gateway = Gateway(tmp_path / "gateway", gemini.url)
    gateway.start()
    try:
        with recording_proxy(gateway.url) as tap:
            yield tap
    finally:
        gateway.stop()
        print(gateway.log())
    assert "Traceback" not in gateway.log()


@pytest.fixture
def q(tmp_path: Path, tap: Tap) -> Iterator[QServer]:
    """With a login of its own: the gateway's key is in the address."""
    with q_server(tmp_path, f"{tap.url}/key/{GATEWAY_KEY}", "a-login-at-amazon") as server:
        yield server


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def results(gemini: Emulator) -> list[dict[str, Any]]:
    """The function responses of the last request."""
    contents = gemini.requests[-1].contents
    return [
        part["functionResponse"]
        for content in contents
        for part in content["parts"]
        if "functionResponse" in part
    ]


def shown(answer: dict[str, Any]) -> str:
    """What the user sees, of an answer or of an error."""
    return str((answer.get("data") or answer)["body"])


def test_files_are_read_listed_written_changed_and_a_command_runs(
    q: QServer, tap: Tap, gemini: Emulator, work: Path
) -> None:
    (work / "a.txt").write_text("content of a\n")
    target = str(work / "c.txt")
    gemini.call_all(("fsRead", {"paths": [str(work / "a.txt")]}), ("listDirectory", {"path": str(work)}))
    gemini.call("executeBash", command="echo ran > b.txt; cat b.txt", cwd=str(work))
    text = "".join(f'{number} "quoted"\\ünïcödé 🌹\n' for number in range(3000))
    gemini.call("fsWrite", command="create", path=target, fileText=f"one\n{text}")
    gemini.call("fsReplace", path=target, diffs=[{"oldStr": "one", "newStr": "two"}])
    gemini.say("All is done.")
    answer = q.ask("Please do what has to be done.")
    assert answer["body"].strip() == "All is done."
    assert (work / "b.txt").read_text() == "ran\n"
    assert (work / "c.txt").read_text() == f"two\n{text}"
    contents = gemini.requests[-1].contents
    calls = [
        [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        for content in contents
        if content["role"] == "model"
    ]
    assert [names for names in calls if names] == [
        ["fsRead", "listDirectory"],
        ["executeBash"],
        ["fsWrite"],
        ["fsReplace"],
    ]
    parts = results(gemini)
    assert [part["name"] for part in parts] == [
        "fsRead",
        "listDirectory",
        "executeBash",
        "fsWrite",
        "fsReplace",
    ]
    assert "content of a" in str(parts[0])
    assert "a.txt" in str(parts[1])
    assert "ran" in str(parts[2])
    answers = [read(one.answered.body) for one in tap.seen() if one.asked.target.endswith(CHAT)]
    assert [answer.stop_reason for answer in answers] == ["TOOL_USE"] * 4 + ["END_TURN"]
    ids = [tool.id for answer in answers for tool in answer.tools]
    assert len(set(ids)) == 5
    assert not tap.refused(), "\n".join(tap.refused())
    gemini.check()


def test_failing_tools_reach_the_model(q: QServer, tap: Tap, gemini: Emulator, work: Path) -> None:
    gemini.call("executeBash", command="echo broken >&2; exit 3", cwd=str(work))
    gemini.call("fsRead", paths=[str(work / "missing.txt")])
    gemini.say("It does not work.")
    assert q.ask("Try it.")["body"].strip() == "It does not work."
    command, read = results(gemini)
    assert "broken" in str(command)
    assert "missing.txt" in str(read["response"]["error"])
    assert not tap.refused(), "\n".join(tap.refused())
    gemini.check()


def test_a_conversation_goes_on_and_models_are_those_of_the_gateway(
    q: QServer, tap: Tap, gemini: Emulator
) -> None:
    models = q.models()
    assert "gemini-3.8-flash" in [model["id"] for model in models["models"]]
    gemini.say("Good morning.").say("Good night.")
    assert q.ask("Say something.")["body"].strip() == "Good morning."
    assert q.ask("And again.")["body"].strip() == "Good night."
    said = [
        part["text"]
        for content in gemini.requests[-1].contents
        for part in content["parts"]
        if "text" in part
    ]
    assert any("Say something." in text for text in said)
    assert "Good morning." in said
    assert not tap.refused(), "\n".join(tap.refused())


def test_a_picture(q: QServer, tap: Tap, gemini: Emulator, work: Path) -> None:
    picture = work / "red.png"
    picture.write_bytes(make_png(width=8, height=8))
    gemini.say("It is red.")
    item = {
        "command": "red.png",
        "id": "red.png",
        "label": "image",
        "route": [str(picture)],
        "description": "",
    }
    assert q.ask("What is it?", [item])["body"].strip() == "It is red."
    pictures = [
        part["inlineData"]["mimeType"]
        for content in gemini.requests[-1].contents
        for part in content["parts"]
        if "inlineData" in part
    ]
    assert pictures == ["image/png"]
    assert not tap.refused(), "\n".join(tap.refused())


def test_a_refused_command_and_a_new_prompt(q: QServer, tap: Tap, gemini: Emulator, work: Path) -> None:
    gemini.call("executeBash", command="rm -rf everything", cwd=str(work))
    (work / "everything").write_text("")
    q.willing = False
    q.ask("Clean up.")
    gemini.say("As you like.")
    assert q.ask("Never mind, leave it.")["body"].strip() == "As you like."
    assert (work / "everything").exists()
    (refused,) = results(gemini)
    assert refused["name"] == "executeBash"
    assert "error" in refused["response"]
    assert not tap.refused(), "\n".join(tap.refused())
    gemini.check()


def test_the_conversation_is_compacted_on_demand(q: QServer, tap: Tap, gemini: Emulator, work: Path) -> None:
    gemini.call("listDirectory", path=str(work)).say("Nothing there.").say("A summary.").say("Good.")
    q.ask("Look around.")
    assert "has been compacted" in q.ask("", command="/compact")["body"]
    assert q.ask("Go on.")["body"].strip() == "Good."
    assert not tap.refused(), "\n".join(tap.refused())
    gemini.check()


def test_a_full_context_is_told_in_the_words_it_understands(q: QServer, gemini: Emulator) -> None:
    gemini.say("One.")
    q.ask("Say one.")
    error = {"code": 400, "message": OVERFLOW, "status": "INVALID_ARGUMENT"}
    gemini.script({"steps": [{"http": {"status": 400, "json": {"error": error}}}]})
    assert "I have cleared the conversation history" in shown(q.ask("Say two."))
    gemini.requests[:] = [request for request in gemini.requests if request.status == 200]
    gemini.say("Three.")
    assert q.ask("Say three.")["body"].strip() == "Three."
    assert "One." not in str(gemini.requests[-1].contents)


def test_a_stream_that_breaks_is_an_error_and_no_answer(q: QServer, gemini: Emulator) -> None:
    gemini.script({"steps": [{"reply": "word " * 400, "fault": {"cut_after": 1500}}]})
    assert "error occurred" in shown(q.ask("Tell me a story."))


def test_a_login_at_amazon_alone_is_no_key(tmp_path: Path, tap: Tap) -> None:
    with q_server(tmp_path, tap.url, "a-login-at-amazon") as stranger:
        assert "gateway key is not known" in shown(stranger.ask("Say something."))
    assert {one.answered.status for one in tap.seen()} == {403}


def test_every_hostile_tool_of_an_mcp_server_gets_its_arguments(
    tmp_path: Path, tap: Tap, gemini: Emulator
) -> None:
    config = tmp_path / "home" / ".aws" / "amazonq" / "mcp.json"
    config.parent.mkdir(parents=True)
    env = {"PYTHONPATH": str(Path(__file__).parents[2])}
    server = {"command": sys.executable, "args": ["-m", "tests.e2e.mcp_server"], "env": env, "timeout": 60000}
    config.write_text(json.dumps({"mcpServers": {SERVER: server}}))
    with q_server(tmp_path, tap.url, GATEWAY_KEY) as q:
        q.await_log("tools across all servers")
        gemini.say("Here I am.")
        q.ask("Are you there?")
        names = [declared(gemini, mcp_name(name)) for name in HOSTILE]
        for number in (1, 2):
            gemini.call_all(*zip(names, (row[number] for row in HOSTILE.values()), strict=True))
        gemini.say("All done.")
        assert shown(q.ask("Go on.")).strip() == "All done."
    asked = [(name, row[number]) for number in (1, 2) for name, row in HOSTILE.items()]
    for (name, args), result in zip(asked, results(gemini), strict=True):
        if "pair" in args:  # the engine's own validator takes a tuple for closed before its first place
            assert "boolean schema is false" in str(result["response"]["error"])
            continue
        said = json.loads(result["response"]["output"]["content"])["content"][0]["text"]
        assert said == f"{mcp_name(name)} got {json.dumps(args, sort_keys=True, ensure_ascii=False)}"
    assert not tap.refused(), "\n".join(tap.refused())
    gemini.check()


def declared(gemini: Emulator, name: str) -> str:
    """What the engine made of a tool's name."""
    functions = [
        function for tool in gemini.requests[-1].json["tools"] for function in tool["functionDeclarations"]
    ]
    return next(str(function["name"]) for function in functions if function["name"][:40] == name[:40])
