"""`dragoman claude`: one command, nothing else running."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.e2e.clients import INSTALL_S, RUN_S, install_claude
from tests.e2e.conftest import CLASSIC, NEW
from tests.e2e.directives import use

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.mark.parametrize("version", [NEW[0], CLASSIC[0]])
def test_claude_code_is_started_on_the_emulator(tmp_path: Path, version: str) -> None:
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "DRAGOMAN_HOME": str(tmp_path / "state"),
        "DRAGOMAN_SERVER_PORT": "0",
        "DRAGOMAN_CLAUDE": str(install_claude(version)),
        "ANTHROPIC_API_KEY": "sk-would-lead-elsewhere",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "IS_SANDBOX": "1",
    }
    command = [sys.executable, "-m", "dragoman", "claude", "-p", use("Bash", {"command": "echo launched"})]
    command += ["--output-format", "json", "--dangerously-skip-permissions"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    answer = msgspec.json.decode(done.stdout)
    last = answer[-1] if isinstance(answer, list) else answer
    assert last["is_error"] is False
    assert "Bash returned: launched" in last["result"]
    assert "emulator" in done.stderr
