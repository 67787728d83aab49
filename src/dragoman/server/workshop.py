"""What the gateway's own tools draw on, started once, when first needed: MCP servers, Python files, folders.

What cannot be had is missing, told to the log once, and tried again later; no request fails for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from dragoman.config import Config
from dragoman.config.profiles import Selector
from dragoman.errors import DragomanError
from dragoman.ir import remote_name
from dragoman.redact import redact
from dragoman.tools.audit import AUDIT_FILE, AuditLog
from dragoman.tools.custom import load_file
from dragoman.tools.definition import ToolDefinition
from dragoman.tools.fs import FileLimits, Files
from dragoman.tools.mcp import McpServers

TOOLS_FOLDER = "tools"

#: How long a request waits for a server that is just starting; after that it goes without.
START_WAIT_S = 10.0
_RETRY_S = 30.0
_log = logging.getLogger("dragoman")

#: Tools by the names they have where they come from.
Named = dict[str, ToolDefinition]


class Workshop:
    def __init__(self, config: Config, home: Path) -> None:
        self.servers = McpServers(config.mcp.servers)
        audit = config.tools.audit
        self.journal = None if audit == "off" else AuditLog(home / AUDIT_FILE, detail=audit)
        self._home = home
        self._folder = Path(config.tools.folder) if config.tools.folder else home / TOOLS_FOLDER
        self._loaded: dict[tuple[str, str], _Lazy] = {}
        self._told: dict[str, str] = {}

    async def find(self, selector: Selector, root: str) -> tuple[Named, str]:
        """The tools a selector means, and what is wrong if there are none."""
        if selector.kind == "mcp":
            found, problem = await self._served(selector.source)
            name = f"MCP server {selector.source}"
        else:
            found, problem = await self._load(selector, root).get()
            name = f"file {selector.source}.py" if selector.kind == "python" else f"folder {root}"
        if self._told.get(name, "") != problem:
            self._told[name] = problem
            _log.warning("%s: %s", name, redact(problem) or "is there again")
        missing = f"the tools of the {name} are not there" if problem else ""
        return {bare: one for bare, one in found.items() if selector.takes(bare)}, missing

    async def close(self) -> None:
        await self.servers.stop()

    async def _served(self, server: str) -> tuple[Named, str]:
        try:
            definitions = await self.servers.tools_of(server, wait_s=START_WAIT_S)
        except DragomanError as error:
            return {}, error.message
        prefix = remote_name(server, "")
        problem = "" if definitions else self.servers.problems.get(server, "it has no tools, or none yet")
        return {one.name.removeprefix(prefix): one for one in definitions}, problem

    def _load(self, selector: Selector, root: str) -> _Lazy:
        place = root if selector.kind == "fs" else selector.source
        known = self._loaded.get((selector.kind, place))
        if known is None:
            load = self._file_tools if selector.kind == "fs" else self._python_tools
            known = self._loaded[selector.kind, place] = _Lazy(lambda: load(place))
        return known

    def _file_tools(self, root: str) -> list[ToolDefinition]:
        return Files(Path(root), limits=FileLimits(state=self._home)).definitions()

    def _python_tools(self, file: str) -> list[ToolDefinition]:
        return load_file(self._folder, file)


class _Lazy:
    """Loaded in a thread, once; what failed is tried again, but not at once."""

    def __init__(self, load: Callable[[], Iterable[ToolDefinition]]) -> None:
        self._load = load
        self._lock = asyncio.Lock()
        self._found: Named = {}
        self._problem = ""
        self._tried_s = -_RETRY_S

    async def get(self) -> tuple[Named, str]:
        now_s = asyncio.get_running_loop().time
        if not self._found and now_s() - self._tried_s >= _RETRY_S:
            async with self._lock:
                if not self._found and now_s() - self._tried_s >= _RETRY_S:  # nobody else was quicker
                    self._problem = await self._try()
                    self._tried_s = now_s()
        return self._found, self._problem

    async def _try(self) -> str:
        try:
            self._found = {one.name: one for one in await asyncio.to_thread(self._load)}
        except DragomanError as error:
            return str(error)
        return "" if self._found else "there are no tools in it"
