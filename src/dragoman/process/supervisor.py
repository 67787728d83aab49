"""The supervisor of several worker processes on one port: it starts, restarts and stops them.

Each worker binds the port with SO_REUSEPORT, and the kernel distributes new connections among them. A worker that dies
loses only its own connections and is restarted. `WorkerConfig` and `WorkerReady` are the messages between them.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress

import msgspec

from dragoman.config import Config, secrets_of
from dragoman.errors import ConfigError
from dragoman.observe.logs import configure_logging
from dragoman.process.serve import bind, url_of
from dragoman.process.tuning import run_loop
from dragoman.redact import Redactor


class WorkerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a worker. It contains secrets, so it is sent through a pipe."""

    config: Config
    admin_keys: tuple[str, ...]
    address: str
    port: int


class WorkerReady(msgspec.Struct, frozen=True, kw_only=True):
    """A worker's only report: it is ready, or `wrong` says why it cannot start."""

    wrong: str = ""
    where: str = ""


_FIRST_PAUSE_S = 0.1
_MAX_PAUSE_S = 10.0
_HEALTHY_S = 60.0  # a worker that ran this long is restarted without a longer pause
_KILL_S = 5.0  # beyond `drain_s` and `shutdown_s`
#: -P: never a module from the working directory.
_COMMAND = (sys.executable, "-P", "-m", "dragoman.process.worker")
_log = logging.getLogger("dragoman")


def supervise(
    config: Config, admin_keys: tuple[str, ...], address: str, on_ready: Callable[[str], None]
) -> None:
    """Run `server.workers` workers until SIGINT or SIGTERM; `on_ready` gets the base URL once all are ready.

    Raises ConfigError if the port is taken, a worker cannot start, or the platform is not Linux.
    """
    if sys.platform != "linux":
        raise ConfigError(
            "several workers need Linux, which shares a port out evenly", where="server.workers"
        )
    configure_logging(Redactor((*secrets_of(config), *admin_keys)), form=config.observe.log_format)
    settings = config.server
    if settings.port:
        # Fail if the port is taken: SO_REUSEPORT would share it.
        bind(address, settings.port, settings).close()
    # Bound but never listening, to reserve the port while workers restart.
    with bind(address, settings.port, settings, shared=True) as reserved:
        config_for_workers = WorkerConfig(
            config=config, admin_keys=admin_keys, address=address, port=reserved.getsockname()[1]
        )
        run_loop(Supervisor(config_for_workers).run(lambda: on_ready(url_of(reserved))))


class Supervisor:
    def __init__(self, config: WorkerConfig) -> None:
        self._config_line = msgspec.json.encode(config) + b"\n"
        self._settings = config.config.server
        self._running: dict[int, Process] = {}
        self._stopping = asyncio.Event()

    async def run(self, on_ready: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, self._stop)
        numbers = range(1, self._settings.workers + 1)
        try:
            started = [await self._start(1)]  # alone, because it creates the database file
            started += await asyncio.gather(*map(self._start, numbers[1:]))
            if not self._stopping.is_set():
                on_ready()
            restarts = [
                loop.create_task(self._restart_on_exit(*pair)) for pair in zip(numbers, started, strict=True)
            ]
            await self._stopping.wait()
            timeout_s = self._settings.drain_s + self._settings.shutdown_s + _KILL_S
            await asyncio.wait(restarts, timeout=timeout_s)
        finally:
            for process in self._running.values():
                process.kill()
            await asyncio.gather(*(process.wait() for process in [*self._running.values()]))

    def _stop(self) -> None:
        """Forward SIGTERM to all workers. A second signal makes them stop without waiting for requests."""
        self._stopping.set()
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)

    async def _start(self, number: int) -> Process:
        """Start a worker and wait until it is ready; raise ConfigError if it cannot start."""
        # A session of its own, so that Ctrl-C reaches only the supervisor, which forwards it once.
        process = await asyncio.create_subprocess_exec(
            *_COMMAND, stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        self._running[number] = process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a worker is spoken to through pipes")
        process.stdin.write(self._config_line)
        line = await process.stdout.readline()
        ready = (
            msgspec.json.decode(line, type=WorkerReady)
            if line
            else WorkerReady(wrong="a worker ended while it started")
        )
        if ready.wrong and not self._stopping.is_set():
            raise ConfigError(ready.wrong, where=ready.where)
        return process

    async def _restart_on_exit(self, number: int, process: Process) -> None:
        """Restart a worker whenever it exits unexpectedly, with exponential backoff."""
        loop = asyncio.get_running_loop()
        pause_s = _FIRST_PAUSE_S
        while True:
            began_s = loop.time()
            code = await process.wait()
            del self._running[number]
            if loop.time() - began_s > _HEALTHY_S:
                pause_s = _FIRST_PAUSE_S
            if not self._stopping.is_set():
                _log.warning("worker %d ended (%d); it is started again", number, code)
                await self._wait(pause_s)
            if self._stopping.is_set():
                return
            pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            try:
                process = await self._start(number)
            except ConfigError as error:
                _log.warning("worker %d cannot start: %s", number, error)
                process = self._running[number]

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
