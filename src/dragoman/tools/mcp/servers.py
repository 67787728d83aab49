"""All MCP servers of the settings: started together, watched, and stopped without leaving anything behind."""

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
    from dragoman.tools.mcp.link import Link

Change = Callable[[str, tuple[ToolDefinition, ...]], None]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """How long everything may take, in seconds."""

    start_s: float = 30.0  # until a server has told its tools; npx may have to download it first
    wait_s: float = 10.0  # of a call, for a server that is being restarted
    first_pause_s: float = 0.5  # before a restart; it doubles
    longest_pause_s: float = 30.0
    settled_s: float = 10.0  # a server that lived so long starts again without delay


class McpServers:
    """`async with McpServers(config.mcp.servers) as servers:` and then `servers.definitions()`.

    A server that does not start is a line in `problems`, not an error: the others work, and it is tried again.
    `on_change(server, definitions)` tells when a server's tools are others than before. Without the block nothing
    runs until somebody asks for the `tools_of` a server, and `stop` ends what was started.
    """

    def __init__(
        self,
        servers: Mapping[str, McpServer],
        *,
        cwd: Path | None = None,
        timing: Timing = Timing(),  # noqa: B008 (a value)
        on_change: Change | None = None,
    ) -> None:
        self._servers = {name: server for name, server in servers.items() if server.enabled}
        # Not the project: `npx` and `python -m` would take a program that lies there.
        self._cwd = cwd or Path.home()
        self._timing = timing
        self._on_change = on_change
        self._links: dict[str, Link] = {}
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> McpServers:
        checked = {name: check_server(name, server) for name, server in self._servers.items()}
        for name, server in checked.items():
            self._start(name, server)
        try:
            await asyncio.gather(*(link.settled() for link in self._links.values()))
        except BaseException:
            await self.stop()
            raise
        return self

    async def __aexit__(self, *_exception: object) -> None:
        await self.stop()

    def definitions(self) -> tuple[ToolDefinition, ...]:
        """The tools of all servers that were started, as they are now."""
        return tuple(one for link in self._links.values() for one in link.definitions)

    async def tools_of(self, name: str, *, wait_s: float) -> tuple[ToolDefinition, ...]:
        """The tools of one server, which is started if need be; a slow start is waited for so long."""
        if name not in self._links:
            if name not in self._servers:
                raise ConfigError("this server is switched off", where=f"mcp.servers.{name}")
            server = check_server(name, self._servers[name])
            await asyncio.to_thread(_import_link)  # the package takes its time
            if name not in self._links:  # nobody else was quicker
                self._start(name, server)
        link = self._links[name]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await link.settled()
        return link.definitions

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong with which server, at this moment."""
        return {name: link.problem for name, link in self._links.items() if link.problem}

    def _start(self, name: str, server: McpServer) -> None:
        link: Link = _import_link().Link(name, server, self._cwd, self._timing, self._on_change)
        self._links[name] = link
        self._tasks.append(asyncio.create_task(link.run(), name=f"mcp-{name}"))

    async def stop(self) -> None:
        for link in self._links.values():
            link.stop()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()


def _import_link() -> Any:
    """The package `mcp` is an extra: who has no servers does not need it."""
    try:
        return importlib.import_module("dragoman.tools.mcp.link")
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types", "anyio"):
            raise
        message = "MCP servers need a package that is not installed\npip install 'dragoman[mcp]'"
        raise ConfigError(message, where="mcp.servers") from None
