"""A real Redis on a socket of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import redis

from tests.requirements import require_program

_START_S = 10.0


def require_redis() -> str:
    """`DRAGOMAN_TEST_REDIS` names another one, such as a valkey-server."""
    return os.environ.get("DRAGOMAN_TEST_REDIS") or require_program("redis-server", "valkey-server")


class RedisServer:
    """Started, stopped, killed and started again on the same socket and the same data."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._folder = folder
        self._socket = folder / "redis.sock"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{self._socket}"

    def start(self) -> RedisServer:
        settings = ("--port", "0", "--unixsocket", str(self._socket), "--dir", str(self._folder))
        # written before it is answered: a killed server has lost nothing
        kept = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        command = [require_redis(), *settings, *kept, *self._options]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + _START_S
        while True:
            try:
                with self.client() as client:
                    client.ping()
            except redis.ConnectionError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.01)
            else:
                return self

    def client(self) -> redis.Redis:
        return redis.Redis.from_url(self.url)

    def pass_time(self, seconds: float) -> None:
        """As if so much time went by: every key is that much nearer to its end."""
        with self.client() as client:
            for key in client.scan_iter():
                left = client.pttl(key)
                assert isinstance(left, int)
                assert left >= 0, f"{key!r} would stay for ever"
                client.pexpire(key, max(0, left - int(seconds * 1000)))

    def clear(self) -> None:
        with self.client() as client:
            client.flushall()

    def pause(self) -> None:
        """It holds its connections and answers nobody."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def stop(self, *, kill: bool = False) -> None:
        if self._process is not None:
            self._process.kill() if kill else self._process.terminate()
            self._process.wait()
            self._process = None
