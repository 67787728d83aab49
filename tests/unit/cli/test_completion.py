"""Completion in the real shells; it knows what the commands know."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from dragoman.cli.completion.words import describe
from dragoman.cli.main import COMMANDS, LAUNCHED
from tests.requirements import require_program
from tests.unit.cli.conftest import Dragoman

BASH = """
source "$1"
COMP_WORDS=("${@:2}")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_dragoman
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("completion")


def script(dragoman: Dragoman, folder: Path, shell: str) -> Path:
    file = folder / shell
    if not file.exists():
        done = dragoman("completion", shell)
        assert done.returncode == 0, done.stderr
        file.write_text(done.stdout)
    return file


def offered(script: Path, cwd: Path, *words: str) -> list[str]:
    done = subprocess.run(
        [require_program("bash"), "--norc", "-c", BASH, "bash", str(script), *words],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["dragoman", "do"], ["doctor"]),
        (["dragoman", "config", ""], ["check", "show", "-h", "--help"]),
        (["dragoman", "doctor", "--no"], ["--no-clients"]),
        (["dragoman", "capture", "export", "--as", ""], ["golden", "script"]),
        (["dragoman", "capture", "export", "--a"], ["--as"]),
        (["dragoman", "completion", "z"], ["zsh"]),
        (["dragoman", "help", "trans"], ["translate"]),
        (["dragoman", "serve", "--config", "set"], ["settings.toml"]),
        (["dragoman", "serve", "--port", "set"], []),
        (["dragoman", "claude", "set"], ["settings.toml"]),
        (["dragoman", "init", "nothing-like-this"], []),
        (["dragoman", "serve", "--until"], []),  # a flag for our own launchers
    ],
)
def test_bash(
    dragoman: Dragoman, scripts: Path, tmp_path: Path, words: list[str], expected: list[str]
) -> None:
    (tmp_path / "settings.toml").touch()
    assert offered(script(dragoman, scripts, "bash"), tmp_path, *words) == expected


def test_every_command_and_flag_is_offered(dragoman: Dragoman, scripts: Path, tmp_path: Path) -> None:
    file = script(dragoman, scripts, "bash")
    assert set(COMMANDS) <= set(offered(file, tmp_path, "dragoman", ""))
    for word in describe(COMMANDS, LAUNCHED):
        names = {name for option in word.options for name in option.names if name.startswith("--")}
        if names:
            assert names <= set(offered(file, tmp_path, "dragoman", word.name, "--")), word.name


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dragoman docto", "dragoman doctor "),
        ("dragoman doctor --no-c", "dragoman doctor --no-clients "),
        ("dragoman config che", "dragoman config check "),
        ("dragoman capture export --as gol", "dragoman capture export --as golden "),
    ],
)
def test_zsh_completes_what_is_typed(
    dragoman: Dragoman, scripts: Path, tmp_path: Path, line: str, expected: str
) -> None:
    """At a terminal: zsh looks at its specifications only when somebody presses the key."""
    file, seen = script(dragoman, scripts, "zsh"), tmp_path / "seen"
    (tmp_path / ".zshrc").write_text(
        f"autoload -Uz compinit && compinit -u -d {tmp_path}/dump && source {file}\n"
        f'show() {{ print -rn -- "$BUFFER" > {seen}.part && mv {seen}.part {seen}; }}\n'
        "zle -N show && bindkey '^P' show && touch ready\n"
    )
    program = require_program("zsh")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execve(program, ["zsh", "-d", "-i"], plain(tmp_path) | {"TERM": "vt100", "COLUMNS": "120"})
    try:
        await_file(tmp_path / "ready", terminal)
        os.write(terminal, f"{line}\t\x10".encode())
        assert await_file(seen, terminal) == expected
    finally:
        os.kill(process, signal.SIGKILL)
        os.close(terminal)
        os.waitpid(process, 0)


def await_file(file: Path, terminal: int) -> str:
    """What is in it once it is there; the terminal is read meanwhile, so that nobody waits for us."""
    deadline = time.monotonic() + 60
    shown = b""
    while not file.exists():
        assert time.monotonic() < deadline, shown.decode("utf-8", "replace")
        if select.select([terminal], [], [], 0.05)[0]:
            shown += os.read(terminal, 4096)
    return file.read_text()


def test_fish_offers_commands_verbs_and_flags(dragoman: Dragoman, scripts: Path, tmp_path: Path) -> None:
    fish = require_program("fish")
    file = script(dragoman, scripts, "fish")

    def complete(line: str) -> list[str]:
        code = f"source {file}; complete -C '{line}'"
        done = subprocess.run(
            [fish, "--no-config", "-c", code], env=plain(tmp_path), capture_output=True, text=True, check=True
        )
        return [row.partition("\t")[0] for row in done.stdout.splitlines()]

    assert complete("dragoman doc") == ["doctor"]
    assert complete("dragoman config ch") == ["check"]
    assert complete("dragoman doctor --no") == ["--no-clients"]
    assert complete("dragoman completion z") == ["zsh"]
    assert sorted(complete("dragoman capture export --as ")) == ["golden", "script"]


def test_the_shell_is_known_by_its_variable(dragoman: Dragoman) -> None:
    assert dragoman("completion", env={"SHELL": "/usr/bin/fish"}).stdout.startswith(
        "# dragoman completion for fish"
    )
    unknown = dragoman("completion", env={"SHELL": "/bin/tcsh"})
    assert unknown.returncode == 2
    assert "there is no completion for 'tcsh'" in unknown.stderr


def plain(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb"}
