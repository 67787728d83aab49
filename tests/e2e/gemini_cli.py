"""Gemini CLI itself: run headless in a throw-away home, straight against the emulator."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.clients import RUN_S, install_gemini

VERSION = "0.61.0"

#: A key instead of a login, and nothing that calls anybody else.
_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """One finished run."""

    code: int
    out: str
    errors: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines of `-o stream-json`."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    @property
    def answer(self) -> dict[str, Any]:
        """The object of `-o json`."""
        answer: dict[str, Any] = json.loads(self.out)
        return answer

    @property
    def said(self) -> str:
        """The text of `-o stream-json`, its pieces joined."""
        return "".join(
            event["content"]
            for event in self.events
            if event["type"] == "message" and event["role"] == "assistant"
        )

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def check(self) -> Finished:
        assert self.code == 0, f"exit code {self.code}\n{self.out}\n{self.errors}"
        return self


class GeminiCli:
    """One home and one working folder."""

    def __init__(self, *, folder: Path, url: str, key: str = "any") -> None:
        self._program = install_gemini(VERSION)
        self._home = folder / "home"
        self._tmp = folder / "tmp"
        self.cwd = folder / "work"
        self._url = url
        self._key = key
        for path in (self._home / ".gemini", self._tmp, self.cwd):
            path.mkdir(parents=True)
        (self._home / ".gemini" / "settings.json").write_text(json.dumps(_SETTINGS))

    def run(self, prompt: str, *flags: str) -> Finished:
        command = [str(self._program), "--skip-trust", "--yolo", *flags, "-p", prompt]
        done = subprocess.run(
            command,
            cwd=self.cwd,
            env=self._env(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        return Finished(code=done.returncode, out=done.stdout, errors=done.stderr)

    def _env(self) -> dict[str, str]:
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return env | {
            "HOME": str(self._home),
            "TMPDIR": str(self._tmp),
            "GOOGLE_GEMINI_BASE_URL": self._url,
            "GEMINI_API_KEY": self._key,
        }
