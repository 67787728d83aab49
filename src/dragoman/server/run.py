"""Start, serve, stop: granian inside our own event loop, so that streams may finish before we go."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from granian.constants import Interfaces
from granian.server.embed import Server

from dragoman import emulator  # its app is loaded when asked for
from dragoman.config import Config
from dragoman.errors import ConfigError
from dragoman.server.app import EMULATOR_PREFIX, App, GatewayApp
from dragoman.server.gateway import Gateway
from dragoman.store import SqliteStore

_POLL_S = 0.02
_STATE_FILE = "state.db"
_STOP_S = 1.0
_log = logging.getLogger("dragoman")

OnReady = Callable[[str], None]


def serve(config: Config, *, gateway_key: str | None, on_ready: OnReady) -> None:
    """Serve the gateway until SIGINT or SIGTERM; `on_ready` gets the base URL once it answers.

    State lies in `config.home`, which must exist.
    """
    keys = (*config.server.keys, *((gateway_key,) if gateway_key else ()))
    host = _address(config.server.host)
    port = _free_port(host, config.server.port)
    url = _url(host, port)
    emulated = config.backend == "emulator"
    store = SqliteStore(
        Path(config.home) / _STATE_FILE,
        max_age_s=config.state_retention_minutes * 60,
        max_bytes=config.store.max_bytes,
        now=time.time,
    )
    gateway = Gateway(config, store, keys=keys, emulator_url=url + EMULATOR_PREFIX if emulated else "")
    app = GatewayApp(gateway, emulator.create_emulator() if emulated else None)

    async def drain() -> None:
        gateway.draining = True
        if app.running:
            _log.warning("%d answer(s) are running; a second signal stops them", len(app.running))
        while app.running:
            await asyncio.sleep(_POLL_S)

    async def main() -> None:
        try:
            await _serve(app, host, port, lambda: on_ready(url), drain, patience_s=config.server.shutdown_s)
        finally:
            for task in app.running:
                task.cancel()
            await gateway.close()

    _run(main())


async def _serve(
    app: App,
    host: str,
    port: int,
    on_ready: Callable[[], None],
    drain: Callable[[], Coroutine[Any, Any, None]],
    *,
    patience_s: float,
) -> None:
    signals: asyncio.Queue[None] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    for name in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(name, signals.put_nowait, None)
    logging.getLogger("_granian").setLevel(logging.WARNING)
    server = Server(
        app, address=host, port=port, interface=Interfaces.ASGINL, websockets=False, log_enabled=False
    )
    serving = loop.create_task(server.serve())
    await _until_listening(host, port, serving)
    _spare_the_collector()
    on_ready()
    await _first_of(serving, loop.create_task(signals.get()))
    # Streams may finish, unless they take too long or a second signal comes.
    await _first_of(loop.create_task(drain()), loop.create_task(signals.get()), timeout_s=patience_s)
    server.stop()  # type: ignore[no-untyped-call]
    await asyncio.wait({serving}, timeout=_STOP_S)


def _spare_the_collector() -> None:
    """What is loaded now stays; nearly all of the rest is freed by reference counts alone."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)


async def _first_of(*tasks: asyncio.Task[None], timeout_s: float | None = None) -> None:
    await asyncio.wait(tasks, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)


async def _until_listening(host: str, port: int, serving: asyncio.Task[None]) -> None:
    while not serving.done():
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError:
            await asyncio.sleep(_POLL_S)
        else:
            writer.close()
            return
    await serving


def _address(host: str) -> str:
    """The server takes addresses, people write names."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise ConfigError(
            f"the host {host!r} is not known here: {error.strerror}", where="server.host"
        ) from None
    return str(min(found, key=lambda entry: entry[0] != socket.AF_INET)[4][0])


def _free_port(host: str, port: int) -> int:
    """The port to use: the one asked for if it is free, any free one for 0."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            why = f"port {port} on {host} cannot be used: {error.strerror}"
            raise ConfigError(why, code="port" if error.errno == errno.EADDRINUSE else "") from None
        return int(probe.getsockname()[1])


def _url(host: str, port: int) -> str:
    name = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{name}:{port}"


def _run(main: Coroutine[Any, Any, None]) -> None:
    try:
        import uvloop
    except ImportError:  # Windows
        asyncio.run(main)
    else:
        uvloop.run(main)
