"""`dragoman emulator` with a script, and its recordings."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import requests

from dragoman.emulator import running
from dragoman.emulator.script.load import load_script
from dragoman.emulator.script.model import script_schema
from tests.unit.emulator.builders import hello, text

PATH = "/v1beta/models/gemini-3.8-flash:generateContent"


class Ended:
    """How the command ended."""

    code = 0
    errors = ""


def emulator(*arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dragoman", "emulator", "--port", "0", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def serving(*arguments: str) -> Iterator[tuple[str, Ended]]:
    process = emulator(*arguments)
    ended = Ended()
    assert process.stdout is not None
    ready = process.stdout.readline()
    try:
        yield ready.split()[2].rstrip(":"), ended
    finally:
        os.kill(process.pid, signal.SIGINT)
        _, ended.errors = process.communicate(timeout=60)
        ended.code = process.returncode


def refused(*arguments: str) -> str:
    process = emulator(*arguments)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    return errors


def ask(url: str) -> Any:
    return requests.post(
        url + PATH, json=hello(), headers={"x-goog-api-key": "a-key-of-somebody"}, timeout=30
    ).json()


def test_a_script_is_played_and_its_problems_are_the_exit_code(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("steps:\n- reply: hi\n- reply: never\n")
    with serving("--script", str(file)) as (url, ended):
        assert text(ask(url)) == "hi"
    assert ended.code == 1
    assert "error: the script was not followed:\n  step 2 (line 3) was never used\n" in ended.errors


def test_a_fault_may_come_on_top_of_a_script(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("steps:\n- {reply: hi, times: 2}\n")
    with serving("--script", str(file), "--fault", "overloaded*1") as (url, ended):
        assert ask(url)["error"]["code"] == 503
        assert text(ask(url)) == "hi"
    assert ended.code == 0, ended.errors
    assert "the script was followed" in ended.errors


def test_what_is_recorded_is_played(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    with running() as real, serving("--record", str(file), "--upstream", real.url) as (url, ended):
        heard = ask(url)
    assert ended.code == 0, ended.errors
    assert f"recorded in {file}; play it with" in ended.errors
    assert "a-key-of-somebody" not in file.read_text()
    assert len(load_script(file).script.steps) == 1
    with running(file) as replayed:
        assert ask(replayed.url) == heard


def test_mistakes_are_told_before_anything_is_served(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("steps:\n- rply: hi\n")
    assert f"{file}:2: steps[0].rply: there is no such key; did you mean reply?" in refused(
        "--script", str(file)
    )
    assert "No such file" in refused("--script", str(tmp_path / "none.yaml"))
    assert "exists already" in refused("--record", str(file))
    assert "cannot be combined with --script or --fault" in refused(
        "--record", "x.yaml", "--fault", "overloaded"
    )
    assert "does not exist" in refused("--record", str(tmp_path / "nowhere" / "s.yaml"))
    assert "--upstream: requires --record" in refused("--upstream", "http://127.0.0.1:1")
    assert "--record-timing: requires --record" in refused("--record-timing")


def test_a_recording_of_nothing_says_so(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    with serving("--record", str(file), "--upstream", "http://127.0.0.1:1") as (_, ended):
        pass
    assert ended.code == 0, ended.errors
    assert f"there is no {file}" in ended.errors


def test_the_lines_of_the_banner_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    process = emulator()
    assert process.stdout is not None
    banner = [process.stdout.readline() for _ in range(8)]
    try:
        pasted = [line.partition("export ")[2].split() for line in banner if "export " in line]
        for name, _, value in (word.partition("=") for words in pasted for word in words):
            monkeypatch.setenv(name, value)
        assert text(ask(os.environ["GOOGLE_GEMINI_BASE_URL"])) != ""
        assert os.environ["GEMINI_API_KEY"] == "any"
        assert json.loads(next(line for line in banner if "-d '" in line).split("'")[1])["contents"]
    finally:
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=60)


def test_the_schema_is_printed() -> None:
    process = emulator("--script-schema")
    printed, _ = process.communicate(timeout=60)
    assert json.loads(printed) == json.loads(json.dumps(script_schema()))
