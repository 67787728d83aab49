"""A temporary gateway with the emulator, and a client that runs on it through its launcher."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from dragoman import emulator
from dragoman.cli.gateway import start_gateway
from dragoman.observe.captures import CAPTURES_FOLDER, recent_captures
from dragoman.tokens import new_id

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
