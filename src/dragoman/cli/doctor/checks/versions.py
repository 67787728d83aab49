"""Check which clients are installed, and compare their versions with the tested ones."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping

from dragoman.cli.doctor.finding import DoctorContext, Finding
from dragoman.cli.launch.start import find_program
from dragoman.cli.launch.table import CLIENTS

#: The versions that the test suite runs; Amazon Q and Kiro are not available there.
TESTED_VERSIONS = {
    "claude": "2.1.325",
    "codex": "0.166.0",
    "gemini": "0.61.0",
    "opencode": "1.18.33",
    "qwen": "0.24.4",
    "pi": "0.73.1",
    "copilot": "1.0.102",
}
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_VERSION_TIMEOUT_S = 20.0


def check_versions(at: DoctorContext) -> Iterator[Finding]:
    if not at.clients:
        names = ", ".join(CLIENTS)
        yield Finding(
            status="note",
            what="none of the clients that can be launched is installed",
            fix=f"npm install -g @anthropic-ai/claude-code, or another of {names}; dragoman chat needs none",
        )
    for name in at.clients:
        client = CLIENTS[name]
        program = find_program(client, at.env)
        if program is None:
            yield Finding(status="fail", what=f"{client.title} is not installed", fix=client.source)
            continue
        yield _compare(name, client.title, program, get_version(program, at.env))


def get_version(program: str, env: Mapping[str, str]) -> str:
    """Return the version that the program prints, or ""."""
    try:
        done = subprocess.run(  # noqa: S603
            [program, "--version"],
            env=dict(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_VERSION_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = _VERSION.search(done.stdout + done.stderr)
    return found[0] if done.returncode == 0 and found else ""


def _compare(name: str, title: str, program: str, version: str) -> Finding:
    proven = TESTED_VERSIONS.get(name, "")
    if not version:
        return Finding(
            status="warn",
            what=f"{title} at {program} does not say its version",
            why="it may not start at all",
            fix=f"try {program} --version",
        )
    if not proven:
        return Finding(
            status="ok", what=f"{title} {version}; {name} was never run by our tests, only its protocol"
        )
    if version == proven:
        return Finding(status="ok", what=f"{title} {version}, the one our tests run")
    older = _version_tuple(version) < _version_tuple(proven)
    return Finding(
        status="ok",
        what=f"{title} {version}, {'older' if older else 'newer'} than {proven}, which our tests run",
    )


def _version_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))
