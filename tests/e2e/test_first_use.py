"""A newcomer's path: an empty HOME and the README's commands in their order, up to a tool call in the real Claude Code
and a glance at the dashboard."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import sync_playwright

from tests.e2e.clients import INSTALL_S, RUN_S, install_claude
from tests.e2e.conftest import NEW
from tests.e2e.directives import use
from tests.house.doc_blocks import ROOT, blocks
from tests.requirements import require_program

pytestmark = [pytest.mark.clients, pytest.mark.browser, pytest.mark.timeout(INSTALL_S)]

COMMANDS = [command for block in blocks() if block.page == "README.md" for command in block.commands]


class FirstTimeUser:
    """A clone in a folder, a home with nothing in it, and a terminal."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.clone = folder / "clone"
        self.home.mkdir()
        listed = subprocess.run(
            [require_program("git"), "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in filter(None, listed.stdout.split("\n")):
            if not name.startswith("tests/") and (ROOT / name).is_file():
                (self.clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.clone / name)
        with socket.socket() as probe:  # 8377 may be somebody's on this machine
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.env = {
            "PATH": f"{install_claude(NEW[0]).parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "DRAGOMAN_SERVER_PORT": str(self.port),
            "IS_SANDBOX": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }

    def start(self, command: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", "-c", command],
            cwd=self.clone,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> str:
        assert any(command.startswith(said) for said in COMMANDS), f"the README does not say {command}"
        return self.type(command)

    def type(self, command: str) -> str:
        path = f"{self.clone / '.venv' / 'bin'}:{self.env['PATH']}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.clone,
            env=self.env | {"PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[FirstTimeUser]:
    """`make run`, the first command of the README, until it says that it is ready."""
    person = FirstTimeUser(tmp_path)
    assert COMMANDS[0] == "make run"
    process = person.start(COMMANDS[0])
    assert process.stdout is not None
    said: list[str] = []
    try:
        while not (said and said[-1].startswith("ready on")):
            line = process.stdout.readline()
            assert line, "".join(said)
            said.append(line)
        assert f"http://127.0.0.1:{person.port}" in said[-1]
        yield person
    finally:
        os.killpg(process.pid, signal.SIGINT)
        process.communicate(timeout=60)


def test_from_an_empty_home_to_a_tool_call_and_a_glance_at_the_dashboard(newcomer: FirstTimeUser) -> None:
    """One after the other, as a person would: each step needs the one before."""
    _look_around(newcomer)
    _call_a_tool(newcomer)
    _see_the_doctor(newcomer)
    assert newcomer.run("dragoman init").startswith("written: ")
    assert "settings are valid" in newcomer.type("dragoman config check")
    _glance_at_the_dashboard(newcomer)


def _look_around(newcomer: FirstTimeUser) -> None:
    said = newcomer.run("dragoman")
    assert "Gemini emulator (no Google API key)" in said
    assert re.search(r"clients +Claude Code", said)


def _call_a_tool(newcomer: FirstTimeUser) -> None:
    prompt = use("Bash", {"command": "echo the newcomer was here > proof.txt && cat proof.txt"})
    words = f"-p '{prompt}' --output-format json --dangerously-skip-permissions"
    answer = msgspec.json.decode(newcomer.run(f".venv/bin/dragoman claude {words}"))
    last = answer[-1] if isinstance(answer, list) else answer
    assert "Bash returned: the newcomer was here" in last["result"]
    assert (newcomer.clone / "proof.txt").read_text() == "the newcomer was here\n"


def _see_the_doctor(newcomer: FirstTimeUser) -> None:
    said = newcomer.run("dragoman doctor")
    assert "Claude Code: request arrived at /v1/messages, response shown" in said
    assert "all checks passed" in said


def _glance_at_the_dashboard(newcomer: FirstTimeUser) -> None:
    """The tool call of before is there to be seen."""
    program = require_program("chromium", "chromium-browser")
    key = next(self_made.read_text().strip() for self_made in newcomer.home.rglob("gateway.key"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"http://127.0.0.1:{newcomer.port}/dashboard")
        page.get_by_label("Gateway key").or_(page.locator("nav")).first.wait_for()
        if page.get_by_label("Gateway key").is_visible():
            page.get_by_label("Gateway key").fill(key)
            page.get_by_role("button", name="Open").click()
        page.locator(".rows .row").first.wait_for()
        assert "claude" in page.locator(".rows").inner_text().lower()
        browser.close()
