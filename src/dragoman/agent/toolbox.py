"""The agent's tools: file tools, `run_command`, custom tools and MCP servers, with one guard and one audit log.

`restore_files` undoes the file changes of a turn, using the backup ids in the results of the file tools.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from dragoman.config.tools import McpServer, ToolsConfig
from dragoman.ir import Message, Text, ToolResult
from dragoman.tools.audit import AUDIT_FILE, AuditLog
from dragoman.tools.bubblewrap import detect_isolation
from dragoman.tools.custom_tools import load_tools
from dragoman.tools.definition import Context, ToolDefinition
from dragoman.tools.errors import ToolError
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.handler import Handler
from dragoman.tools.mcp import McpServers
from dragoman.tools.permissions import Approver, Mode, RuleGuard, Rules
from dragoman.tools.registry import Registry
from dragoman.tools.run_command import command_tool

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
    warnings: list[str] = []
    if settings.run_command:
        isolation = await detect_isolation(
            wanted=settings.isolation, network=settings.command_network, hidden=(home,)
        )
        registry.register(command_tool(root, isolation=isolation, pass_env=settings.command_env))
        warnings += [isolation.note] if isolation.note else []
    folder = Path(settings.folder) if settings.folder else home / TOOLS_FOLDER
    for definition in load_tools(folder, must_exist=bool(settings.folder)):
        registry.register(definition)
    registered: dict[str, tuple[str, ...]] = {}

    def change(server: str, definitions: tuple[ToolDefinition, ...]) -> None:
        """Replace the tools of an MCP server in the registry."""
        for name in registered.pop(server, ()):
            registry.remove(name)
        for definition in definitions:
            registry.register(definition, replace=True)
        registered[server] = tuple(definition.name for definition in definitions)

    async with McpServers(servers, on_change=change) as running:
        warnings += [f"MCP server {name}: {problem}" for name, problem in running.problems.items()]
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
        yield Toolbox(registry=registry, handler=handler, files=files, warnings=tuple(warnings))


_WRITING_TOOLS = frozenset({"write_file", "edit_file", "restore_backup"})
# Only at the end of the text: it begins with a file name, which may itself look like `(backup …)`.
_BACKUP_ID = re.compile(r"\(backup (\d{20}-[0-9a-f]{8})\)\Z")


def restore_files(files: FileTools, turn: Sequence[Message]) -> list[str]:
    """Restore each file to its state before its first change in the turn; return one line per file."""
    lines: list[str] = []
    done: set[str] = set()
    for backup in backup_ids(turn):
        try:
            path = files.backups.load(backup)[0].path
            if path not in done:
                done.add(path)
                lines.append(files.restore_backup({"id": backup}, Context(caller="undo")))
        except ToolError as error:
            lines.append(f"not restored: {error}")
    return lines


def backup_ids(turn: Sequence[Message]) -> list[str]:
    """Return the backup ids in successful results of the tools that write files, oldest first."""
    results = [part for message in turn for part in message.parts if isinstance(part, ToolResult)]
    own = [one for one in results if one.name in _WRITING_TOOLS and not one.is_error]
    texts = [part.text for one in own for part in one.content if isinstance(part, Text)]
    return [found for text in texts for found in _BACKUP_ID.findall(text)]
