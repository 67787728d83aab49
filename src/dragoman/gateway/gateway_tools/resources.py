"""The resources of gateway tools, opened once, when first needed: MCP servers, Python files and folders.

A resource that is unavailable is logged once and tried again later; requests run without its tools.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from pathlib import Path

from dragoman.config import Config
from dragoman.config.tools import ToolSelector
from dragoman.errors import DragomanError
from dragoman.ir import mcp_tool_name
from dragoman.redact import redact
from dragoman.tools.audit import AUDIT_FILE, AuditLog
from dragoman.tools.custom_tools import load_tool_file
from dragoman.tools.definition import ToolDefinition
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.mcp import McpServers

TOOLS_FOLDER = "tools"

#: How long a request waits for an MCP server that is starting; after that it runs without its tools.
START_WAIT_S = 10.0
_RETRY_S = 30.0
_log = logging.getLogger("dragoman")

#: Tools by the name that their server or file gives them, without the prefix that we add.
ToolsByName = dict[str, ToolDefinition]


class ToolResources:
    """The resources of all gateway tools of a process, and the audit log of their calls."""

    def __init__(self, config: Config, home: Path) -> None:
        self.servers = McpServers(config.mcp.servers)
        audit = config.tools.audit
        self.audit_log = None if audit == "off" else AuditLog(home / AUDIT_FILE, detail=audit)
        self._home = home
        self._folder = Path(config.tools.folder) if config.tools.folder else home / TOOLS_FOLDER
        self._loaded: dict[tuple[str, str], _LazyTools] = {}  # by kind, and file or folder
        self._logged_problems: dict[str, str] = {}  # by name of the resource

    async def find(self, selector: ToolSelector, root: str) -> tuple[ToolsByName, str]:
        """Return the tools that a selector matches, and why the resource is unavailable, or ""."""
        if selector.kind == "mcp":
            tools, problem = await self._mcp_tools(selector.source)
            name = f"MCP server {selector.source}"
        else:
            tools, problem = await self._lazy_tools(selector, root).get()
            name = f"file {selector.source}.py" if selector.kind == "python" else f"folder {root}"
        if self._logged_problems.get(name, "") != problem:
            self._logged_problems[name] = problem
            _log.warning("%s: %s", name, redact(problem) or "is there again")
        missing = f"the tools of the {name} are not there" if problem else ""
        return {bare: tool for bare, tool in tools.items() if selector.matches(bare)}, missing

    async def close(self) -> None:
        await self.servers.stop()

    async def _mcp_tools(self, server: str) -> tuple[ToolsByName, str]:
        try:
            definitions = await self.servers.tools_of(server, wait_s=START_WAIT_S)
        except DragomanError as error:
            return {}, error.message
        prefix = mcp_tool_name(server, "")
        problem = "" if definitions else self.servers.problems.get(server, "it has no tools, or none yet")
        return {tool.name.removeprefix(prefix): tool for tool in definitions}, problem

    def _lazy_tools(self, selector: ToolSelector, root: str) -> _LazyTools:
        path = root if selector.kind == "fs" else selector.source
        tools = self._loaded.get((selector.kind, path))
        if tools is None:
            load = self._file_tools if selector.kind == "fs" else self._python_tools
            tools = self._loaded[selector.kind, path] = _LazyTools(lambda: load(path))
        return tools

    def _file_tools(self, root: str) -> list[ToolDefinition]:
        return FileTools(Path(root), limits=FileLimits(state=self._home)).definitions()

    def _python_tools(self, file: str) -> list[ToolDefinition]:
        return load_tool_file(self._folder, file)


class _LazyTools:
    """Tools that are loaded once, in a thread; after a failure again, at most every `_RETRY_S`."""

    def __init__(self, load: Callable[[], Iterable[ToolDefinition]]) -> None:
        self._load = load
        self._lock = asyncio.Lock()
        self._tools: ToolsByName = {}
        self._problem = ""
        self._tried_s = -_RETRY_S

    async def get(self) -> tuple[ToolsByName, str]:
        now_s = asyncio.get_running_loop().time
        if not self._tools and now_s() - self._tried_s >= _RETRY_S:
            async with self._lock:
                if not self._tools and now_s() - self._tried_s >= _RETRY_S:  # no other task has loaded it
                    self._problem = await self._try_load()
                    self._tried_s = now_s()
        return self._tools, self._problem

    async def _try_load(self) -> str:
        try:
            self._tools = {tool.name: tool for tool in await asyncio.to_thread(self._load)}
        except DragomanError as error:
            return str(error)
        return "" if self._tools else "there are no tools in it"
