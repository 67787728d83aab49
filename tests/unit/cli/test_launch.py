"""The launchers with a stand-in for each client: arguments, exit code, the folder that must not outlive them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.launchers import CLIENTS
from tests.unit.cli.conftest import Dragoman

# Writes down what it was given and what lies in the folder beside the file it was told of, and waits.
STAND_IN = f"""#!{sys.executable}
import json, os, sys, time
argv = sys.argv[1:]
files = [arg for arg in argv if arg.endswith("dragoman.js")]
seen = {{"argv": argv, "env": dict(os.environ), "text": open(files[0]).read() if files else ""}}
with open(os.environ["REPORT"] + ".part", "w") as file:
    json.dump(seen, file)
os.rename(os.environ["REPORT"] + ".part", os.environ["REPORT"])
time.sleep(float(os.environ.get("SLEEP", "0")))
sys.exit(int(os.environ.get("CODE", "0")))
"""


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    program = tmp_path / "bin" / "stand-in"
    program.parent.mkdir()
    program.write_text(STAND_IN)
    program.chmod(0o755)
    (tmp_path / "tmp").mkdir()
    variables = {client.variable: str(program) for client in CLIENTS.values()}
    return variables | {
        "REPORT": str(tmp_path / "report.json"),
        "TMPDIR": str(tmp_path / "tmp"),
        "DRAGOMAN_SERVER_PORT": "0",
    }


def report_of(env: dict[str, str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(Path(env["REPORT"]).read_text())
    return report


@pytest.mark.parametrize("name", [name for name in CLIENTS if name != "claude"])
def test_arguments_pass_untouched_and_so_does_the_exit_code(
    dragoman: Dragoman, env: dict[str, str], name: str
) -> None:
    argv = ["-p", "hi there", "--help", "--", "-"]
    done = dragoman(name, *argv, env=env | {"CODE": "7"})
    assert done.returncode == 7, done.stderr
    report = report_of(env)
    assert report["argv"][-len(argv) :] == argv
    assert f"{CLIENTS[name].title} → http://127.0.0.1:" in done.stderr
    assert list(Path(env["TMPDIR"]).iterdir()) == []


@pytest.mark.parametrize("name", CLIENTS)
def test_a_missing_program_is_said_with_how_to_install_it(
    dragoman: Dragoman, tmp_path: Path, name: str
) -> None:
    client = CLIENTS[name]
    done = dragoman(name, env={"PATH": str(tmp_path)})
    assert done.returncode == 1
    error, hint = done.stderr.splitlines()
    assert f"{client.title} is not installed: no {client.program} on PATH" in error
    assert client.source in hint
    assert ("npm install -g" in hint) == bool(client.package)
    done = dragoman(name, env={client.variable: "/nowhere/program"})
    assert f"{client.variable} is /nowhere/program, which is not a program" in done.stderr


def test_what_the_gateway_offers_can_be_picked(dragoman: Dragoman, env: dict[str, str]) -> None:
    assert dragoman("pi", env=env).returncode == 0
    report = report_of(env)
    assert "gemini-3.8-flash" in report["text"]
    assert report["env"]["DRAGOMAN_GATEWAY_KEY"] not in report["text"]


def test_a_home_for_one_run_leads_back_to_the_users(
    dragoman: Dragoman, env: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "GEMINI.md").write_text("be kind")
    program = tmp_path / "bin" / "look"
    program.write_text(
        '#!/bin/sh\ncat "$GEMINI_CLI_HOME/.gemini/GEMINI.md"\necho kept > "$GEMINI_CLI_HOME/.gemini/tmp/session"\n'
    )
    program.chmod(0o755)
    done = dragoman("gemini", env=env | {"DRAGOMAN_GEMINI": str(program)})
    assert (done.returncode, done.stdout) == (0, "be kind"), done.stderr
    assert (tmp_path / ".gemini" / "tmp" / "session").read_text() == "kept\n"
    assert (tmp_path / ".gemini" / "GEMINI.md").read_text() == "be kind"
    assert not (tmp_path / ".gemini" / "settings.json").exists()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 5), (signal.SIGTERM, 128 + signal.SIGTERM)])
def test_the_folder_goes_also_when_a_signal_ends_it(
    clean_env: dict[str, str], env: dict[str, str], number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-m", "dragoman", "pi"]
    child_env = clean_env | env | {"SLEEP": "1", "CODE": "5"}
    with subprocess.Popen(command, env=child_env, stdin=subprocess.DEVNULL) as launcher:
        deadline = time.monotonic() + 30
        while not Path(env["REPORT"]).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(list(Path(env["TMPDIR"]).iterdir())) == 1
        launcher.send_signal(number)
        assert launcher.wait(20) == code
    assert list(Path(env["TMPDIR"]).iterdir()) == []
