"""Names, descriptions and schemas of the file tools, as they are declared to the model."""

from __future__ import annotations

from typing import Any

import msgspec

_PATH = "Path relative to the project root, for example src/main.py. No absolute paths, no '..'."


def _string_schema(description: str, **more: Any) -> dict[str, Any]:
    return {"type": "string", "description": description, **more}


def _boolean_schema(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description, "default": False}


def _integer_schema(description: str, maximum: int, **more: Any) -> dict[str, Any]:
    return {"type": "integer", "description": description, "minimum": 1, "maximum": maximum, **more}


def _object_schema(required: str = "", **properties: dict[str, Any]) -> bytes:
    schema = {"type": "object", "properties": properties, "required": required.split()}
    return msgspec.json.encode(schema)


class FileToolSpec(msgspec.Struct, frozen=True):
    """A tool's description and JSON Schema."""

    description: str
    schema: bytes


TOOL_SPECS = {
    "list_files": FileToolSpec(
        "List the files of the project as a JSON array of paths. Files that .gitignore names are left out.",
        _object_schema(
            path=_string_schema("Directory to list, relative to the project root.", default="."),
            pattern=_string_schema(
                "Glob: *.rs (any depth), src/**/*.py, *.{ts,tsx}; relative to path.", default="**/*"
            ),
            include_ignored=_boolean_schema("Also list what .gitignore names."),
            limit=_integer_schema("At most so many paths.", 10_000, default=1000),
        ),
    ),
    "read_file": FileToolSpec(
        "Read a text file of the project, whole or a range of lines. Large files need a range.",
        _object_schema(
            "path",
            path=_string_schema(_PATH),
            offset=_integer_schema("First line to read, counted from 1.", 1_000_000_000),
            limit=_integer_schema("How many lines to read.", 1_000_000_000),
            line_numbers=_boolean_schema("Put its number before each line; leave them out of edit_file."),
        ),
    ),
    "write_file": FileToolSpec(
        "Write a whole file of the project, or append to it. The old content is kept as a backup.",
        _object_schema(
            "path content",
            path=_string_schema(_PATH),
            content=_string_schema("The text to write, exactly."),
            mode={"type": "string", "enum": ["overwrite", "append"], "default": "overwrite"},
            create_parents={
                "type": "boolean",
                "description": "Create folders that are missing.",
                "default": True,
            },
        ),
    ),
    "edit_file": FileToolSpec(
        "Replace an exact piece of text in a file. It must occur exactly once, unless replace_all is set.",
        _object_schema(
            "path old new",
            path=_string_schema(_PATH),
            old=_string_schema("The text to replace, exactly as it is in the file, with its spaces."),
            new=_string_schema("The text to put in its place."),
            replace_all=_boolean_schema("Replace every occurrence."),
        ),
    ),
    "search_files": FileToolSpec(
        "Search the files of the project for a regular expression; answers with path:line:column: text.",
        _object_schema(
            "pattern",
            pattern=_string_schema(
                "Regular expression, matched line by line; (?i) at its start ignores case."
            ),
            path=_string_schema("Directory to search, relative to the project root.", default="."),
            glob=_string_schema("Only files that match, for example *.py or src/**/*.ts.", default="**/*"),
            max_results=_integer_schema("At most so many lines.", 1000, default=100),
            include_ignored=_boolean_schema("Also search what .gitignore names."),
        ),
    ),
    "list_backups": FileToolSpec(
        "List what files were before they were written or edited here, newest first.",
        _object_schema(path=_string_schema("Only backups of this file.")),
    ),
    "restore_backup": FileToolSpec(
        "Put a file back as it was before a write. What it is now is kept as a backup, too.",
        _object_schema("id", id=_string_schema("The id that write_file, edit_file or list_backups gave.")),
    ),
}
