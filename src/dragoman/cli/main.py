"""The command `dragoman`: find the subcommand, run it, and report errors in one sentence."""

from __future__ import annotations

import difflib
import importlib
import os
import signal
import sys

from dragoman.cli.launchers import CLIENTS
from dragoman.cli.terminal import CommandError, paint, print_error
from dragoman.errors import ConfigError, DragomanError

# Each command is a module with `run(argv) -> exit code`; only the requested one is imported.
COMMANDS = {
    "serve": ("dragoman.cli.serve", "start the gateway in the foreground"),
    **{name: ("dragoman.cli.launch", f"run {client.title} on Gemini") for name, client in CLIENTS.items()},
    "chat": ("dragoman.cli.chat", "chat with an agent that works on the files of a project"),
    "run": ("dragoman.cli.run_task", "let the agent do one task, for scripts"),
    "translate": ("dragoman.cli.translate", "translate one request or answer between two APIs"),
    "tools": ("dragoman.cli.tools", "list the agent's tools, or run one without a model"),
    "explain": ("dragoman.cli.inspect.explain", "show how a request was translated, and why"),
    "replay": ("dragoman.cli.inspect.replay", "send a captured request again, and show the differences"),
    "capture": ("dragoman.cli.inspect.capture", "list captured requests, or export one as a test"),
    "usage": ("dragoman.cli.inspect.usage", "show token usage and costs"),
    "doctor": ("dragoman.cli.doctor", "check the setup, and test every installed client"),
    "init": ("dragoman.cli.init", "write a settings file with every setting explained"),
    "config": ("dragoman.cli.config", "check or show the settings"),
    "emulator": ("dragoman.cli.emulator", "serve only the offline Gemini emulator"),
    "mitm": ("dragoman.cli.mitm", "give tools to a Gemini program whose base URL cannot be changed"),
    "audit": ("dragoman.cli.inspect.audit", "show tool executions and refusals"),
    "completion": ("dragoman.cli.completion", "print a completion script for bash, zsh or fish"),
}

_EXAMPLES = """\
examples:
  dragoman claude                      your usual Claude Code on Gemini
  dragoman claude -p "fix the tests"   the same without a terminal
  dragoman codex exec "fix the tests"  arguments are passed to the client unchanged
  dragoman chat                        the built-in agent, with the files of this folder
  dragoman serve --port 9000           a gateway for every client on this machine
  dragoman translate --from anthropic --to gemini request.json
  dragoman doctor                      find problems and show fixes

environment:
  GEMINI_API_KEY  the Google API key; without it the built-in emulator answers
  DRAGOMAN_HOME   the state folder (default: dragoman in your data folder)
  NO_COLOR        any value: no colours

files:
  config.toml     in the state folder; dragoman init writes one with every setting explained

exit codes:
  0  done
  1  the command failed
  2  invalid usage or settings
  launchers return the client's exit code

More about a command: dragoman help COMMAND"""


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    argv = sys.argv[1:] if argv is None else argv
    try:
        return _dispatch(argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # avoid Python's own error at exit
        return 1
    except Exception as error:
        if os.environ.get("DRAGOMAN_DEBUG"):
            raise
        failure = _as_command_error(error)
        print_error(failure)
        return failure.code


def _dispatch(argv: list[str]) -> int:
    if not argv:
        print(importlib.import_module("dragoman.cli.getting_started").guide(os.environ))
        return 0
    name, *rest = argv
    if name in ("-h", "--help", "help"):
        if rest and rest[0] in CLIENTS:
            importlib.import_module("dragoman.cli.launch").explain(rest[0])
            return 0
        if rest and rest[0] in COMMANDS:
            return _run(rest[0], ["--help"])
        print(_help())
        return 0
    if name in ("-V", "--version", "version"):
        print(f"dragoman {_version()}")
        return 0
    if name not in COMMANDS:
        matches = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {matches[0]}?" if matches else "dragoman --help lists the commands"
        raise CommandError(f"unknown command {name!r}", hint=hint, code=2)
    return _run(name, rest)


def _run(name: str, argv: list[str]) -> int:
    command = importlib.import_module(COMMANDS[name][0])
    code: int = command.run(name, argv) if name in CLIENTS else command.run(argv)
    return code


def _help() -> str:
    width = max(map(len, COMMANDS))
    lines = [f"  {name:<{width}}  {about}" for name, (_, about) in COMMANDS.items()]
    title = paint("dragoman", "bold", sys.stdout)
    head = f"{title}: run Claude Code, Codex and every other tool-calling client on Google Gemini"
    usage = "usage: dragoman [--help] [--version] COMMAND …"
    return "\n".join([head, "", usage, "", "commands:", *lines, "", _EXAMPLES])


def _version() -> str:
    version: str = importlib.import_module("importlib.metadata").version("dragoman")
    return version


def _as_command_error(error: Exception) -> CommandError:
    """Return the failure to print for an exception; further lines of a message become its hint."""
    if isinstance(error, CommandError):
        return error
    if isinstance(error, DragomanError):
        message, _, hint = str(error).partition("\n")
        return CommandError(message, hint=hint, code=2 if isinstance(error, ConfigError) else 1)
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return CommandError(f"{place}{error.strerror}")
    hint = "this is a bug in dragoman; DRAGOMAN_DEBUG=1 prints the traceback"
    return CommandError(f"{type(error).__name__}: {error}", hint=hint)
