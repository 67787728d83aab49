"""The gateway for people who bring their own ASGI server: `dragoman.asgi:app` is a factory.

    granian --interface asgi --factory dragoman.asgi:app
    uvicorn --factory dragoman.asgi:app
    hypercorn 'dragoman.asgi:app()'

Settings come from the same file and environment as those of `dragoman serve`; what belongs to the server (address,
workers, connection limits and time-outs) is the server's own. The server must support lifespan.
"""

from __future__ import annotations

from dragoman.cli.settings import find_client_key, make_state_folder, print_setting_notes, read_settings
from dragoman.config import Config
from dragoman.errors import DragomanError
from dragoman.gateway.app import GatewayApp, open_gateway_app
from dragoman.gateway.asgi import AsgiApp, Receive, Scope, Send
from dragoman.process.serve import admin_keys_of


def app() -> AsgiApp:
    """Read the settings and return the ASGI application. Raise ConfigError if they are wrong."""
    settings = read_settings()
    print_setting_notes(settings)
    make_state_folder(settings.home)
    key = find_client_key(settings)
    return _LifespanApp(settings.config, admin_keys_of(settings.config, key.secret if key else None))


class _LifespanApp:
    """Open the gateway at `lifespan.startup`, close it at `lifespan.shutdown`."""

    def __init__(self, config: Config, admin_keys: tuple[str, ...]) -> None:
        self._config = config
        self._admin_keys = admin_keys
        self._app: GatewayApp | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif self._app is None:
            raise RuntimeError("the gateway is not open: the ASGI server must support lifespan")
        else:
            await self._app(scope, receive, send)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with open_gateway_app(self._config, self._admin_keys) as self._app:
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except DragomanError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
        else:
            await send({"type": "lifespan.shutdown.complete"})
        finally:
            self._app = None
