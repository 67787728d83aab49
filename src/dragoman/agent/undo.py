"""Take the file changes of a turn back, from the backups that the tools named in their results."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.ir import Message, Text, ToolResult
from dragoman.tools.definition import Context
from dragoman.tools.errors import ToolError
from dragoman.tools.fs import Files

_WRITERS = frozenset({"write_file", "edit_file", "restore_backup"})
# At the end only: a file may be called `(backup …)`, and the result begins with its name.
_BACKUP = re.compile(r"\(backup (\d{20}-[0-9a-f]{8})\)\Z")


def restore_files(files: Files, turn: Sequence[Message]) -> list[str]:
    """Every file as it was before its first change in the turn; one line for each."""
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
    """Oldest first; only what a tool that writes has said of its own work."""
    results = [part for message in turn for part in message.parts if isinstance(part, ToolResult)]
    own = [one for one in results if one.name in _WRITERS and not one.is_error]
    texts = [part.text for one in own for part in one.content if isinstance(part, Text)]
    return [found for text in texts for found in _BACKUP.findall(text)]
