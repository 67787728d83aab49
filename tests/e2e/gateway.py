"""The real `dragoman serve` as a process of its own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.e2e.fake_google import KEY

GATEWAY_KEY = "e2e-gateway-key-0123456789"

#: The line of `dragoman serve`, and those of granian, uvicorn and hypercorn.
_READY = re.compile(r"(?:^ready on|Listening at:|Uvicorn running on|Running on) (http://\S+)", re.MULTILINE)
_START_S = 30.0
_STOP_S = 10.0
_POLL_S = 0.02


#: How the documentation of `dragoman.asgi` starts other ASGI servers; each prints a line once it listens.
ASGI_SERVERS = {
    "granian": ["granian", "--interface", "asgi", "--factory", "dragoman.asgi:app", "--port", "{port}"],
    "uvicorn": ["uvicorn", "--factory", "dragoman.asgi:app", "--port", "{port}"],
    "hypercorn": ["hypercorn", "dragoman.asgi:app()", "--bind", "127.0.0.1:{port}"],
}


class Gateway:
    """One gateway on a free port of 127.0.0.1; without `google` the embedded emulator answers.

    `server` is one of ASGI_SERVERS, `dragoman serve` otherwise.
    """

    def __init__(self, home: Path, google: str = "", server: str = "", **settings: str) -> None:
        self._home = home
        self._google = google
        self._server = server
        self._settings = {f"DRAGOMAN_{name}": value for name, value in settings.items()}
        self._log = home.with_name(f"{home.name}.log")
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self, port: int = 0) -> None:
        command = [sys.executable, "-m", "dragoman", "serve", "--port", str(port)]
        if self._server:
            port = port or _free_port()
            program, *arguments = ASGI_SERVERS[self._server]
            command = [sys.executable, "-m", program, *(word.format(port=port) for word in arguments)]
        offset = self._log.stat().st_size if self._log.exists() else 0
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self._env(), stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self.url = self._await_ready(offset)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def stop(self) -> None:
        """End exactly this process: politely, then by force."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self.kill()
            self._process = None

    def kill(self) -> None:
        """kill -9: nothing can be saved any more."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def lose_state(self) -> None:
        """As if the disk had been replaced while the gateway was down."""
        shutil.rmtree(self._home)

    def restart(self) -> None:
        """Up again on the same port with the same state folder."""
        self.start(int(self.url.rpartition(":")[2]))

    def log(self) -> str:
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    def _env(self) -> dict[str, str]:
        """Nothing of the caller's settings or keys reaches the gateway."""
        env = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        env |= {"HOME": str(self._home), "DRAGOMAN_HOME": str(self._home), "PYTHONUNBUFFERED": "1"}
        env["DRAGOMAN_GATEWAY_KEY"] = GATEWAY_KEY
        env["DRAGOMAN_UPSTREAM_KIND"] = "auto" if self._google else "emulator"
        if self._google:
            env |= {"DRAGOMAN_UPSTREAM_BASE_URL": self._google, "DRAGOMAN_UPSTREAM_API_KEY": KEY}
        return env | self._settings

    def _await_ready(self, offset: int) -> str:
        assert self._process is not None
        deadline = time.monotonic() + _START_S
        while time.monotonic() < deadline:
            ready = _READY.search(self._log.read_bytes()[offset:].decode(errors="replace"))
            if ready and _answers(ready[1]):  # granian prints its line before its worker has started
                return ready[1].rstrip("/")
            if self._process.poll() is not None:
                break
            time.sleep(_POLL_S)
        self.kill()
        raise RuntimeError(f"the gateway did not start:\n{self.log()}")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/healthz", timeout=_STOP_S) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
