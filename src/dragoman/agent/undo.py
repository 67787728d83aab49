"""Undo the file changes of a turn, using the backup ids in the results of the file tools."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.ir import Message, Text, ToolResult
from dragoman.tools.definition import Context
from dragoman.tools.errors import ToolError
from dragoman.tools.fs import FileTools

_WRITING_TOOLS = frozenset({"write_file", "edit_file", "restore_backup"})
# Only at the end of the text: it begins with a file name, which may itself look like `(backup …)`.
_BACKUP_ID = re.compile(r"\(backup (\d{20}-[0-9a-f]{8})\)\Z")


def restore_files(files: FileTools, turn: Sequence[Message]) -> list[str]:
    """Restore each file to its state before its first change in the turn; return one line per file."""
    said: list[str] = []
    done: set[str] = set()
    for backup in backup_ids(turn):
        try:
            path = files.backups.load(backup)[0].path
            if path not in done:
                done.add(path)
                said.append(files.restore_backup({"id": backup}, Context(caller="undo")))
        except ToolError as error:
            said.append(f"not restored: {error}")
    return said


def backup_ids(turn: Sequence[Message]) -> list[str]:
    """Return the backup ids in successful results of the tools that write files, oldest first."""
    results = [part for message in turn for part in message.parts if isinstance(part, ToolResult)]
    own = [one for one in results if one.name in _WRITING_TOOLS and not one.is_error]
    texts = [part.text for one in own for part in one.content if isinstance(part, Text)]
    return [found for text in texts for found in _BACKUP_ID.findall(text)]
