"""Names, descriptions and schemas of the file tools, as they are declared to the model."""

from __future__ import annotations

from typing import Any

import msgspec

_PATH = "Path relative to the project root, for example src/main.py. No absolute paths, no '..'."


def _text(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description, "default": False}


def _count(description: str, maximum: int, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": 1, "maximum": maximum, **more}


def _schema(required: str = "", **properties: dict[str, Any]) -> bytes:
    schema = {"type": "object", "properties": properties, "required": required.split()}
    return msgspec.json.encode(schema)


class Told(msgspec.Struct, frozen=True):
    """A tool's description and JSON Schema."""

    description: str
    schema: bytes


TOLD = {
    "list_files": Told(
        "List the files of the project as a JSON array of paths. Files that .gitignore names are left out.",
        _schema(
            path=_text("Directory to list, relative to the project root.", default="."),
            pattern=_text(
                "Glob: *.rs (any depth), src/**/*.py, *.{ts,tsx}; relative to path.", default="**/*"
            ),
            include_ignored=_flag("Also list what .gitignore names."),
            limit=_count("At most so many paths.", 10_000, default=1000),
        ),
    ),
    "read_file": Told(
        "Read a text file of the project, whole or a range of lines. Large files need a range.",
        _schema(
            "path",
            path=_text(_PATH),
            offset=_count("First line to read, counted from 1.", 1_000_000_000),
            limit=_count("How many lines to read.", 1_000_000_000),
            line_numbers=_flag("Put its number before each line; leave them out of edit_file."),
        ),
    ),
    "write_file": Told(
        "Write a whole file of the project, or append to it. The old content is kept as a backup.",
        _schema(
            "path content",
            path=_text(_PATH),
            content=_text("The text to write, exactly."),
            mode={"type": "string", "enum": ["overwrite", "append"], "default": "overwrite"},
            create_parents={
                "type": "boolean",
                "description": "Create folders that are missing.",
                "default": True,
            },
        ),
    ),
    "edit_file": Told(
        "Replace an exact piece of text in a file. It must occur exactly once, unless replace_all is set.",
        _schema(
            "path old new",
            path=_text(_PATH),
            old=_text("The text to replace, exactly as it is in the file, with its spaces."),
            new=_text("The text to put in its place."),
            replace_all=_flag("Replace every occurrence."),
        ),
    ),
    "search_files": Told(
        "Search the files of the project for a regular expression; answers with path:line:column: text.",
        _schema(
            "pattern",
            pattern=_text("Regular expression, matched line by line; (?i) at its start ignores case."),
            path=_text("Directory to search, relative to the project root.", default="."),
            glob=_text("Only files that match, for example *.py or src/**/*.ts.", default="**/*"),
            max_results=_count("At most so many lines.", 1000, default=100),
            include_ignored=_flag("Also search what .gitignore names."),
        ),
    ),
    "list_backups": Told(
        "List what files were before they were written or edited here, newest first.",
        _schema(path=_text("Only backups of this file.")),
    ),
    "restore_backup": Told(
        "Put a file back as it was before a write. What it is now is kept as a backup, too.",
        _schema("id", id=_text("The id that write_file, edit_file or list_backups gave.")),
    ),
}
