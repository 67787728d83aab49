"""The life cycle of a gateway process: serve until a signal arrives, then shut down gracefully."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import socket
from collections.abc import Callable

from dragoman.gateway.app import GatewayApp
from dragoman.process.http_server import HttpServer

_STOP_S = 1.0
_log = logging.getLogger("dragoman")


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
