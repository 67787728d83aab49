"""One gateway process: serve until a signal arrives, then drain running requests.

`python -m dragoman.process.worker` runs one worker of a supervisor. It reads its configuration as a line of
JSON from standard input, reports on standard output that it is ready or why not, and stops when standard
input is closed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable

import msgspec

from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.gateway.app import GatewayApp, open_gateway_app
from dragoman.incremental.lru import set_shared_limit
from dragoman.observe.logs import configure_logging
from dragoman.process.http_server import HttpServer
from dragoman.process.serve import bind
from dragoman.process.supervisor import WorkerConfig, WorkerReady
from dragoman.process.tuning import fit_limits_to_descriptors, run_loop, tune_malloc

_STOP_S = 1.0
_log = logging.getLogger("dragoman")


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line:  # the supervisor has exited
        return
    config = msgspec.json.decode(line, type=WorkerConfig)
    threading.Thread(target=_stop_with_stdin, daemon=True).start()
    try:
        listener = bind(config.address, config.port, config.config.server, shared=True)
        run_gateway(config.config, config.admin_keys, listener, lambda: _report(WorkerReady()))
    except ConfigError as error:
        _report(WorkerReady(wrong=error.message, where=error.where))
        raise SystemExit(2) from None


def run_gateway(
    config: Config, admin_keys: tuple[str, ...], listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM; state is stored in `config.home`, which must exist."""
    config = fit_limits_to_descriptors(config)
    tune_malloc()
    set_shared_limit(config.server.cache_bytes)
    run_loop(_run(config, admin_keys, listener, on_ready))


async def _run(
    config: Config, admin_keys: tuple[str, ...], listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    async with open_gateway_app(config, admin_keys) as app:
        configure_logging(app.gateway.redactor, form=config.observe.log_format)
        await GatewayProcess(app, listener).run(on_ready)


class GatewayProcess:
    """The life cycle of the process:

    ready -- signal --> draining (still accepting) -- `drain_s` --> closing -- last response sent --> stopped

    A second signal, or `shutdown_s` in the closing state, stops it at once.
    """

    def __init__(self, app: GatewayApp, listener: socket.socket) -> None:
        self._app = app
        self._settings = app.gateway.config.server
        self._server = HttpServer(app, listener, self._settings)
        self._signals: asyncio.Queue[None] = asyncio.Queue()

    async def run(self, on_ready: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, self._signals.put_nowait, None)
        self._server.start()
        try:
            _tune_garbage_collector()
            on_ready()
            await self._signals.get()
            await self._drain()
        finally:
            for task in self._app.running:
                task.cancel()
            await self._server.close(_STOP_S)

    async def _drain(self) -> None:
        loop = asyncio.get_running_loop()
        self._app.gateway.draining = True
        second_signal = loop.create_task(self._signals.get())
        await _wait_for_first(second_signal, timeout_s=self._settings.drain_s)
        if self._app.running:
            _log.warning("%d answer(s) are running; a second signal stops them", len(self._app.running))
        self._server.stop()
        closing = loop.create_task(self._server.wait_closed())
        await _wait_for_first(second_signal, closing, timeout_s=self._settings.shutdown_s)


def _tune_garbage_collector() -> None:
    """Exempt loaded modules from garbage collection and run it rarely: reference counts free most objects."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _wait_for_first(*tasks: asyncio.Task[None], timeout_s: float | None = None) -> None:
    await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


def _report(ready: WorkerReady) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(ready) + b"\n")
    sys.stdout.flush()


def _stop_with_stdin() -> None:
    """Stop when the supervisor closes standard input, which happens however it dies."""
    while os.read(0, 1024):  # not sys.stdin: its lock would be held at interpreter shutdown
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
