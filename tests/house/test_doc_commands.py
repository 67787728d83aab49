"""The commands of the README and the guides really run: one shell for each page, in the order of the page.

A gateway on its emulator is at the address of the pages; the clients are stand-ins (the real ones run in tests/e2e).
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman import emulator
from dragoman.cli.launchers import CLIENTS
from tests.house.doc_blocks import ROOT, Block, blocks
from tests.requirements import require_program

#: Commands that no test can run as they stand, and why.
EXCUSED = {
    r"make (run|test)": "tests/e2e/test_first_use.py runs the one, CI the other",
    r"make (docs|check|bless|fast|test-clients|bench|format)": "CI runs it",
    r"npm install": "asks the network; tests/e2e installs the same packages",
    r"pip install": "asks the network; tests/house/test_package.py installs the wheel",
    r"(python|pytest)\b": "runs a program of the reader's",
    r"GOOGLE_GEMINI_BASE_URL=\S+ GEMINI_API_KEY=… python": "runs a program of the reader's",
    r"export GEMINI_API_KEY=…": "a key that only the reader has",
    r"curl …": "a part of a command",
    r"dragoman audit .*-f": "goes on until it is stopped; tests/unit/cli/test_audit.py",
    r"dragoman chat --resume": "goes on with what a person said; tests/e2e/test_agent_terminal.py",
    r"dragoman doctor$": "starts every client; tests/unit/cli/doctor and tests/e2e/test_doctor.py",
    r"dragoman init$": "tests/unit/cli/test_getting_started.py; here it would change the settings of the page",
}
#: Answers with a file, so that what comes after finds it.
FILES = {
    "README.md": "# hello\n",
    "weather.yaml": "steps:\n  - {reply: Rain., times: always, optional: true}\n",
    "request.json": json.dumps(
        {"model": "sonnet", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    ),
    "gateway.key": "dgm-any-key\n",
    "team.toml": "[server]\nport = 9000\n",
}
PROGRAMS = (*(client.program for client in CLIENTS.values()), "code")
STAND_IN = "#!/bin/sh\ncase $1 in --version) echo 1.0.0;; esac\nexit 0\n"
# Commands that serve are started on a free port, seen to be ready, and stopped as Ctrl-C stops them.
WRAPPER = f"""#!{sys.executable}
import os, signal, subprocess, sys
argv = sys.argv[1:]
real = [{sys.executable!r}, "-m", "dragoman", *argv]
if not argv or argv[0] not in ("serve", "emulator") or "--help" in argv:
    os.execv(real[0], real)
child = subprocess.Popen([*real, "--port", "0"], stdout=subprocess.PIPE, text=True)
line = child.stdout.readline()
child.send_signal(signal.SIGINT)
child.stdout.read()
child.wait(60)
if not line.startswith("ready on"):
    sys.exit(f"not ready: {{line}}")
"""
ADDRESSES = {"http://127.0.0.1:8377": "GATEWAY", "http://127.0.0.1:8378": "EMULATOR"}
PAGES = sorted({block.page for block in blocks() if block.language == "console"} | {"docs/emulator.md"})


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("reader")
    for folder in ("bin", "work", "project", ".local/share/dragoman/tools"):
        (home / folder).mkdir(parents=True)
    for name, text in {"dragoman": WRAPPER, **dict.fromkeys(PROGRAMS, STAND_IN)}.items():
        (home / "bin" / name).write_text(text)
        (home / "bin" / name).chmod(0o755)
    (home / "work" / ".venv").mkdir()
    (home / "work" / ".venv" / "bin").symlink_to(home / "bin")
    for name, text in FILES.items():
        (home / "work" / name).write_text(text)
    tool = re.search(r"```python\n(.*?)```", (ROOT / "docs" / "tools.md").read_text("utf-8"), re.DOTALL)
    assert tool
    (home / ".local/share/dragoman/tools/forecast.py").write_text(tool[1])
    return home


@pytest.fixture(scope="module")
def env(home: Path) -> Iterator[dict[str, str]]:
    """A gateway that has captured one request, at a port that its launchers and captures know."""
    require_program("curl")
    env = {
        "PATH": f"{home / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "DRAGOMAN_OBSERVE_CAPTURE": "all",
        "PYTHONUNBUFFERED": "1",
        "KEY": "any-key-of-the-reader",
    }
    command = [sys.executable, "-m", "dragoman", "serve", "--emulator", "--port", "0"]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        ready = re.match(r"ready on (http://127\.0\.0\.1:(\d+))", process.stdout.readline())
        assert ready
        asked = urllib.request.Request(
            f"{ready[1]}/v1/messages", FILES["request.json"].encode(), {"content-type": "application/json"}
        )
        urllib.request.urlopen(asked, timeout=60).close()
        with emulator.running() as gemini:
            yield env | {"DRAGOMAN_SERVER_PORT": ready[2], "GATEWAY": ready[1], "EMULATOR": gemini.url}
    finally:
        process.terminate()
        process.communicate(timeout=60)


def script(page: str, env: dict[str, str]) -> str:
    said = [command for block in blocks() if block.page == page for command in commands(block)]
    text = "\n".join(command for command in said if not excused(command))
    for address, name in ADDRESSES.items():
        text = text.replace(address, env[name])
    return text


def commands(block: Block) -> list[str]:
    if block.language == "console":
        return block.commands
    return [block.text] if (block.page, block.language) == ("docs/emulator.md", "sh") else []


def excused(command: str) -> bool:
    return any(re.match(pattern, command) for pattern in EXCUSED)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_the_page_run(page: str, home: Path, env: dict[str, str]) -> None:
    typed = script(page, env)
    for program in ("curl", "jq"):
        if program in typed:
            require_program(program)
    done = subprocess.run(
        [require_program("bash"), "-euxo", "pipefail", "-c", typed],
        cwd=home / "work",
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    assert "Traceback" not in done.stderr
    assert '"error":{' not in done.stdout, done.stdout


def test_no_excuse_is_out_of_date() -> None:
    said = [command for block in blocks() for command in block.commands]
    assert [pattern for pattern in EXCUSED if not any(re.match(pattern, command) for command in said)] == []
