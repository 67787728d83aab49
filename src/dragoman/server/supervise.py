"""Several workers on one port: started, kept running, told to stop together.

Each worker binds the port for itself and the kernel shares new connections out among them. One that dies takes only
its own connections with it, and is started again.
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
from dragoman.observe.sink import open_sink
from dragoman.redact import Redactor
from dragoman.server.listen import bind, url_of
from dragoman.server.loop import run_loop
from dragoman.server.orders import Order, Word

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 10.0
_SOUND_S = 60.0  # who lived so long has died of something new
_KILL_S = 5.0  # beyond the time it may take to stop
_COMMAND = (
    sys.executable,
    "-P",
    "-m",
    "dragoman.server.worker",
)  # -P: never a module from the working directory
_log = logging.getLogger("dragoman")


def supervise(
    config: Config, admin_keys: tuple[str, ...], address: str, on_ready: Callable[[str], None]
) -> None:
    """Run `server.workers` of them until SIGINT or SIGTERM; `on_ready` gets the base URL once all answer."""
    if sys.platform != "linux":
        raise ConfigError(
            "several workers need Linux, which shares a port out evenly", where="server.workers"
        )
    open_sink(Redactor((*secrets_of(config), *admin_keys)), form=config.observe.log_format)
    settings = config.server
    if settings.port:
        bind(address, settings.port, settings).close()  # or we would join whoever is there already
    with bind(
        address, settings.port, settings, shared=True
    ) as kept:  # bound, never listening: the port stays ours
        order = Order(config=config, admin_keys=admin_keys, address=address, port=kept.getsockname()[1])
        run_loop(Supervisor(order).run(lambda: on_ready(url_of(kept))))


class Supervisor:
    def __init__(self, order: Order) -> None:
        self._line = msgspec.json.encode(order) + b"\n"
        self._settings = order.config.server
        self._running: dict[int, Process] = {}
        self._stopping = asyncio.Event()

    async def run(self, on_ready: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, self._stop)
        numbers = range(1, self._settings.workers + 1)
        try:
            started = [await self._start(1)]  # alone: it makes the state file
            started += await asyncio.gather(*map(self._start, numbers[1:]))
            if not self._stopping.is_set():
                on_ready()
            keeping = [loop.create_task(self._keep(*pair)) for pair in zip(numbers, started, strict=True)]
            await self._stopping.wait()
            patience_s = self._settings.drain_s + self._settings.shutdown_s + _KILL_S
            await asyncio.wait(keeping, timeout=patience_s)
        finally:
            for process in self._running.values():
                process.kill()
            await asyncio.gather(*(process.wait() for process in [*self._running.values()]))

    def _stop(self) -> None:
        """The second time it is passed on too: workers then wait for nobody."""
        self._stopping.set()
        for process in self._running.values():
            process.send_signal(signal.SIGTERM)

    async def _start(self, number: int) -> Process:
        """A worker that answers; if it cannot, why."""
        # In a session of its own: Ctrl-C is for us, and passed on once.
        process = await asyncio.create_subprocess_exec(
            *_COMMAND, stdin=PIPE, stdout=PIPE, start_new_session=True
        )
        self._running[number] = process
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a worker is spoken to through pipes")
        process.stdin.write(self._line)
        line = await process.stdout.readline()
        word = msgspec.json.decode(line, type=Word) if line else Word(wrong="a worker ended while it started")
        if word.wrong and not self._stopping.is_set():
            raise ConfigError(word.wrong, where=word.where)
        return process

    async def _keep(self, number: int, process: Process) -> None:
        """Start it again whenever it ends before its time; later each time, if it keeps ending."""
        loop = asyncio.get_running_loop()
        pause_s = _FIRST_PAUSE_S
        while True:
            began_s = loop.time()
            code = await process.wait()
            del self._running[number]
            if loop.time() - began_s > _SOUND_S:
                pause_s = _FIRST_PAUSE_S
            if not self._stopping.is_set():
                _log.warning("worker %d ended (%d); it is started again", number, code)
                await self._wait(pause_s)
            if self._stopping.is_set():
                return
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)
            try:
                process = await self._start(number)
            except ConfigError as error:
                _log.warning("worker %d cannot start: %s", number, error)
                process = self._running[number]

    async def _wait(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()
