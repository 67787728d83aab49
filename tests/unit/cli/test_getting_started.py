"""The first minutes: the guide, a settings file, whole pages of help, a sign of life."""

from __future__ import annotations

import importlib
import io
import os
import pty
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from dragoman.cli import init
from dragoman.cli.help_pages import HELP_PAGES, VARIABLES
from dragoman.cli.launchers import CLIENTS
from dragoman.cli.main import COMMANDS
from dragoman.cli.terminal import CommandError, spinner
from dragoman.config import Config, load_config
from dragoman.config.load import COMMAND_ENV
from dragoman.config.settings import SETTINGS
from tests.unit.cli.conftest import Dragoman

OWN = [name for name in COMMANDS if name not in CLIENTS]
NOTHING = {"PATH": "/usr/bin:/bin"}


def test_dragoman_alone_says_where_you_stand(dragoman: Dragoman, home: Path) -> None:
    done = dragoman(env=NOTHING)
    assert done.returncode == 0
    assert "Gemini emulator (no Google API key)" in done.stdout
    assert "export GEMINI_API_KEY=" in done.stdout
    assert "npm install -g @anthropic-ai/claude-code" in done.stdout
    assert "dragoman init" in done.stdout
    assert len(done.stdout.splitlines()) < 20
    assert "\x1b" not in done.stdout
    assert not home.exists()


def test_the_guide_knows_what_is_there(dragoman: Dragoman, home: Path, tmp_path: Path) -> None:
    program = tmp_path / "codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    home.mkdir()
    (home / "config.toml").write_text("")
    env = {"DRAGOMAN_CODEX": str(program), "GEMINI_API_KEY": "AIzaSy-something-long-enough"}
    said = dragoman(env=NOTHING | env).stdout
    assert "found: Gemini (Google AI Studio)" in said
    assert re.search(r"^  clients +Codex$", said, re.MULTILINE)
    assert re.search(r"^  dragoman codex +Codex, on Gemini$", said, re.MULTILINE)
    assert f"settings   {home / 'config.toml'}" in said
    assert "export GEMINI_API_KEY" not in said
    assert "dragoman init" not in said
    assert "AIzaSy" not in said


def test_the_guide_survives_wrong_settings(dragoman: Dragoman, home: Path) -> None:
    home.mkdir()
    (home / "config.toml").write_text("nonsense = 1\n")
    done = dragoman(env=NOTHING)
    assert done.returncode == 0
    assert "invalid: " in done.stdout
    assert "dragoman config check" in done.stdout


def test_init_writes_every_setting_and_changes_none(dragoman: Dragoman, home: Path) -> None:
    done = dragoman("init")
    file = home / "config.toml"
    assert done.stdout == f"written: {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text("utf-8")
    assert load_config(file_text=text, file_name="", env={}, flags={}) == Config()
    bare = re.sub(r"(?m)^#(?! )", "", text)
    assert load_config(file_text=bare, file_name="", env={}, flags={}) == Config()
    assert len(re.findall(r"(?m)^#\w+ = .*  # \S", text)) == len(SETTINGS)
    assert dragoman("init", "--print").stdout == text
    assert dragoman("config", "check").returncode == 0


def test_init_never_overwrites_without_a_yes(dragoman: Dragoman, home: Path) -> None:
    home.mkdir()
    file = home / "config.toml"
    file.write_text("[server]\nport = 1234\n")
    refused = dragoman("init")
    assert refused.returncode == 1
    assert "exists already" in refused.stderr
    assert file.read_text() == "[server]\nport = 1234\n"
    assert dragoman("init", "--yes").returncode == 0
    assert file.read_text().startswith("# Settings of Dragoman")
    (copy,) = home.glob("config.toml.bak-*")
    assert copy.read_text() == "[server]\nport = 1234\n"


@pytest.mark.parametrize(("answer", "replaced"), [("yes\n", True), ("\n", False)])
def test_init_asks_at_a_terminal(
    answer: str, replaced: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("")
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    if replaced:
        assert init.run(["--file", str(file)]) == 0
    else:
        with pytest.raises(CommandError, match="nothing was changed"):
            init.run(["--file", str(file)])
    assert bool(file.read_text()) is replaced


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_init_elsewhere(dragoman: Dragoman, tmp_path: Path, home: Path) -> None:
    assert dragoman("init", "--file", str(tmp_path / "team.toml")).returncode == 0
    assert dragoman("config", "check", str(tmp_path / "team.toml")).returncode == 0
    assert not home.exists()


@pytest.mark.parametrize("command", OWN)
def test_help_is_a_whole_page(command: str) -> None:
    said = importlib.import_module(COMMANDS[command][0]).make_parser().format_help()
    assert said.startswith(f"usage: dragoman {command} ")
    places = [
        said.index(f"\n{title}")
        for title in ("options:", "examples:", "environment:", "files", "exit codes:")
    ]
    assert places == sorted(places)
    assert f"\n  dragoman {command}" in said or f"dragoman {command}" in said[places[1] :]
    for code, meaning in HELP_PAGES[command].codes.items():
        assert f"\n  {code}" in said
        assert meaning in said


@pytest.mark.parametrize("name", CLIENTS)
def test_help_of_a_launcher_is_a_whole_page(dragoman: Dragoman, name: str) -> None:
    said = dragoman("help", name).stdout
    assert all(f"\n{title}" in said for title in ("examples:", "environment:", "files", "exit codes:"))


def test_every_variable_of_the_pages_is_read_by_somebody() -> None:
    known = {setting.env for setting in SETTINGS.values()} | COMMAND_ENV | {"DRAGOMAN_…"}
    assert {name for name in VARIABLES if name.startswith("DRAGOMAN")} <= known


def test_a_sign_of_life_on_a_terminal_only() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        with spinner("waiting for the emulator", terminal):
            deadline = time.monotonic() + 30
            seen = b""
            while b"waiting for the emulator" not in seen and time.monotonic() < deadline:
                seen += os.read(leader, 1000)
        seen += os.read(leader, 1000)
    os.close(leader)
    assert seen.endswith(b"\r\x1b[K")
    pipe = io.StringIO()
    with spinner("nobody looks", pipe):
        assert "progress" not in {thread.name for thread in threading.enumerate()}
    assert pipe.getvalue() == ""


def test_what_is_done_at_once_shows_nothing() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal:
        with spinner("quick", terminal):
            pass
        terminal.write("end")
        terminal.flush()
        assert os.read(leader, 1000) == b"end"
    os.close(leader)


def test_help_imports_little(clean_env: dict[str, str]) -> None:
    """Under 0.3 s is a matter of what is imported; the clock of a busy machine proves nothing."""
    code = "import sys; from dragoman.cli.main import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-I", "-c", code]
    done = subprocess.run(command, env=clean_env, capture_output=True, check=True, text=True)
    loaded = set(done.stderr.split())
    own = {name for name in loaded if name.partition(".")[0] == "dragoman"}
    assert own == {
        "dragoman",
        "dragoman.cli",
        "dragoman.cli.launchers",
        "dragoman.cli.main",
        "dragoman.cli.terminal",
        "dragoman.errors",
    }
    heavy = {
        "aiohttp",
        "argparse",
        "asyncio",
        "h2",
        "msgspec",
        "prompt_toolkit",
        "ssl",
        "uvloop",
        "yaml",
    }
    assert not loaded & heavy
    spent = {argv: cpu_s(*argv) for argv in (("-c", "pass"), ("-m", "dragoman", "--help"))}
    print({" ".join(argv): f"{seconds:.3f} s of CPU" for argv, seconds in spent.items()})  # shown, not judged


def cpu_s(*argv: str) -> float:
    before = os.times()
    subprocess.run([sys.executable, *argv], stdout=subprocess.DEVNULL, check=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
