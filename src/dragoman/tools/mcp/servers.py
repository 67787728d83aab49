"""`McpServers`: starts, supervises and stops the MCP servers in the settings."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.config.tools import McpServer
from dragoman.errors import ConfigError
from dragoman.tools.definition import ToolDefinition
from dragoman.tools.mcp.settings import check_server

if TYPE_CHECKING:
    from dragoman.tools.mcp.link import McpConnection

ToolsChanged = Callable[[str, tuple[ToolDefinition, ...]], None]


class McpTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Timeouts and restart delays, in seconds."""

    start_s: float = 30.0  # until a server has listed its tools; npx may have to download it first
    wait_s: float = 10.0  # how long a call waits for a server that is being restarted
    first_pause_s: float = 0.5  # before the first restart; doubles with every further one
    longest_pause_s: float = 30.0
    settled_s: float = 10.0  # a connection that lasted this long resets the pause


class McpServers:
    """The MCP servers: `async with McpServers(config.mcp.servers) as servers:`, then `servers.definitions()`.

    A server that does not start is listed in `problems` and retried; it is not an error. Invalid settings raise
    `ConfigError`. `on_change(server, definitions)` is called when a server's tools have changed. Without the `async
    with` block servers start on demand, when `tools_of` is called, and `stop` ends them.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        *,
        cwd: Path | None = None,
        timing: McpTiming = McpTiming(),  # noqa: B008 (a value)
        on_change: ToolsChanged | None = None,
    ) -> None:
        self._servers = {name: server for name, server in servers.items() if server.enabled}
        # Not the project's folder: `npx` and `python -m` would run code that lies there.
        self._cwd = cwd or Path.home()
        self._timing = timing
        self._on_change = on_change
        self._connections: dict[str, McpConnection] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> McpServers:
        checked = {name: check_server(name, server) for name, server in self._servers.items()}
        for name, server in checked.items():
            self._start(name, server)
        try:
            await asyncio.gather(*(link.wait_for_first_attempt() for link in self._connections.values()))
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.stop()

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """Return the current tools of all servers that were started."""
        return tuple(one for link in self._connections.values() for one in link.definitions)

    async def tools_of(self, name: str, *, wait_s: float) -> tuple[ToolDefinition, ...]:
        """Return the tools of one server; start it if necessary and wait at most `wait_s` for it.

        Returns an empty tuple if the server is not ready by then. Raises `ConfigError` if it is unknown or disabled.
        """
        if name not in self._connections:
            if name not in self._servers:
                raise ConfigError("this server is switched off", where=f"mcp.servers.{name}")
            server = check_server(name, self._servers[name])
            await asyncio.to_thread(_import_connection)  # importing the SDK is slow
            if name not in self._connections:  # another task may have started it during the import
                self._start(name, server)
        link = self._connections[name]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await link.wait_for_first_attempt()
        return link.definitions

    @property
    def problems(self) -> dict[str, str]:
        """The current problems, by server name."""
        return {name: link.problem for name, link in self._connections.items() if link.problem}

    def _start(self, name: str, server: McpServer) -> None:
        link: McpConnection = _import_connection().Link(
            name, server, self._cwd, self._timing, self._on_change
        )
        self._connections[name] = link
        self._tasks.append(asyncio.create_task(link.run(), name=f"mcp-{name}"))

    async def stop(self) -> None:
        """Stop all servers and wait until they have ended."""
        for link in self._connections.values():
            link.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


def _import_connection() -> Any:
    """Import `link` lazily: the `mcp` package is an extra. Raise `ConfigError` if it is not installed."""
    try:
        return importlib.import_module("dragoman.tools.mcp.link")
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types", "anyio"):
            raise
        message = "MCP servers need a package that is not installed\npip install 'dragoman[mcp]'"
        raise ConfigError(message, where="mcp.servers") from None
