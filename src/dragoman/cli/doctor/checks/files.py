"""Check the clients' settings files for values that override launchers and environment variables."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from dragoman.cli.client_env import settings_conflicts
from dragoman.cli.doctor.finding import DoctorContext, Finding, Repair
from dragoman.cli.doctor.repairs import remove_keys
from dragoman.cli.home import home_directory
from dragoman.cli.launch.table import GOOGLE_CONFLICTS

_MANAGED_CLAUDE = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)


def check_files(at: DoctorContext) -> Iterator[Finding]:
    looks = [look for client, look in _FILE_CHECKS.items() if not at.clients or client in at.clients]
    findings = [finding for look in looks for finding in look(at)]
    yield from findings or [Finding(status="ok", what="none of them leads elsewhere")]


def _check_claude(at: DoctorContext) -> Iterator[Finding]:
    folder = Path(at.env.get("CLAUDE_CONFIG_DIR") or home_directory(at.env) / ".claude")
    own = folder / "settings.json"
    project = [Path(".claude/settings.json").absolute(), Path(".claude/settings.local.json").absolute()]
    for file in dict.fromkeys((own, *project, *_MANAGED_CLAUDE)):
        document, problem = _read_json(file)
        if problem:
            yield Finding(
                status="warn", what=f"{file} {problem}", why="Claude Code ignores it, and so can we not look"
            )
            continue
        found = settings_conflicts(document)
        if found:
            mine = file == own
            yield Finding(
                status="fail",
                what=f"{file} sets {', '.join(found)}",
                why="Claude Code believes this file more than the environment, so it goes past the gateway",
                fix="take these keys out"
                + (" (dragoman doctor --fix does)" if mine else "; this file is not only yours"),
                repair=Repair(
                    question=f"take {', '.join(found)} out of {file} (a copy is kept)",
                    apply=partial(remove_keys, file, found),
                )
                if mine
                else None,
            )


def _check_codex(at: DoctorContext) -> Iterator[Finding]:
    file = Path(at.env.get("CODEX_HOME") or home_directory(at.env) / ".codex") / "config.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        yield Finding(
            status="fail",
            what=f"{file} cannot be read: {error}",
            why="Codex does not start with it",
            fix="mend it",
        )
        return
    name = document.get("profile")
    profiles = document.get("profiles")
    profile = profiles.get(name) if isinstance(profiles, dict) and isinstance(name, str) else None
    if isinstance(profile, dict) and "model_provider" in profile:
        yield Finding(
            status="fail",
            what=f"the profile {name} of {file} names a model_provider",
            why="a profile wins over the launcher's flags, so Codex goes past the gateway",
            fix=f"take model_provider out of [profiles.{name}], or start with: dragoman codex --profile another",
        )


def _check_gemini(at: DoctorContext) -> Iterator[Finding]:
    home = Path(at.env.get("GEMINI_CLI_HOME") or home_directory(at.env))
    file = home / ".gemini" / "settings.json"
    document, problem = _read_json(file)
    if problem:
        yield Finding(
            status="warn",
            what=f"{file} {problem}",
            why="dragoman gemini runs without these settings",
            fix="make it plain JSON",
        )
    enforced = _settings_table(document, "security", "auth", "enforcedType")
    if enforced not in (None, "gemini-api-key"):
        yield Finding(
            status="fail",
            what=f"{file} enforces the login {enforced}",
            why="Gemini CLI then refuses a key, and the gateway is reached with one",
            fix="take security.auth.enforcedType out",
        )
    for dotenv in (home / ".gemini" / ".env", home / ".env"):
        names = sorted(_dotenv_names(dotenv) & GOOGLE_CONFLICTS)
        if names:
            yield Finding(
                status="warn",
                what=f"{dotenv} sets {', '.join(names)}",
                why="Gemini CLI reads it after the launcher has taken these variables away",
                fix="take these lines out",
            )


def _check_qwen(at: DoctorContext) -> Iterator[Finding]:
    file = home_directory(at.env) / ".qwen" / "settings.json"
    document, _ = _read_json(file)
    if _settings_table(document, "security", "auth", "baseUrl"):
        yield Finding(
            status="note",
            what=f"{file} sets security.auth.baseUrl",
            why="with --auth-type gemini it wins over the gateway; without, the launcher is not touched by it",
        )


_FILE_CHECKS: dict[str, Callable[[DoctorContext], Iterator[Finding]]] = {
    "claude": _check_claude,
    "codex": _check_codex,
    "gemini": _check_gemini,
    "qwen": _check_qwen,
}


def _read_json(file: Path) -> tuple[Any, str]:
    """Return the document and a problem, each empty if it does not apply."""
    try:
        return json.loads(file.read_text(encoding="utf-8")), ""
    except (FileNotFoundError, NotADirectoryError):
        return None, ""
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"
    except ValueError:
        return None, "is not plain JSON"


def _settings_table(document: Any, *names: str) -> Any:
    for name in names:
        document = document.get(name) if isinstance(document, dict) else None
    return document


def _dotenv_names(file: Path) -> set[str]:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return set()
    return {line.partition("=")[0].strip().removeprefix("export ").strip() for line in lines if "=" in line}
