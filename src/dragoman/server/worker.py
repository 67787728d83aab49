"""One process of the gateway: it answers until it is told to stop, and then lets running answers finish.

`python -m dragoman.server.worker` is one of several: its order comes as a line of JSON on standard input, and when that
ends so does the worker. A word back says that it is ready, or why not.
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

from dragoman import emulator  # its app is loaded when asked for
from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.memo import share
from dragoman.observe.sink import open_sink
from dragoman.server.app import GatewayApp
from dragoman.server.descriptors import fit_to_descriptors
from dragoman.server.emulated import EMULATOR_PREFIX
from dragoman.server.gateway import Gateway
from dragoman.server.heap import keep_memory
from dragoman.server.listen import bind, url_of
from dragoman.server.loop import run_loop
from dragoman.server.orders import Order, Word
from dragoman.server.wire import Server
from dragoman.store import open_store

_POLL_S = 0.02
_STOP_S = 1.0
_log = logging.getLogger("dragoman")


def main() -> None:
    line = sys.stdin.buffer.readline()
    if not line:  # nobody wants us any more
        return
    order = msgspec.json.decode(line, type=Order)
    threading.Thread(target=_stop_with_stdin, daemon=True).start()
    try:
        listener = bind(order.address, order.port, order.config.server, shared=True)
        work(order.config, order.admin_keys, listener, lambda: _say(Word()))
    except ConfigError as error:
        _say(Word(wrong=error.message, where=error.where))
        raise SystemExit(2) from None


def work(
    config: Config, admin_keys: tuple[str, ...], listener: socket.socket, on_ready: Callable[[], None]
) -> None:
    """Serve until SIGINT or SIGTERM; state lies in `config.home`, which must exist."""
    config = fit_to_descriptors(config)
    keep_memory()
    share(config.server.cache_bytes)
    emulated = config.backend == "emulator"
    emulator_url = url_of(listener) + EMULATOR_PREFIX if emulated else ""
    gateway = Gateway(
        config,
        open_store(config),
        keys=config.server.keys,
        admin_keys=admin_keys,
        emulator_url=emulator_url,
    )
    app = GatewayApp(gateway, emulator.create_emulator() if emulated else None)
    open_sink(gateway.redactor, form=config.observe.log_format)
    run_loop(Service(gateway, app, listener).run(on_ready))


class Service:
    """ready -- signal --> draining (still open) -- `drain_s` --> closing -- all answers given --> stopped

    A second signal, or `shutdown_s`, ends it wherever it is.
    """

    def __init__(self, gateway: Gateway, app: GatewayApp, listener: socket.socket) -> None:
        self._gateway = gateway
        self._app = app
        self._listener = listener
        self._signals: asyncio.Queue[None] = asyncio.Queue()

    async def run(self, on_ready: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        for name in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(name, self._signals.put_nowait, None)
        server = Server(self._app, self._listener, self._gateway.config.server)
        server.start()
        try:
            _spare_the_collector()
            on_ready()
            await self._signals.get()
            await self._leave(server)
        finally:
            server.stop()
            for task in self._app.running:
                task.cancel()
            await _first_of(loop.create_task(server.wait_closed()), timeout_s=_STOP_S)
            await server.abort()
            await self._gateway.close()

    async def _leave(self, server: Server) -> None:
        settings = self._gateway.config.server
        loop = asyncio.get_running_loop()
        self._gateway.draining = True
        hurry = loop.create_task(self._signals.get())
        await _first_of(hurry, timeout_s=settings.drain_s)
        if self._app.running:
            _log.warning("%d answer(s) are running; a second signal stops them", len(self._app.running))
        closing = loop.create_task(self._close(server))
        await _first_of(hurry, closing, timeout_s=settings.shutdown_s)

    async def _close(self, server: Server) -> None:
        """No new connections; what runs may finish, and so may what slips in meanwhile.

        The embedded emulator is reached through the same door, which therefore stays open until nobody needs it.
        """
        if self._gateway.config.backend == "emulator":
            self._gateway.closing = True
            while self._app.running:
                await asyncio.sleep(_POLL_S)
        server.stop()
        await server.wait_closed()


def _spare_the_collector() -> None:
    """What is loaded now stays; nearly all of the rest is freed by reference counts alone."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _first_of(*tasks: asyncio.Task[None], timeout_s: float | None = None) -> None:
    await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


def _say(word: Word) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(word) + b"\n")
    sys.stdout.flush()


def _stop_with_stdin() -> None:
    """Whoever started us holds the other end: however it dies, we do not outlive it."""
    while os.read(0, 1024):  # not through the buffer, whose lock nobody could take at our own end
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
