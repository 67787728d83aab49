"""The real `dragoman emulator` as a process of its own, with a record of what it answered."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_READY = re.compile(r"^ready on (http://[\w.]+:\d+)", re.MULTILINE)
_ACCESS = re.compile(r"^.*?((?:GET|POST|PUT|PATCH|DELETE) \S+) (\d{3})$", re.MULTILINE)
_START_S = 30.0
_STOP_S = 10.0
_POLL_S = 0.02


class EmulatorProcess:
    """Where it listens, and the requests since the last `forget`."""

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log
        self._start = 0

    def forget(self) -> None:
        self._start = self._log.stat().st_size

    def requests(self) -> list[tuple[str, int]]:
        """`("POST /v1beta/models/x:generateContent", 200)`, in order."""
        return [(request, int(status)) for request, status in _ACCESS.findall(self.log())]

    def accepted(self) -> list[str]:
        """Every request, none of which was refused: what a real client of Google sends must pass."""
        refused = [(request, status) for request, status in self.requests() if status != 200]
        assert not refused, refused
        return [request for request, _ in self.requests()]

    def log(self) -> str:
        return self._log.read_bytes()[self._start :].decode(errors="replace")


@contextmanager
def emulator_process(folder: Path, *flags: str) -> Iterator[EmulatorProcess]:
    """One emulator on a free port; it ends with the block."""
    log = folder / "emulator.log"
    env = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    env |= {"HOME": str(folder), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "dragoman", "emulator", "--port", "0", "--verbose", *flags]
    with log.open("wb") as sink:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink)
    try:
        yield EmulatorProcess(_await_ready(process, log), log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _await_ready(process: subprocess.Popen[bytes], log: Path) -> str:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        ready = _READY.search(log.read_text(errors="replace"))
        if ready:
            return ready[1]
        time.sleep(_POLL_S)
    raise RuntimeError(f"the emulator did not start:\n{log.read_text(errors='replace')}")
