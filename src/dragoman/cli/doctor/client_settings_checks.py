"""Check variables and settings files that lead clients past the gateway, and repair the files.

Launchers remove such variables; a client started by hand uses them. A backup is kept beside each changed file.
"""

from __future__ import annotations

import json
import os
import secrets
import time
import tomllib
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from dragoman.cli.doctor.finding import DoctorContext, Finding, Repair, Status
from dragoman.cli.launch.client import CLAUDE_CONFLICTS, settings_conflicts
from dragoman.cli.launch.prepare import COPILOT_CONFLICTS, GOOGLE_CONFLICTS
from dragoman.cli.settings import home_directory


def back_up(file: Path) -> Path:
    """Copy the file to a new name, readable only by its owner; return the copy."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(1000):
        copy = file.with_name(f"{file.name}.{stamp}{f'-{number}' if number else ''}.bak")
        try:
            descriptor = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        with os.fdopen(descriptor, "wb") as out:
            out.write(file.read_bytes())
        return copy
    raise FileExistsError(f"too many copies of {file}")


def remove_keys(file: Path, paths: Collection[str]) -> str:
    """Remove dotted keys from a JSON file and keep everything else in order; return what was done."""
    file = file.resolve()  # keep a symbolic link, for example into a dotfiles repository
    document: Any = json.loads(file.read_text(encoding="utf-8"))
    for path in paths:
        *parents, last = path.split(".")
        table = document
        for name in parents:
            table = table.get(name, {})
        table.pop(last, None)
    copy = back_up(file)
    _replace_file(file, json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    return f"removed {', '.join(paths)} from {file}; the backup is {copy.name}"


def _replace_file(file: Path, text: str) -> None:
    """Replace the file atomically and keep its mode."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(6)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as out:
        out.write(text)
    draft.chmod(file.stat().st_mode & 0o777)
    draft.replace(file)


class _ConflictGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Conflicting variables of one family of clients."""

    clients: tuple[str, ...]
    names: frozenset[str]
    why: str


_CONFLICT_GROUPS = (
    _ConflictGroup(
        clients=("claude",),
        names=CLAUDE_CONFLICTS,
        why="Claude Code prefers it to the gateway's address or key; dragoman claude removes it for its run",
    ),
    _ConflictGroup(
        clients=("gemini", "qwen"),
        names=GOOGLE_CONFLICTS,
        why="programs on Google's SDK prefer it to the gateway's address or key; the launchers remove it",
    ),
    _ConflictGroup(
        clients=("copilot",),
        names=COPILOT_CONFLICTS,
        why="Copilot prefers it; dragoman copilot removes it",
    ),
)
#: Variables with a base URL, and the path that the gateway's URL needs there.
_BASE_URL_VARIABLES = {
    "ANTHROPIC_BASE_URL": "",
    "OPENAI_BASE_URL": "/v1",
    "OPENAI_API_BASE": "/v1",
    "GOOGLE_GEMINI_BASE_URL": "",
    "COPILOT_PROVIDER_BASE_URL": "/v1",
}


def check_environment(context: DoctorContext) -> Iterator[Finding]:
    findings = [finding for check in _ENVIRONMENT_CHECKS for finding in check(context)]
    yield from findings or [Finding(status="ok", what="no conflicting variables")]


def _check_conflicts(context: DoctorContext) -> Iterator[Finding]:
    # these configure the gateway itself
    gateway_sources = set(context.settings.loaded.sources.values()) if context.settings else set()
    for group in _CONFLICT_GROUPS:
        names = sorted(
            name for name in group.names if context.env.get(name) and f"env {name}" not in gateway_sources
        )
        if names and (not context.clients or set(group.clients) & set(context.clients)):
            yield Finding(
                status="note",
                what=f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} set",
                why=group.why,
                fix=f"if you start a client by hand: unset {' '.join(names)}",
            )


def _check_base_urls(context: DoctorContext) -> Iterator[Finding]:
    gateway_port = context.settings.config.server.port if context.settings else 0
    for name, path in _BASE_URL_VARIABLES.items():
        given = context.env.get(name, "").strip().rstrip("/")
        if not given:
            continue
        parts = urlsplit(given)
        local = parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.port == gateway_port
        status: Status = "note"
        what, fix = (
            f"{name} points to {parts.hostname}, not to this gateway",
            f"if you start a client by hand: unset {name}",
        )
        if local and parts.path.rstrip("/") == path:
            status, what, fix = "ok", f"{name} points to this gateway", ""
        elif local:
            status, what = "warn", f"{name} points to this gateway, but with the path {parts.path or '/'}"
            fix = f"export {name}={parts.scheme}://{parts.netloc}{path}"
        yield Finding(status=status, what=what, fix=fix)


def _check_own_address(context: DoctorContext) -> Iterator[Finding]:
    """Report a gateway whose upstream is itself: it would send requests to itself forever."""
    if context.settings is None:
        return
    config = context.settings.config
    parts = urlsplit(config.upstream.base_url)
    if parts.hostname in ("127.0.0.1", "localhost", "::1") and parts.port == config.server.port:
        source = context.settings.loaded.sources.get("upstream.base_url", "upstream.base_url")
        yield Finding(
            status="fail",
            what=f"{source} points to the gateway itself",
            why="the gateway would send requests to itself",
            fix="unset it: GOOGLE_GEMINI_BASE_URL is for clients, GEMINI_BASE_URL for the gateway",
        )


_ENVIRONMENT_CHECKS: tuple[Callable[[DoctorContext], Iterator[Finding]], ...] = (
    _check_own_address,
    _check_base_urls,
    _check_conflicts,
)


_MANAGED_CLAUDE = (
    Path("/etc/claude-code/managed-settings.json"),
    Path("/Library/Application Support/ClaudeCode/managed-settings.json"),
)


def check_files(context: DoctorContext) -> Iterator[Finding]:
    checks = [
        check for client, check in _FILE_CHECKS.items() if not context.clients or client in context.clients
    ]
    findings = [finding for check in checks for finding in check(context)]
    yield from findings or [Finding(status="ok", what="no conflicting settings")]


def _check_claude(context: DoctorContext) -> Iterator[Finding]:
    folder = Path(context.env.get("CLAUDE_CONFIG_DIR") or home_directory(context.env) / ".claude")
    own = folder / "settings.json"
    project = [Path(".claude/settings.json").absolute(), Path(".claude/settings.local.json").absolute()]
    for file in dict.fromkeys((own, *project, *_MANAGED_CLAUDE)):
        document, problem = _read_json(file)
        if problem:
            yield Finding(
                status="warn",
                what=f"{file} {problem}",
                why="Claude Code ignores it, and it cannot be checked",
            )
            continue
        conflicts = settings_conflicts(document)
        if conflicts:
            is_own = file == own
            yield Finding(
                status="fail",
                what=f"{file} sets {', '.join(conflicts)}",
                why="this file overrides the environment of Claude Code, so it bypasses the gateway",
                fix="remove these keys"
                + (" (dragoman doctor --fix does)" if is_own else "; this file is shared"),
                repair=Repair(
                    question=f"remove {', '.join(conflicts)} from {file} (a backup is kept)",
                    apply=partial(remove_keys, file, conflicts),
                )
                if is_own
                else None,
            )


def _check_codex(context: DoctorContext) -> Iterator[Finding]:
    file = Path(context.env.get("CODEX_HOME") or home_directory(context.env) / ".codex") / "config.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        yield Finding(
            status="fail",
            what=f"{file} cannot be read: {error}",
            why="Codex cannot start with it",
            fix="fix the file",
        )
        return
    name = document.get("profile")
    profiles = document.get("profiles")
    profile = profiles.get(name) if isinstance(profiles, dict) and isinstance(name, str) else None
    if isinstance(profile, dict) and "model_provider" in profile:
        yield Finding(
            status="fail",
            what=f"the profile {name} of {file} names a model_provider",
            why="a profile overrides the launcher's flags, so Codex bypasses the gateway",
            fix=f"remove model_provider from [profiles.{name}], or start with: dragoman codex --profile another",
        )


def _check_gemini(context: DoctorContext) -> Iterator[Finding]:
    home = Path(context.env.get("GEMINI_CLI_HOME") or home_directory(context.env))
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
            why="Gemini CLI then refuses API keys, and the gateway needs one",
            fix="remove security.auth.enforcedType",
        )
    for dotenv in (home / ".gemini" / ".env", home / ".env"):
        names = sorted(_dotenv_names(dotenv) & GOOGLE_CONFLICTS)
        if names:
            yield Finding(
                status="warn",
                what=f"{dotenv} sets {', '.join(names)}",
                why="Gemini CLI reads it after the launcher has removed these variables",
                fix="remove these lines",
            )


def _check_qwen(context: DoctorContext) -> Iterator[Finding]:
    file = home_directory(context.env) / ".qwen" / "settings.json"
    document, _ = _read_json(file)
    if _settings_table(document, "security", "auth", "baseUrl"):
        yield Finding(
            status="note",
            what=f"{file} sets security.auth.baseUrl",
            why="with --auth-type gemini it overrides the gateway; otherwise it does not affect the launcher",
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
