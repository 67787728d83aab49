"""Open and close everything that a gateway process needs: the store, the embedded emulator, the application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dragoman.config import Config
from dragoman.server.app import GatewayApp
from dragoman.server.gateway import Gateway
from dragoman.store import open_store


@asynccontextmanager
async def open_gateway_app(config: Config, admin_keys: tuple[str, ...]) -> AsyncIterator[GatewayApp]:
    """Give the application; state lies in `config.home`, which must exist."""
    async with _open_embedded_emulator(config) as emulator_url:
        gateway = Gateway(
            config,
            open_store(config),
            keys=config.server.keys,
            admin_keys=admin_keys,
            emulator_url=emulator_url,
        )
        try:
            yield GatewayApp(gateway)
        finally:
            await gateway.close()


@asynccontextmanager
async def _open_embedded_emulator(config: Config) -> AsyncIterator[str]:
    """Without a key, answer from the emulator: on a loopback port of its own, reached like Google (decision 5)."""
    if config.backend != "emulator":
        yield ""
        return
    from dragoman.emulator.http.listen import HttpServer
    from dragoman.emulator.service import EmulatorService

    listener = HttpServer(EmulatorService("dragoman", None).handle)
    url = await listener.start()
    try:
        yield url
    finally:
        await listener.close()
