"""The output of `dragoman` without arguments: the current setup and the next useful commands."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

from dragoman.cli.banner import API_KEY_URL, describe_upstream
from dragoman.cli.launch import find_program
from dragoman.cli.launchers import CLIENTS
from dragoman.cli.settings import Settings, read_settings
from dragoman.cli.terminal import paint
from dragoman.errors import ConfigError


def guide(env: Mapping[str, str]) -> str:
    """Return a short page that depends on the settings and the installed clients."""
    title = paint("dragoman", "bold", sys.stdout)
    head = f"{title}: run Claude Code, Codex and every other tool-calling client on Google Gemini"
    installed = [name for name, client in CLIENTS.items() if find_program(client, env)]
    try:
        settings: Settings | None = read_settings()
        state = _state(settings, installed) if settings else []
    except ConfigError as error:
        settings = None
        state = [f"settings   {paint('invalid', 'red', sys.stdout)}: {str(error).partition(chr(10))[0]}"]
    steps = _steps(settings, installed)
    lines = [head, "", *(f"  {line}" for line in state), "", "next:"]
    width = max(len(command) for command, _ in steps)
    lines += [f"  {paint(command.ljust(width), 'cyan', sys.stdout)}  {about}" for command, about in steps]
    return "\n".join([*lines, "", "All commands: dragoman --help    One command: dragoman help COMMAND"])


def _state(settings: Settings, installed: list[str]) -> list[str]:
    config = settings.config
    good = paint("found", "green", sys.stdout)
    key = f"{good}: {describe_upstream(config)}"
    if config.backend == "emulator":
        key = describe_upstream(config) + ": everything works, but the answers are not from a model"
    clients = ", ".join(CLIENTS[name].title for name in installed) or "no supported client is installed"
    return [
        f"key        {key}",
        f"clients    {clients}",
        f"settings   {settings.file or 'defaults (no file)'}",
    ]


def _steps(settings: Settings | None, installed: list[str]) -> list[tuple[str, str]]:
    """Return up to five commands, the most useful first."""
    if settings is None:
        return [
            ("dragoman config check", "show the error and its location"),
            ("dragoman doctor", "run all checks"),
        ]
    steps: list[tuple[str, str]] = []
    if settings.config.backend == "emulator" and settings.config.upstream.kind == "auto":
        steps.append(("export GEMINI_API_KEY=…", f"get a free key at {API_KEY_URL}"))
    steps += [(f"dragoman {name}", f"{CLIENTS[name].title}, on Gemini") for name in installed[:2]]
    if not installed:
        source = CLIENTS["claude"].source
        steps.append((shlex.join(shlex.split(source)), "then: dragoman claude"))
    steps.append(("dragoman chat", "the built-in agent, with the files of this folder"))
    steps.append(("dragoman doctor", "check the setup, and test every installed client"))
    if settings.file is None and len(steps) < 5:
        steps.append(("dragoman init", "a settings file with every setting explained"))
    return steps
