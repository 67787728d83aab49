"""The page about tools cannot drift: its program runs, its commands do what they show, its table is the code."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

from dragoman.tools import Handler

PAGE = (Path(__file__).parents[4] / "docs" / "tools.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_program_on_the_page_runs(tmp_path: Path) -> None:
    assert len(BLOCKS) >= 7
    program = tmp_path / "page.py"
    program.write_text("\n".join(BLOCKS), "utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_first_tool_is_written_in_ten_lines_and_can_be_called(tmp_path: Path) -> None:
    lines = [line for line in BLOCKS[0].splitlines() if line.strip()]
    assert len(lines) <= 10
    folder = tmp_path / "tools"
    folder.mkdir(mode=0o700)
    (folder / "weather.py").write_text(BLOCKS[0], "utf-8")
    command, shown = re.findall(r"\$ (dragoman tools call .*)\n(.*)\n", PAGE)[0]
    name, arguments = re.fullmatch(r"dragoman tools call (\w+) '(.*)'", command).groups()  # type: ignore[union-attr]
    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "tools", "call", name, arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "DRAGOMAN_HOME": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, shown, "")


def test_the_table_has_every_setting_of_the_handler() -> None:
    table = re.findall(r"^\| `(\w+)` \| ([^|]+?) \|", PAGE, re.MULTILINE)
    parameters = dict(inspect.signature(Handler).parameters)
    assert {name for name, _ in table} == parameters.keys() - {"registry", "clock", "now"}
    shown = {"256 KiB": 262_144, "none": None, "false": False}
    for name, default in table:
        expected = shown[default] if default in shown else float(default)
        assert parameters[name].default == expected, name
