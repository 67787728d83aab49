"""The `run_command` tool: runs programs for a model.

Disabled by default. Programs run without a terminal, without API keys in the environment, and without a shell
unless the call asks for one.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.ir import Text
from dragoman.tools.bubblewrap import Isolation
from dragoman.tools.definition import Context, ToolDefinition, ToolOutput
from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.process import ProcessResult, run_process

TOOL_NAME = "run_command"
SHELL = "/bin/sh"
DEFAULT_TIMEOUT_S = 60.0
MAX_TIMEOUT_S = 600.0
_TIMEOUT_MARGIN_S = 10.0  # the handler's timeout must come after ours, which keeps the output

# Environment variables that a command inherits; the settings can add more.
KEPT_VARIABLES = (
    "HOME LANG LANGUAGE LC_ALL LC_CTYPE LOGNAME PATH SHELL TERM TMPDIR TZ USER "
    "VIRTUAL_ENV CONDA_PREFIX GOPATH CARGO_HOME RUSTUP_HOME JAVA_HOME NVM_DIR"
).split()
# A project can contain a bare repository whose `config` names programs that `git status` would start.
_GIT = {
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
}
# Never inherited, even if the settings name them: API keys of the gateway and of the model vendors.
_FORBIDDEN = re.compile(r"(?i)(dragoman|gemini|google|vertex|anthropic|openai)_.*|.*_APPLICATION_CREDENTIALS")

_SCHEMA = {
    "type": "object",
    "properties": {
        "command": {
            "anyOf": [
                {"type": "array", "items": {"type": "string"}, "minItems": 1},
                {"type": "string", "minLength": 1},
            ],
            "description": "The program and its arguments as a list; a string is split as a shell would.",
        },
        "cwd": {
            "type": "string",
            "description": "Folder to run in, relative to the project (default: its root).",
        },
        "timeout_s": {
            "type": "number",
            "exclusiveMinimum": 0,
            "maximum": MAX_TIMEOUT_S,
            "description": f"Seconds until it is stopped (default {DEFAULT_TIMEOUT_S:g}).",
        },
        "shell": {
            "type": "boolean",
            "description": "Give the string to /bin/sh, for pipes, && and variables; needs its own permission.",
        },
    },
    "required": ["command"],
    "additionalProperties": False,
}
_DESCRIPTION = (
    "Run a program in the project and return what it printed (stdout and stderr) and its exit code. "
    "There is no terminal and no input. Without shell: true there are no pipes, redirections, wildcards or "
    "variables. Nothing may keep running in the background."
)


def command_tool(
    root: Path,
    *,
    isolation: Isolation,
    pass_env: Iterable[str] = (),
    max_output_bytes: int = 64 * 1024,
    environ: Mapping[str, str] = os.environ,
) -> ToolDefinition:
    """Return the tool for one project.

    `isolation` comes from `detect_isolation`; its note, if any, is reported as progress of each call. `pass_env` are
    names of further environment variables to inherit.
    """
    real_root = Path(os.path.realpath(root))
    env = {**_GIT, **minimal_environment(environ, pass_env)}

    async def execute(args: dict[str, Any], context: Context) -> ToolOutput:
        argv = read_argv(args)
        cwd = _inside(real_root, args.get("cwd", "."))
        if os.sep not in argv[0] and shutil.which(argv[0], path=env.get("PATH", os.defpath)) is None:
            raise ToolFailed(f"there is no program {argv[0]!r}")
        if isolation.note:
            context.progress(isolation.note)
        try:
            finished = await run_process(
                isolation.wrap(argv, root=real_root, cwd=cwd),
                cwd=cwd,
                env=env,
                timeout_s=_timeout_s(args),
                max_bytes=max_output_bytes,
                progress=context.progress,
            )
        except (OSError, ValueError) as error:
            raise ToolFailed(f"{argv[0]} cannot be started: {_reason(error)}") from None
        return _describe(finished, _timeout_s(args))

    return ToolDefinition(
        name=TOOL_NAME,
        description=_DESCRIPTION,
        schema=msgspec.json.encode(_SCHEMA),
        execute=execute,
        timeout_s=MAX_TIMEOUT_S + _TIMEOUT_MARGIN_S,
        risk="run",
        subject=subject,
        preview=preview,
    )


def minimal_environment(environ: Mapping[str, str], pass_env: Iterable[str] = ()) -> dict[str, str]:
    """Return the variables in `KEPT_VARIABLES` and `pass_env` that are set, except API keys."""
    names = (*KEPT_VARIABLES, *pass_env)
    return {name: environ[name] for name in names if name in environ and not _FORBIDDEN.fullmatch(name)}


def subject(args: dict[str, Any]) -> str:
    """Return the string that permission patterns match: the argument list, quoted where a shell would need it."""
    return shlex.join(read_argv(args))


def preview(args: dict[str, Any]) -> str:
    """Return what a person sees before approving the command."""
    where = args.get("cwd", ".")
    return f"$ {subject(args)}" + (f"\n(in {where})" if where not in ("", ".") else "")


def read_argv(args: dict[str, Any]) -> list[str]:
    """Return the program and its arguments.

    Raises `ToolFailed` for a string with shell operators when `shell` is not set.
    """
    command = args["command"]
    if args.get("shell"):
        return [SHELL, "-c", command if isinstance(command, str) else shlex.join(command)]
    if not isinstance(command, str):
        return list(command)
    try:
        operators = _operators(command)
        argv = shlex.split(command)
    except ValueError as error:
        raise ToolFailed(f"the command cannot be split into arguments: {error}; pass it as a list") from None
    if operators:
        hint = "pass a list if it is meant literally, or set shell to true"
        raise ToolFailed(f"{operators[0]} means nothing without a shell: {hint}")
    if not argv:
        raise ToolFailed("the command is empty")
    return argv


def _operators(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    return [token for token in lexer if token and set(token) <= set("();<>|&")]


def _inside(root: Path, given: str) -> Path:
    """Return the working directory, which must be inside the project.

    This is no security boundary: only isolation restricts what the program does from there.
    """
    try:
        folder = Path(os.path.realpath(root / given))
    except ValueError:
        raise ToolRefused(f"{given!r} is no path") from None
    if not folder.is_relative_to(root):
        raise ToolRefused(f"{given!r} is outside of the project")
    if not folder.is_dir():
        raise ToolFailed(f"there is no folder {given!r}")
    return folder


def _timeout_s(args: dict[str, Any]) -> float:
    return min(float(args.get("timeout_s", DEFAULT_TIMEOUT_S)), MAX_TIMEOUT_S)


def _describe(finished: ProcessResult, timeout_s: float) -> ToolOutput:
    if finished.code is None:
        end = f"[stopped after {timeout_s:g} s, with everything it had started]"
    elif finished.code < 0:
        end = f"[ended by signal {-finished.code}]"
    else:
        end = f"[exit code {finished.code}]"
    body = (
        finished.output if not finished.output or finished.output.endswith("\n") else f"{finished.output}\n"
    )
    return ToolOutput(content=(Text(text=body + end),), is_error=finished.code != 0)


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else "") or str(error)
