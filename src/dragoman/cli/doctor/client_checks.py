"""Check the clients: compare installed with tested versions, and check that a request of each one arrives.

Each client is started through its launcher on a temporary gateway with the emulator.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from dragoman import emulator
from dragoman.cli.doctor.finding import DoctorContext, Finding
from dragoman.cli.gateway import start_gateway
from dragoman.cli.launch import find_program
from dragoman.cli.launchers import CLIENTS, LaunchableClient
from dragoman.cli.terminal import CommandError, spinner
from dragoman.ids import new_id
from dragoman.observe.captures import CAPTURES_FOLDER, recent_captures

_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)*")
_VERSION_TIMEOUT_S = 20.0


def check_versions(context: DoctorContext) -> Iterator[Finding]:
    if not context.clients:
        names = ", ".join(CLIENTS)
        yield Finding(
            status="note",
            what="no supported client is installed",
            fix=f"npm install -g @anthropic-ai/claude-code, or another of {names}; dragoman chat needs no client",
        )
    for name in context.clients:
        client = CLIENTS[name]
        program = find_program(client, context.env)
        if program is None:
            yield Finding(status="fail", what=f"{client.title} is not installed", fix=client.source)
            continue
        yield _compare(client, program, get_version(program, context.env))


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


def _compare(client: LaunchableClient, program: str, version: str) -> Finding:
    title, tested = client.title, client.tested_version
    if not version:
        return Finding(
            status="warn",
            what=f"{title} at {program} does not print its version",
            why="it may not start",
            fix=f"try {program} --version",
        )
    if not tested:
        return Finding(
            status="ok",
            what=f"{title} {version}; {client.name} is not run by our tests, only its protocol is",
        )
    if version == tested:
        return Finding(status="ok", what=f"{title} {version}, the tested version")
    older = _version_tuple(version) < _version_tuple(tested)
    return Finding(
        status="ok",
        what=f"{title} {version}, {'older' if older else 'newer'} than {tested}, the tested version",
    )


def _version_tuple(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


_POLL_S = 0.1
_ANSWER_TIMEOUT_S = 30.0  # from the arrival of the request to the end of the client
_STOP_TIMEOUT_S = 10.0  # for a launcher to restore the client's settings
_MAX_CAPTURES = 200
_MAX_OUTPUT = 300
_REMOVED_PREFIXES = ("DRAGOMAN_", "GEMINI_", "GOOGLE_")  # so that the user's own upstream is not used
# Some clients first ask a small model for JSON (which model to use); the emulator answers that itself.
_JSON_REQUEST = {"contains": {"generationConfig": {"responseMimeType": "application/json"}}}
_SCRIPT_STEP = {"when": {"not": _JSON_REQUEST}, "times": "always", "optional": True}


class ClientRun(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one client run."""

    arrived: bool
    path: str = ""
    status: int = 0
    answered: bool = False
    output_tail: str = ""
    seconds: float = 0.0
    timed_out: bool = False


class TrialGateway:
    """A running gateway that captures every request in `home`."""

    def __init__(self, port: int, shared: Mapping[str, str], home: Path, answer: str) -> None:
        self._own = {
            **shared,
            "DRAGOMAN_SERVER_HOST": "127.0.0.1",
            "DRAGOMAN_SERVER_PORT": str(port),
            "DRAGOMAN_SERVER_NO_AUTH": "false",
        }
        self._answer = answer
        self._captures = home / CAPTURES_FOLDER
        self._folder = home / "work"
        self._folder.mkdir()

    def run(self, name: str, argv: list[str], env: Mapping[str, str], word: str, wait_s: float) -> ClientRun:
        """Run `dragoman NAME` in an empty folder.

        The launcher keeps its usual state folder, where it records the settings that it overrides.
        """
        command = [sys.executable, "-P", "-m", "dragoman", name, *argv]
        begun = time.monotonic()
        with tempfile.TemporaryFile() as output:
            child = subprocess.Popen(  # noqa: S603
                command,
                cwd=self._folder,
                env={**env, **self._own},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                path, status = self._watch(child, word, begun + wait_s)
                timed_out = child.poll() is None
            finally:
                _stop_client(child)
            output.seek(0)
            text = output.read().decode("utf-8", "replace")
        return ClientRun(
            arrived=bool(path),
            path=path,
            status=status,
            answered=self._answer in text,
            output_tail=_tail(text),
            seconds=time.monotonic() - begun,
            timed_out=timed_out,
        )

    def _watch(self, child: subprocess.Popen[bytes], word: str, deadline: float) -> tuple[str, int]:
        """Return path and status of the request with `word`; wait a little for the client to end."""
        path, status = "", 0
        while time.monotonic() < deadline:
            ended = child.poll() is not None
            if not path:
                path, status = self._find(word)
                deadline = time.monotonic() + _ANSWER_TIMEOUT_S if path else deadline
            if ended:
                break
            time.sleep(_POLL_S)
        return path, status

    def _find(self, word: str) -> tuple[str, int]:
        for captured in recent_captures(self._captures, _MAX_CAPTURES):
            if word.encode() in captured.client_request.data:
                return captured.record.path, captured.record.status
        return "", 0


@contextlib.contextmanager
def open_trial_gateway(env: Mapping[str, str]) -> Iterator[TrialGateway]:
    """Run a gateway on a free port with a temporary state folder."""
    with tempfile.TemporaryDirectory(prefix="dragoman-doctor-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        answer = f"answer-{new_id()}"  # unlike the question, only the answer contains this text
        plain = {name: value for name, value in env.items() if not name.startswith(_REMOVED_PREFIXES)}
        with emulator.running({"steps": [_SCRIPT_STEP | {"reply": answer}]}) as gemini:
            shared = {
                "DRAGOMAN_GATEWAY_KEY": f"trial-{new_id()}",
                "DRAGOMAN_UPSTREAM_KIND": "gemini",
                "DRAGOMAN_UPSTREAM_BASE_URL": gemini.url,
                "DRAGOMAN_UPSTREAM_API_KEY": "trial-key-of-the-emulator",
            }
            own = {"DRAGOMAN_HOME": str(home), "DRAGOMAN_OBSERVE_CAPTURE": "all"}
            with start_gateway("127.0.0.1", home, {**plain, **own, **shared}) as port:
                yield TrialGateway(port, shared, home, answer)


def _stop_client(child: subprocess.Popen[bytes]) -> None:
    """Stop the launcher, which ends its client and restores its settings; then kill the rest of its group."""
    if child.poll() is None:
        child.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_STOP_TIMEOUT_S)
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    child.wait()


def _tail(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("dragoman:")]
    return " / ".join(lines[-3:])[-_MAX_OUTPUT:]


def check_arrivals(context: DoctorContext) -> Iterator[Finding]:
    if context.settings is None or not context.clients:
        return
    try:
        with open_trial_gateway(context.env) as gateway:
            for name in context.clients:
                yield _try_client(context, gateway, name)
    except CommandError as error:
        yield Finding(
            status="fail", what=error.message, why="testing a client needs a gateway", fix=error.hint
        )


def _try_client(context: DoctorContext, gateway: TrialGateway, name: str) -> Finding:
    """Run one client; a random word in the question identifies its request."""
    client = CLIENTS[name]
    title = client.title
    word = f"dragoman-{secrets.token_hex(4)}"
    argv = [part.format(f"say {word}") for part in client.probe_args]
    with spinner(f"{title}: waiting for its request (at most {context.wait_s:.0f} s)"):
        run = gateway.run(name, argv, {**context.env, **client.probe_env}, word, context.wait_s)
    if not run.arrived:
        return Finding(
            status="fail",
            what=f"{title}: no request arrived within {context.wait_s:.0f} s"
            if run.timed_out
            else f"{title}: ended without a request",
            why=run.output_tail or "it printed nothing",
            fix=f"check the findings about its settings; DRAGOMAN_OBSERVE_LOG=all dragoman {name} shows more",
        )
    if run.status != 200 or not run.answered:
        return Finding(
            status="warn",
            what=f"{title}: its request arrived ({run.path}), but the response did not",
            why=run.output_tail or f"status {run.status}",
            fix=f"try it: dragoman {name}",
        )
    return Finding(
        status="ok", what=f"{title}: request arrived at {run.path}, response shown, in {run.seconds:.0f} s"
    )
