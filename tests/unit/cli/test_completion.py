"""Completion, asked of the real shells: bash by its completion function, zsh at a terminal, fish by `complete -C`."""

from __future__ import annotations

import argparse
import os
import pty
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli.completion import root_parser
from dragoman.cli.main import COMMANDS
from tests.requirements import require_program
from tests.unit.cli.conftest import Dragoman

BASH = """
source "$1"
compopt() { :; }  # works in a real completion only
COMP_WORDS=("${@:2}")
COMP_CWORD=$(( ${#COMP_WORDS[@]} - 1 ))
_shtab_dragoman
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
        ["bash", "--norc", "-c", BASH, "bash", str(script), *words],
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
        (["dragoman", "config", ""], ["check", "show"]),
        (["dragoman", "doctor", "--no"], ["--no-clients"]),
        (["dragoman", "capture", "export", "--as", ""], ["golden", "script"]),
        (["dragoman", "capture", "export", "--a"], ["--as"]),
        (["dragoman", "completion", "z"], ["zsh"]),
        (["dragoman", "help", "trans"], ["translate"]),
        (["dragoman", "serve", "--config", "set"], ["settings.toml"]),
        (["dragoman", "serve", "--port", "set"], []),
        (["dragoman", "claude", "set"], ["settings.toml"]),
        (["dragoman", "claude", "-p", "x", "set"], ["settings.toml"]),
        (["dragoman", "config", "check", "set"], ["settings.toml"]),
        (["dragoman", "chat", "--root", ""], ["folder"]),
        (["dragoman", "init", "nothing-like-this"], []),
        (["dragoman", "serve", "--until"], []),  # a flag for our own launchers
    ],
)
def test_bash(
    dragoman: Dragoman, scripts: Path, tmp_path: Path, words: list[str], expected: list[str]
) -> None:
    add_files(tmp_path)
    assert offered(script(dragoman, scripts, "bash"), tmp_path, *words) == expected


def test_every_command_and_flag_is_offered(dragoman: Dragoman, scripts: Path, tmp_path: Path) -> None:
    file = script(dragoman, scripts, "bash")
    assert {*COMMANDS, "help"} == set(offered(file, tmp_path, "dragoman", ""))
    for path, parser in walk(["dragoman"], root_parser()):
        actions = (action for action in parser._actions if action.help != argparse.SUPPRESS)
        flags = {name for action in actions for name in action.option_strings}
        assert flags == set(offered(file, tmp_path, *path, "-")), path


def walk(
    path: list[str], parser: argparse.ArgumentParser
) -> Iterator[tuple[list[str], argparse.ArgumentParser]]:
    yield path, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, child in action.choices.items():
                yield from walk([*path, name], child)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("dragoman docto", "dragoman doctor "),
        ("dragoman doctor --no-c", "dragoman doctor --no-clients "),
        ("dragoman explain --fu", "dragoman explain --full "),
        ("dragoman config che", "dragoman config check "),
        ("dragoman capture export --as gol", "dragoman capture export --as golden "),
        ("dragoman serve --config set", "dragoman serve --config settings.toml "),
        ("dragoman config check set", "dragoman config check settings.toml "),
        ("dragoman chat --root fol", "dragoman chat --root folder/"),
        ("dragoman claude set", "dragoman claude settings.toml "),
        ("dragoman help trans", "dragoman help translate "),
    ],
)
def test_zsh_completes_what_is_typed(
    dragoman: Dragoman, scripts: Path, tmp_path: Path, line: str, expected: str
) -> None:
    """At a terminal: zsh reads the specifications only when the key is pressed."""
    program = require_program("zsh")
    add_files(tmp_path)
    file, seen = script(dragoman, scripts, "zsh"), tmp_path / "seen"
    (tmp_path / ".zshrc").write_text(
        f'autoload -Uz compinit && compinit -u -d {tmp_path}/dump && eval "$(<{file})"\n'
        f'show() {{ print -rn -- "$BUFFER" > {seen}.part && mv {seen}.part {seen}; }}\n'
        "zle -N show && bindkey '^P' show && touch ready\n"
    )
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
    """Wait for the file and return its text. The terminal is read meanwhile, or zsh would block."""
    deadline = time.monotonic() + 60
    shown = b""
    while not file.exists():
        assert time.monotonic() < deadline, shown.decode("utf-8", "replace")
        if select.select([terminal], [], [], 0.05)[0]:
            shown += os.read(terminal, 4096)
    return file.read_text()


def test_fish_offers_commands_verbs_and_flags(dragoman: Dragoman, scripts: Path, tmp_path: Path) -> None:
    fish = require_program("fish")
    add_files(tmp_path)
    file = script(dragoman, scripts, "fish")

    def complete(line: str) -> list[str]:
        code = f"source {file}; complete -C '{line}'"
        done = subprocess.run(
            [fish, "--no-config", "-c", code],
            cwd=tmp_path,
            env=plain(tmp_path),
            capture_output=True,
            text=True,
            check=True,
        )
        assert not done.stderr
        return [row.partition("\t")[0] for row in done.stdout.splitlines()]

    assert complete("dragoman doc") == ["doctor"]
    assert complete("dragoman config ch") == ["check"]
    assert complete("dragoman doctor --no") == ["--no-clients"]
    assert complete("dragoman completion z") == ["zsh"]
    assert sorted(complete("dragoman capture export --as ")) == ["golden", "script"]
    assert complete("dragoman serve --config set") == ["settings.toml"]
    assert complete("dragoman config check set") == ["settings.toml"]
    assert complete("dragoman chat --root fol") == ["folder/"]
    assert complete("dragoman claude set") == ["settings.toml"]
    assert complete("dragoman help trans") == ["translate"]


def test_the_shell_is_known_by_its_variable(dragoman: Dragoman) -> None:
    assert "complete -c dragoman" in dragoman("completion", env={"SHELL": "/usr/bin/fish"}).stdout
    unknown = dragoman("completion", env={"SHELL": "/bin/tcsh"})
    assert unknown.returncode == 2
    assert "no completion for 'tcsh'" in unknown.stderr


def add_files(folder: Path) -> None:
    (folder / "settings.toml").touch()
    (folder / "folder").mkdir()


def plain(home: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb"}
