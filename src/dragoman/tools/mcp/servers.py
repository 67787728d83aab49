"""`McpServers`: validates the settings of the MCP servers, then starts, supervises and stops them.

`connection` needs the `mcp` extra and is imported lazily.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from dragoman.config import is_loopback
from dragoman.config.tools import McpServer
from dragoman.errors import ConfigError
from dragoman.tools.definition import ToolDefinition

_SERVER_NAME = re.compile(
    r"[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*"
)  # `__` separates server and tool in a tool's name


def check_server(name: str, server: McpServer) -> McpServer:
    """Return the settings with the absolute path of the program. Raise `ConfigError` if they are invalid."""
    where = f"mcp.servers.{name}"
    if not _SERVER_NAME.fullmatch(name):
        raise ConfigError("a server's name has letters, digits, - and single _", where=where)
    if bool(server.command) == bool(server.url):
        raise ConfigError("a server has either a command or a url", where=where)
    if server.url:
        _check_url(server, f"{where}.url")
        return server
    program = _find_program(server.command[0], f"{where}.command")
    return msgspec.structs.replace(server, command=(program, *server.command[1:]))


def _check_url(server: McpServer, where: str) -> None:
    parts = urlsplit(server.url)
    host = parts.hostname or ""
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("must be a URL like https://example.com/mcp", where=where)
    if parts.username or parts.password:
        raise ConfigError("must be without user and password: put them into headers", where=where)
    if parts.scheme == "http" and server.headers and not is_loopback(host):
        raise ConfigError(
            f"must be https: the headers would cross the network to {host} in the clear", where=where
        )


def _find_program(given: str, where: str) -> str:
    """Return the path of the program: an absolute path as it is, a bare name from the absolute folders in PATH."""
    program = os.path.expanduser(given)
    if os.path.isabs(program):
        return program
    if os.sep in program:
        message = f"{given!r} depends on the working directory\nwrite the whole path, or a bare name in PATH"
        raise ConfigError(message, where=where)
    folders = [folder for folder in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(folder)]
    found = shutil.which(program, path=os.pathsep.join(folders) or os.devnull)
    if found is None:
        raise ConfigError(f"there is no program {given!r} in PATH", where=where)
    return found


if TYPE_CHECKING:
    from dragoman.tools.mcp.connection import McpConnection

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
        link: McpConnection = _import_connection().McpConnection(
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
        return importlib.import_module("dragoman.tools.mcp.connection")
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types", "anyio"):
            raise
        message = "MCP servers need a package that is not installed\npip install 'dragoman[mcp]'"
        raise ConfigError(message, where="mcp.servers") from None
