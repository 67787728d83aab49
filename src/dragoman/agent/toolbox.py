"""The agent's tools: file tools, `run_command`, custom tools and MCP servers, with one guard and one audit log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from dragoman.config.tools import McpServer, ToolsConfig
from dragoman.tools.audit import AUDIT_FILE, AuditLog
from dragoman.tools.command import command_tool
from dragoman.tools.custom import load_tools
from dragoman.tools.definition import ToolDefinition
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.handler import Handler
from dragoman.tools.isolation import detect_isolation
from dragoman.tools.mcp import McpServers
from dragoman.tools.permissions import Approver, Mode, RuleGuard, Rules
from dragoman.tools.registry import Registry

TOOLS_FOLDER = "tools"


class Toolbox(msgspec.Struct, frozen=True, kw_only=True):
    """The agent's tools and their handler; `remarks` are warnings to show to the user."""

    registry: Registry
    handler: Handler
    files: FileTools
    warnings: tuple[str, ...] = ()


@asynccontextmanager
async def open_toolbox(
    *,
    root: Path,
    home: Path,
    settings: ToolsConfig,
    servers: Mapping[str, McpServer],
    mode: Mode = "normal",
    approver: Approver | None = None,
    strict: bool = False,
) -> AsyncIterator[Toolbox]:
    """Open all tools of one project; MCP servers run until the block ends.

    `home` is the state folder, with the backups, the audit log and by default the folder of custom tools.
    """
    files = FileTools(root, limits=FileLimits(state=home))
    registry = Registry(files.definitions())
    remarks: list[str] = []
    if settings.run_command:
        isolation = await detect_isolation(
            wanted=settings.isolation, network=settings.command_network, hidden=(home,)
        )
        registry.register(command_tool(root, isolation=isolation, pass_env=settings.command_env))
        remarks += [isolation.note] if isolation.note else []
    folder = Path(settings.folder) if settings.folder else home / TOOLS_FOLDER
    for definition in load_tools(folder, must_exist=bool(settings.folder)):
        registry.register(definition)
    served: dict[str, tuple[str, ...]] = {}

    def change(server: str, definitions: tuple[ToolDefinition, ...]) -> None:
        """Replace the tools of an MCP server in the registry."""
        for name in served.pop(server, ()):
            registry.remove(name)
        for definition in definitions:
            registry.register(definition, replace=True)
        served[server] = tuple(definition.name for definition in definitions)

    async with McpServers(servers, on_change=change) as running:
        remarks += [f"MCP server {name}: {problem}" for name, problem in running.problems.items()]
        rules = Rules.parse(settings.allow, settings.ask, settings.deny, mode=mode, known=registry.names())
        journal = None if settings.audit == "off" else AuditLog(home / AUDIT_FILE, detail=settings.audit)
        handler = Handler(
            registry,
            timeout_s=settings.timeout_s,
            max_output_bytes=settings.max_output_bytes,
            guard=RuleGuard(rules, approver, root=root),
            journal=journal,
            strict=strict,
        )
        yield Toolbox(registry=registry, handler=handler, files=files, warnings=tuple(remarks))
