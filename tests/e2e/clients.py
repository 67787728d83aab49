"""The real programs, installed on demand; Claude Code, run headless in a throw-away home."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tests.requirements import require_program

RUN_S = 90.0
INSTALL_S = 900.0  # a test's time limit: the first one of a version downloads it
_POLL_S = 0.02


class MissingProgram(Exception):
    """A program these tests cannot do without is not on this machine."""


def install_claude(version: str) -> Path:
    """The path of that version's `claude`, installed into the cache if it is not there yet."""

    def check(prefix: Path) -> None:
        _check_version(prefix / "node_modules" / ".bin" / "claude", version)

    prefix = install(f"claude-{version}", f"@anthropic-ai/claude-code@{version}", check)
    return prefix / "node_modules" / ".bin" / "claude"


def install_gemini(version: str) -> Path:
    """The path of that version's Gemini CLI."""
    return install(f"gemini-{version}", f"@google/gemini-cli@{version}") / "node_modules" / ".bin" / "gemini"


def install_genai(version: str) -> Path:
    """The folder from which a program can import that version of `@google/genai`."""
    return install(f"genai-{version}", f"@google/genai@{version}")


def install(folder: str, package: str, check: Callable[[Path], None] | None = None) -> Path:
    """The folder of an npm package in the cache."""

    def make(prefix: Path) -> None:
        npm_install(prefix, package)
        if check is not None:
            check(prefix)

    return install_once(folder, make)


def install_once(folder: str, make: Callable[[Path], None]) -> Path:
    """A folder in the cache, which no clone owns; one process at a time fills it."""
    default = Path.home() / ".cache" / "dragoman-e2e"
    cache = Path(os.environ.get("DRAGOMAN_E2E_CACHE") or default)
    prefix = cache / folder
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (prefix / ".installed").exists():
            make(prefix)
            (prefix / ".installed").touch()
    return prefix


def npm_install(prefix: Path, *packages: str) -> None:
    """Without packages: those that the folder's own package.json asks for; flags may be among them."""
    require_program("node", package="nodejs")
    npm = require_program("npm")
    prefix.mkdir(parents=True, exist_ok=True)
    command = [npm, "install", "--prefix", str(prefix), "--no-audit", "--no-fund", "--save-exact", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise MissingProgram(f"npm could not install {' '.join(packages)}:\n{done.stdout}\n{done.stderr}")


def _check_version(program: Path, version: str) -> None:
    """npm quietly takes an older version where the engine does not fit."""
    done = subprocess.run([str(program), "--version"], capture_output=True, text=True, check=False)
    if version not in done.stdout:
        raise MissingProgram(f"{program} is not {version}: {done.stdout}{done.stderr}")


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One finished run: what the client printed, line by line."""

    code: int
    events: list[dict[str, Any]]
    stderr: str

    @property
    def result(self) -> str:
        return str(self._last().get("result", ""))

    @property
    def session(self) -> str:
        return next(str(event["session_id"]) for event in self.events if "session_id" in event)

    def calls(self, *, sub: bool = False) -> list[dict[str, Any]]:
        """The tool_use blocks, of the main conversation or of sub-agents."""
        return self._blocks("assistant", "tool_use", sub=sub)

    def results(self, *, sub: bool = False) -> list[dict[str, Any]]:
        return self._blocks("user", "tool_result", sub=sub)

    def names(self) -> list[str]:
        return [call["name"] for call in self.calls()]

    def check(self) -> Run:
        """It ended well, and no API error or retry was needed on the way."""
        assert self.code == 0, self.story()
        last = self._last()
        assert last.get("subtype") == "success", self.story()
        assert not last.get("is_error"), self.story()
        assert not last.get("api_error_status"), self.story()
        assert not [event for event in self.events if event.get("subtype") == "api_retry"], self.story()
        assert not any(event.get("isApiErrorMessage") for event in self.events), self.story()
        texts = [block["text"] for block in self._blocks("assistant", "text", sub=False)]
        assert not any(text.startswith("API Error") for text in texts), self.story()
        ids = [call["id"] for call in (*self.calls(), *self.calls(sub=True))]
        assert len(ids) == len(set(ids)), self.story()
        return self

    def _last(self) -> dict[str, Any]:
        return next((event for event in reversed(self.events) if event.get("type") == "result"), {})

    def _blocks(self, role: str, kind: str, *, sub: bool) -> list[dict[str, Any]]:
        return [
            block
            for event in self.events
            if event.get("type") == role and bool(event.get("parent_tool_use_id")) == sub
            for block in _content(event)
            if block["type"] == kind
        ]

    def story(self) -> str:
        """Everything that happened, for a failure's message."""
        lines = [msgspec.json.encode(event).decode()[:2000] for event in self.events]
        return "\n".join([f"exit code {self.code}", *lines, self.stderr])


def _content(event: dict[str, Any]) -> list[dict[str, Any]]:
    content = event["message"]["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def wait_for(path: Path, process: subprocess.Popen[str]) -> str:
    """What a tool that is running now has written into the file."""
    deadline = time.monotonic() + RUN_S
    while time.monotonic() < deadline and process.poll() is None:
        if path.exists() and path.read_text().endswith("\n"):
            return path.read_text().strip()
        time.sleep(_POLL_S)
    raise TimeoutError(f"{path.name} was never written")


class Claude:
    """One version of Claude Code with one model, in its own home and working folder."""

    def __init__(self, *, version: str, model: str, folder: Path, url: str, key: str) -> None:
        self.version = version
        self.model = model
        self._program = install_claude(version)
        self._home = folder / "home"
        self._tmp = folder / "tmp"
        self.cwd = folder / "work"
        for path in (self._home, self._tmp, self.cwd):
            path.mkdir(parents=True)
        self._url = url
        self._key = key

    def wait_for_transcript(self, session: str, words: str, process: subprocess.Popen[str]) -> None:
        """Until Claude Code has written down that the model said them, a moment after it has acted."""
        deadline = time.monotonic() + RUN_S
        while time.monotonic() < deadline and process.poll() is None:
            kept = self._home.glob(f".claude/projects/*/{session}.jsonl")
            lines = [line for path in kept for line in path.read_text().splitlines()]
            if any('"assistant"' in line and words in line for line in lines):
                return
            time.sleep(_POLL_S)
        raise TimeoutError(f"{words!r} never got into the transcript")

    @property
    def classic(self) -> bool:
        """Whether this is the old client with TodoWrite, Glob, Grep and Task."""
        return self.version.startswith("1.")

    def run(
        self,
        prompt: str,
        *flags: str,
        env: dict[str, str] | None = None,
        meanwhile: Callable[[subprocess.Popen[str]], None] | None = None,
    ) -> Run:
        """Run to the end; `meanwhile` may wait for something the client does, and then act."""
        process = self._start(prompt, flags, env or {})
        try:
            if meanwhile is not None:
                meanwhile(process)
            return self._finish(process)
        except BaseException:
            process.kill()
            print(self._finish(process).story())
            raise

    def _start(self, prompt: str, flags: tuple[str, ...], env: dict[str, str]) -> subprocess.Popen[str]:
        command = [str(self._program), "-p", prompt, "--model", self.model, "--verbose", *flags]
        command += ["--output-format", "stream-json", "--dangerously-skip-permissions"]
        return subprocess.Popen(
            command,
            cwd=self.cwd,
            env=self._env() | env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def _finish(self, process: subprocess.Popen[str]) -> Run:
        try:
            out, errors = process.communicate(timeout=RUN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
            errors += f"\nkilled: not done after {RUN_S:g} s"
        events = [msgspec.json.decode(line) for line in out.splitlines() if line.endswith("}")]
        return Run(code=process.returncode, events=events, stderr=errors)

    def _env(self) -> dict[str, str]:
        env = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        return env | {
            "HOME": str(self._home),
            "TMPDIR": str(self._tmp),
            "IS_SANDBOX": "1",
            "ANTHROPIC_BASE_URL": self._url,
            "ANTHROPIC_AUTH_TOKEN": self._key,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }
