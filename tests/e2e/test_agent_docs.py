"""Every command of docs/agent.md that needs no terminal really runs, and the tables are the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.agent.tui.chat import COMMANDS
from dragoman.cli.run_task import EXIT_CODES

PAGE = (Path(__file__).parents[2] / "docs" / "agent.md").read_text("utf-8")
RUNS = [
    line.removeprefix("$ ").partition("#")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if "dragoman run" in line
]


def test_the_page_has_commands_to_try() -> None:
    assert len(RUNS) == 4


@pytest.mark.parametrize("command", RUNS)
def test_a_command_of_the_page_works(command: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# hello\n")
    env = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "DRAGOMAN_HOME": str(tmp_path / "state"),
        "DRAGOMAN_SERVER_PORT": "0",
    }
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_every_command_of_a_chat_is_on_the_page() -> None:
    assert [name for name in COMMANDS if f"`{name}" not in PAGE] == []


def test_every_exit_code_is_on_the_page() -> None:
    table = PAGE.partition("| exit code |")[2].partition("\n\n")[0]
    assert {str(code) for code in EXIT_CODES.values()} <= set(re.findall(r"\b\d+\b", table))
