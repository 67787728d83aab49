"""Explain, replay and export, on what a real gateway captured."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from dragoman.emulator import running
from tests.e2e.emulator import EmulatorProcess, emulator_process
from tests.e2e.gateway import GATEWAY_KEY, Gateway

Json = dict[str, Any]

MODEL = "gemini-3.8-flash"
TOOL = {
    "name": "look up",
    "input_schema": {
        "type": "object",
        "properties": {"n": {"type": "integer"}},
        "additionalProperties": False,
    },
}
SECRET = "AIzaSyD-canary-canary-canary-canary-0"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Gateway, EmulatorProcess, Path]]:
    folder = tmp_path_factory.mktemp("captures")
    with emulator_process(folder) as emulator:
        gateway = Gateway(folder / "home", emulator.url, OBSERVE_CAPTURE="all")
        gateway.start()
        try:
            yield gateway, emulator, folder / "home"
        finally:
            gateway.stop()


def post(gateway: Gateway, messages: list[Json], **more: Any) -> tuple[Any, str]:
    body = {"model": "claude-sonnet-4-5", "max_tokens": 500, "messages": messages, "tools": [TOOL], **more}
    headers = {"x-api-key": GATEWAY_KEY, "anthropic-version": "2023-06-01"}
    response = requests.post(gateway.url + "/v1/messages", json=body, headers=headers, timeout=30)
    return response, response.headers["x-dragoman-request-id"]


def dragoman(home: Path, *args: str, upstream: str = "") -> subprocess.CompletedProcess[str]:
    env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    env |= {"HOME": str(home), "DRAGOMAN_HOME": str(home)}
    if upstream:
        env |= {"GEMINI_BASE_URL": upstream, "GEMINI_API_KEY": "AIza-any"}
    command = [sys.executable, "-m", "dragoman", *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=60)


def a_conversation(gateway: Gateway, *, stream: bool) -> list[str]:
    """A call, its result, an answer: the ids of both requests."""
    messages: list[Json] = [{"role": "user", "content": "seven?"}]
    first, one = post(gateway, messages, tool_choice={"type": "any"})
    call = next(block for block in first.json()["content"] if block["type"] == "tool_use")
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"seven, and a key {SECRET}"}
    messages += [
        {"role": "assistant", "content": first.json()["content"]},
        {"role": "user", "content": [result]},
    ]
    _, two = post(gateway, messages, stream=stream, top_k=5)
    return [one, two]


@pytest.fixture(scope="module")
def ids(place: tuple[Gateway, EmulatorProcess, Path]) -> list[str]:
    return a_conversation(place[0], stream=True)


def test_o6_explain_shows_four_stages_and_every_note_at_its_place(
    place: tuple[Gateway, EmulatorProcess, Path], ids: list[str]
) -> None:
    done = dragoman(place[2], "explain", ids[1], "--full")
    assert done.returncode == 0, done.stderr
    for words in (
        "request of the client",
        "request to Google",
        "response of Google",
        "response to the client",
    ):
        assert words in done.stdout
    lines = done.stdout.splitlines()
    names = [index for index, line in enumerate(lines) if '"name": "look up"' in line]
    assert any("^ renamed" in lines[index + 1] for index in names)
    assert "claude-sonnet-4-5 → " in done.stdout


def test_explain_puts_the_stages_side_by_side_where_there_is_room(
    place: tuple[Gateway, EmulatorProcess, Path], ids: list[str]
) -> None:
    wide = dragoman(place[2], "explain", ids[1], "--width", "140").stdout
    lines = [line for line in wide.splitlines() if " │ " in line]
    assert any("request of the client" in line and "request to Google" in line for line in lines)
    assert any("response to the client" in line and "response of Google" in line for line in lines)
    assert any("^ renamed" in line.partition("│")[0] for line in lines)
    assert max(map(len, wide.splitlines())) <= 140
    assert "│" not in dragoman(place[2], "explain", ids[1], "--width", "80").stdout


def test_explain_takes_the_beginning_of_an_id_one_stage_and_json(
    place: tuple[Gateway, EmulatorProcess, Path], ids: list[str]
) -> None:
    done = dragoman(place[2], "explain", ids[0][:-3], "--stage", "upstream")
    assert "request to Google" in done.stdout
    assert "response to the client" not in done.stdout
    whole = json.loads(dragoman(place[2], "explain", ids[0], "--json").stdout)
    assert whole["record"]["id"] == ids[0]


def test_q11_no_secret_is_in_a_capture(place: tuple[Gateway, EmulatorProcess, Path], ids: list[str]) -> None:
    kept = [path.read_text() for path in (place[2] / "captures").iterdir()]
    assert len(kept) >= len(ids)
    assert not any(SECRET in text or GATEWAY_KEY in text for text in kept)
    assert all(path.stat().st_mode & 0o077 == 0 for path in (place[2] / "captures").iterdir())


def test_a_replay_asks_google_the_same_byte_for_byte(
    place: tuple[Gateway, EmulatorProcess, Path], ids: list[str]
) -> None:
    gateway, emulator, home = place
    done = dragoman(home, "replay", ids[0], upstream=emulator.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the requests to Google: the same, byte for byte" in done.stdout
    assert "the response to the client: the same but for ids and times" in done.stdout
    messages: list[Json] = [{"role": "user", "content": "Please say Good morning"}]
    _, plain = post(gateway, messages, stream=True)
    done = dragoman(home, "replay", plain, "--against", "emulator")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_replay_with_another_model_tells_what_is_different(
    place: tuple[Gateway, EmulatorProcess, Path], ids: list[str]
) -> None:
    done = dragoman(place[2], "replay", ids[0], "--model", "gemini-2.5-flash", upstream=place[1].url)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "gemini-2.5-flash" in done.stdout
    assert "the requests to Google: different" in done.stdout


def test_an_exported_script_plays_the_same_answer(
    place: tuple[Gateway, EmulatorProcess, Path], ids: list[str], tmp_path: Path
) -> None:
    script = tmp_path / "answer.yaml"
    done = dragoman(place[2], "capture", "export", ids[0], str(script), "--as", "script")
    assert done.returncode == 0, done.stderr
    case = json.loads(dragoman(place[2], "capture", "export", ids[0], "--as", "golden").stdout)
    with running(str(script)) as played:
        url = f"{played.url}/v1beta/models/{case['model']}:generateContent"
        again = requests.post(url, json=case["upstream"][0], headers={"x-goog-api-key": "k"}, timeout=10)
    kept = json.loads(dragoman(place[2], "explain", ids[0], "--json").stdout)
    assert again.json() == json.loads(kept["upstream"][0]["answer"]["text"])


def test_the_list_of_captures(place: tuple[Gateway, EmulatorProcess, Path], ids: list[str]) -> None:
    done = dragoman(place[2], "capture", "list")
    assert all(identity in done.stdout for identity in ids)
    records = [
        json.loads(line) for line in dragoman(place[2], "capture", "list", "--json").stdout.splitlines()
    ]
    assert {record["dialect"] for record in records} == {"anthropic"}


def test_a_replay_that_takes_its_time_shows_a_sign_of_life(
    place: tuple[Gateway, EmulatorProcess, Path], ids: list[str]
) -> None:
    slow = {"steps": [{"reply": "at last", "delay": 1.5, "times": "always"}]}
    with running(slow) as google:
        env = {"PATH": os.environ["PATH"], "DRAGOMAN_HOME": str(place[2]), "GEMINI_API_KEY": "AIza-any"}
        said = on_a_terminal(["replay", ids[0]], env | {"GEMINI_BASE_URL": google.url})
    assert "sending the request" in said


def on_a_terminal(args: list[str], env: dict[str, str]) -> str:
    """What a person would see beside the result."""
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "dragoman", *args]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=follower) as process:
        os.close(follower)
        seen = b""
        with contextlib.suppress(OSError):  # Linux says so when the other side is closed
            while piece := os.read(leader, 4096):
                seen += piece
        process.wait(60)
    os.close(leader)
    return seen.decode()


def test_tools_that_start_slowly_show_a_sign_of_life(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[mcp.servers.slow]\ncommand = ["sleep", "2"]\n')
    env = {"PATH": os.environ["PATH"], "DRAGOMAN_HOME": str(tmp_path)}
    assert "starting the tools" in on_a_terminal(["tools", "list"], env)


def test_what_is_not_captured_is_said_with_a_hint(tmp_path: Path) -> None:
    done = dragoman(tmp_path, "explain", "req_nothing")
    assert done.returncode == 1
    assert "DRAGOMAN_OBSERVE_CAPTURE=all" in done.stderr
    assert "there are no captures" in dragoman(tmp_path, "capture", "list").stderr
