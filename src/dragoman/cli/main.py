"""The command `dragoman`: finds the subcommand, runs it, and turns what goes wrong into one sentence."""

from __future__ import annotations

import difflib
import importlib
import os
import signal
import sys

from dragoman.cli.screen import Failure, complain, paint
from dragoman.errors import ConfigError, DragomanError

# The clients that can be started; their arguments are theirs, --help included.
LAUNCHED = {
    "claude": "Claude Code",
    "codex": "Codex",
    "gemini": "Gemini CLI",
    "opencode": "opencode",
    "qwen": "Qwen Code",
    "pi": "pi",
    "copilot": "GitHub Copilot CLI",
}

# A command is a module with `run(argv) -> exit code`; only the one asked for is imported.
COMMANDS = {
    "serve": ("dragoman.cli.serve", "start the gateway in the foreground"),
    **{name: ("dragoman.cli.launch", f"run {title} on Gemini") for name, title in LAUNCHED.items()},
    "chat": ("dragoman.cli.chat", "talk to an agent with the files of a project"),
    "run": ("dragoman.cli.run_task", "let the agent do one task, for scripts"),
    "translate": ("dragoman.cli.translate", "translate one request or answer between two APIs"),
    "tools": ("dragoman.cli.tools", "list the agent's tools, or run one without a model"),
    "config": ("dragoman.cli.config", "check or show the settings"),
    "emulator": ("dragoman.cli.emulator", "serve only the offline Gemini emulator"),
    "audit": ("dragoman.cli.audit", "show what the tools did, and what was refused"),
}

_EXAMPLES = """\
examples:
  dragoman claude                      your usual Claude Code, on Gemini
  dragoman claude -p "fix the tests"   the same without a terminal
  dragoman codex exec "fix the tests"  every client's arguments go to it untouched
  dragoman chat                        an agent of our own, with the files of this folder
  dragoman serve --port 9000           a gateway for every client on this machine
  dragoman translate --from anthropic --to gemini request.json
  dragoman config check

Set GEMINI_API_KEY to use Gemini; without a key the built-in emulator answers.
Exit codes: 0 done, 1 failed, 2 wrong usage or settings; a client's own is passed on.
More about a command: dragoman COMMAND --help"""


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
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains at its end
        return 1
    except Exception as error:
        if os.environ.get("DRAGOMAN_DEBUG"):
            raise
        failure = _explain(error)
        complain(failure)
        return failure.code


def _dispatch(argv: list[str]) -> int:
    if not argv:
        print(_help(), file=sys.stderr)
        return 2
    name, *rest = argv
    if name in ("-h", "--help", "help"):
        if rest and rest[0] in COMMANDS:
            return _run(rest[0], ["--help"])
        print(_help())
        return 0
    if name in ("-V", "--version", "version"):
        print(f"dragoman {_version()}")
        return 0
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean {near[0]}?" if near else "dragoman --help lists the commands"
        raise Failure(f"there is no command {name!r}", hint=hint, code=2)
    return _run(name, rest)


def _run(name: str, argv: list[str]) -> int:
    command = importlib.import_module(COMMANDS[name][0])
    code: int = command.run(name, argv) if name in LAUNCHED else command.run(argv)
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


def _explain(error: Exception) -> Failure:
    """One sentence for whatever happened; a message's further lines are its hint."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, DragomanError):
        message, _, hint = str(error).partition("\n")
        return Failure(message, hint=hint, code=2 if isinstance(error, ConfigError) else 1)
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename else ""
        return Failure(f"{place}{error.strerror}")
    hint = "this is a fault of dragoman; DRAGOMAN_DEBUG=1 shows where"
    return Failure(f"{type(error).__name__}: {error}", hint=hint)
