"""The command as a user runs it: another process, a home of its own, an environment without surprises."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Protocol

import pytest


class Dragoman(Protocol):
    def __call__(
        self, *argv: str, env: dict[str, str] | None = None, stdin: bytes = b"", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def clean_env(home: Path, tmp_path: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "DRAGOMAN_HOME": str(home),
        "PYTHONWARNINGS": "error",
        "COVERAGE_PROCESS_START": os.environ.get("COVERAGE_PROCESS_START", ""),
    }


@pytest.fixture
def dragoman(clean_env: dict[str, str]) -> Dragoman:
    def run(
        *argv: str, env: dict[str, str] | None = None, stdin: bytes = b"", cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "dragoman", *argv],
            env=clean_env | (env or {}),
            input=stdin,
            cwd=cwd,
            capture_output=True,
            timeout=60,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, done.stdout.decode(), done.stderr.decode()
        )

    return run
