"""The file tools of one project: their schemas as declared to the model, and `FileTools`, which implements them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from dragoman.ir import Text
from dragoman.tools.definition import Context, Risk, ToolDefinition, ToolOutput
from dragoman.tools.errors import ToolError, ToolFailed
from dragoman.tools.fs.backups import Backup, Backups
from dragoman.tools.fs.glob import Glob
from dragoman.tools.fs.limits import FileLimits, FileRateLimiter
from dragoman.tools.fs.read import UTF8, LineRange, detect_encoding, read_text
from dragoman.tools.fs.ripgrep import find_ripgrep, ripgrep_engine
from dragoman.tools.fs.sandbox import Sandbox, translate_os_errors
from dragoman.tools.fs.search import SearchQuery, python_engine, search
from dragoman.tools.fs.tree import ListingFilter, list_tree
from dragoman.tools.fs.write import ContentChange, FileWriter, WriteResult, edit_bytes

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


Args = dict[str, Any]
_DEFAULTS = FileLimits()


def file_tools(root: Path, *, limits: FileLimits = _DEFAULTS) -> list[ToolDefinition]:
    """Return the file tools of one project, confined to its root directory."""
    return FileTools(root, limits=limits).definitions()


class FileTools:
    """The implementation of the file tools; the agent's `/undo` and tests call it directly.

    Searches use ripgrep if it is installed. The constructor creates the state folder for the backups.
    """

    def __init__(
        self, root: Path, *, limits: FileLimits = _DEFAULTS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        state = limits.state_folder
        with translate_os_errors(str(state)):
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.sandbox = Sandbox(root, secrets=limits.secrets, closed=(state,))
        self.backups = Backups(state, self.sandbox.root, kept=limits.backups_kept)
        self._meter = FileRateLimiter(limits, clock)
        self._writer = FileWriter(self.sandbox, self.backups, self._meter)
        program = find_ripgrep(self.sandbox)
        self.engine = ripgrep_engine(program) if program else python_engine

    def definitions(self) -> list[ToolDefinition]:
        return [
            self._define("list_files", self.list_files, "read"),
            self._define("read_file", self.read_file, "read"),
            self._define("write_file", self.write_file, "write", self._preview(change_for_write)),
            self._define("edit_file", self.edit_file, "write", self._preview(change_for_edit)),
            self._define("search_files", self.search_files, "read"),
            self._define("list_backups", self.list_backups, "read"),
            self._define("restore_backup", self.restore_backup, "write", self._preview_restore),
        ]

    def list_files(self, args: Args, context: Context) -> Any:
        self._meter.count_read(context.session)
        limit = args.get("limit", 1000)
        wanted = ListingFilter(
            glob=Glob(args.get("pattern") or "**/*"),
            include_ignored=args.get("include_ignored", False),
            limit=limit + 1,
        )
        found = [_printable(path) for path in list_tree(self.sandbox, args.get("path") or ".", wanted)]
        if len(found) <= limit:
            return found
        note = f"only the first {limit} files are listed: a pattern or a path would narrow it"
        return {"output": found[:limit], "note": note}

    def read_file(self, args: Args, context: Context) -> Any:
        self._meter.count_read(context.session)
        wanted = LineRange(offset=args.get("offset", 1), limit=args.get("limit"))
        excerpt = read_text(
            self.sandbox,
            args["path"],
            wanted,
            max_bytes=self.limits.max_read_bytes,
            numbered=args.get("line_numbers", False),
        )
        return _with_note(excerpt.text, excerpt.note)

    def write_file(self, args: Args, context: Context) -> str:
        parents = args.get("create_parents", True)
        change = change_for_write(args)
        return _describe_write(
            self._writer.write(args["path"], change, context, tool="write_file", create_parents=parents)
        )

    def edit_file(self, args: Args, context: Context) -> str:
        return _describe_write(
            self._writer.write(args["path"], change_for_edit(args), context, tool="edit_file")
        )

    async def search_files(self, args: Args, context: Context) -> Any:
        self._meter.count_read(context.session)
        query = SearchQuery(
            pattern=args["pattern"],
            path=args.get("path") or ".",
            glob=args.get("glob") or "**/*",
            max_results=args.get("max_results", 100),
            include_ignored=args.get("include_ignored", False),
            max_file_bytes=self.limits.max_read_bytes,
        )
        found = await search(self.sandbox, query, self.engine, timeout_s=self.limits.search_s)
        return _with_note("\n".join(map(str, found.hits)) or "nothing was found", found.note)

    def list_backups(self, args: Args, context: Context) -> list[Backup]:
        self._meter.count_read(context.session)
        path = args.get("path")
        return self.backups.entries(self.sandbox.resolve(path) if path else "")

    def restore_backup(self, args: Args, context: Context) -> str:
        return _describe_write(self._writer.restore(args["id"], context))

    def _define(
        self,
        name: str,
        execute: Callable[[Args, Context], Any],
        risk: Risk,
        preview: Callable[[Args], str] | None = None,
    ) -> ToolDefinition:
        spec = TOOL_SPECS[name]
        return ToolDefinition(
            name=name,
            description=spec.description,
            schema=spec.schema,
            execute=execute,
            risk=risk,
            subject=self._subject,
            preview=preview,
        )

    def _subject(self, args: Args) -> str:
        """Return the path of a call with symlinks resolved, so that a link cannot bypass a rule for `secret/**`."""
        try:
            path = self.backups.load(args["id"])[0].path if "id" in args else args.get("path") or "."
            return self.sandbox.resolve(path)
        except ToolError:
            return str(args.get("path") or args.get("id"))

    def _preview(self, change: Callable[[Args], ContentChange]) -> Callable[[Args], str]:
        return lambda args: self._writer.preview(args["path"], change(args))

    def _preview_restore(self, args: Args) -> str:
        try:
            head, content = self.backups.load(args["id"])
        except ToolError as error:
            return f"this call will not succeed: {error}\n"
        if content is None:
            return f"{head.path} is removed: it did not exist before\n"
        return self._writer.preview(head.path, lambda _: content)


def change_for_write(args: Args) -> ContentChange:
    """Return the change that a `write_file` call makes: overwrite or append."""
    content = args["content"]
    if args.get("mode", "overwrite") == "overwrite":
        return lambda _: UTF8.encode(content)
    return lambda old: _appended(old or b"", content)


def change_for_edit(args: Args) -> ContentChange:
    """Return the change that an `edit_file` call makes."""

    def change(old: bytes | None) -> bytes:
        if old is None:
            raise ToolFailed("no such file or directory", where=args["path"])
        return edit_bytes(old, args["old"], args["new"], replace_all=args.get("replace_all", False))

    return change


def _appended(old: bytes, content: str) -> bytes:
    encoding = detect_encoding(old)
    if encoding is None:
        raise ToolFailed("the file is binary: text cannot be appended")
    return old + encoding.encode(content, bom=False)


def _describe_write(written: WriteResult) -> str:
    if not written.backup:
        return f"{written.path} has this content already: nothing was written"
    if not written.size_bytes and not written.created:
        return f"{written.path} is empty or gone now (backup {written.backup})"
    done = "created" if written.created else "written"
    return f"{written.path} {done}, {written.size_bytes:,} bytes (backup {written.backup})"


def _with_note(text: str, note: str) -> Any:
    return ToolOutput(content=(Text(text=text), Text(text=f"[{note}]"))) if note else text


def _printable(path: str) -> str:
    """Make a file name that is not valid UTF-8 printable; the result cannot be used to open the file."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
