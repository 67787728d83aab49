"""`dragoman claude`: the real Claude Code, on Gemini."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from dragoman.cli.banner import GET_KEY, describe_upstream
from dragoman.cli.client_env import claude_env, settings_conflicts
from dragoman.cli.foreground import run_foreground
from dragoman.cli.gateway import open_gateway
from dragoman.cli.screen import Failure, remark, warn
from dragoman.cli.settings import find_key, read_settings, warn_all

_INSTALL = "npm install -g @anthropic-ai/claude-code, or set DRAGOMAN_CLAUDE to its path"


def run(argv: list[str]) -> int:
    """Start Claude Code with every argument untouched and return its exit code."""
    program = _find_claude()
    settings = read_settings()
    warn_all(settings)
    _warn_of_claude_settings()
    key = find_key(settings)
    token = key.secret if key else "no-auth"
    with open_gateway(settings, token) as base_url:
        remark(f"Claude Code → {base_url} → {describe_upstream(settings.config)}")
        if settings.config.backend == "emulator":
            remark(f"for real answers set GEMINI_API_KEY ({GET_KEY})")
        return run_foreground([program, *argv], claude_env(os.environ, base_url=base_url, token=token))


def _find_claude() -> str:
    given = os.environ.get("DRAGOMAN_CLAUDE", "").strip()
    found = shutil.which(given or "claude")
    if found is None:
        what = (
            f"DRAGOMAN_CLAUDE is {given}, which is no program"
            if given
            else "Claude Code is not installed: no claude on PATH"
        )
        raise Failure(what, hint=_INSTALL)
    return found


def _warn_of_claude_settings() -> None:
    """Claude Code's own settings file wins over the environment: say so before it surprises."""
    folder = os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude"
    file = Path(folder) / "settings.json"
    try:
        conflicts = settings_conflicts(json.loads(file.read_bytes()))
    except (OSError, ValueError):
        return
    if conflicts:
        warn(f"{file} sets {', '.join(conflicts)}, which may lead Claude Code past this gateway")
