"""Change files: edit text, show a unified diff, save a backup of the old content, then replace atomically."""

from __future__ import annotations

import difflib
import os
import re
import threading
from collections.abc import Callable

import msgspec

from dragoman.tools.definition import Context
from dragoman.tools.errors import ToolError, ToolFailed
from dragoman.tools.fs.backups import Backups
from dragoman.tools.fs.limits import FileRateLimiter
from dragoman.tools.fs.read import describe_binary, detect_encoding
from dragoman.tools.fs.sandbox import Sandbox, SandboxEntry, printable_path, remove_stale_drafts, replace_file

_DIFF_CONTEXT_LINES = 3
_MAX_DIFF_LINES = 4000  # of the changed part: difflib takes quadratic time, and longer diffs are not readable
_HUNK = re.compile(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def unified_diff(path: str, old: str | None, new: str) -> str:
    """Return the diff, or "" if nothing changes; `old` is None for a file that does not exist.

    The equal beginning and end are cut off before difflib compares the rest.
    """
    before, after = (old or "").splitlines(keepends=True), new.splitlines(keepends=True)
    if old is not None and before == after:
        return ""
    source = f"a/{path}" if old is not None else "/dev/null"
    head = _count_equal_lines(before, after)
    tail = _count_equal_lines(before[head:][::-1], after[head:][::-1])
    start = max(0, head - _DIFF_CONTEXT_LINES)
    before = before[start : len(before) - max(0, tail - _DIFF_CONTEXT_LINES)]
    after = after[start : len(after) - max(0, tail - _DIFF_CONTEXT_LINES)]
    if len(before) + len(after) > _MAX_DIFF_LINES:
        return f"--- {source}\n+++ b/{path}\n{len(before)} lines become {len(after)}: too many to show\n"
    lines = difflib.unified_diff(before, after, source, f"b/{path}", n=_DIFF_CONTEXT_LINES)
    return (
        "".join(_with_newline(_shift_hunk(line, start)) for line in lines) or f"--- {source}\n+++ b/{path}\n"
    )


def _count_equal_lines(one: list[str], other: list[str]) -> int:
    """Return how many lines at the beginning are equal."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _shift_hunk(line: str, by: int) -> str:
    found = _HUNK.match(line)
    if not found:
        return line
    return f"@@ -{int(found[1]) + by}{found[2]} +{int(found[3]) + by}{found[4]} @@{line[found.end() :]}"


def _with_newline(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


_MAX_PLACES = 10
_MAX_COMPARED_LINES = 5000
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\'": "'", r"\\": "\\"}


def edit_bytes(data: bytes, old: str, new: str, *, replace_all: bool) -> bytes:
    """Return the file with `old` replaced, in its own encoding and with its own line endings.

    Raises `ToolFailed` for binary data, for bytes that do not survive decoding, and as `edit_text` does.
    """
    encoding = detect_encoding(data)
    if encoding is None:
        raise ToolFailed(f"it {describe_binary(data)} and cannot be edited as text")
    text = encoding.decode(data)
    if encoding.encode(text) != data:
        raise ToolFailed(f"it is no sound {encoding.name}: an edit would damage the rest of it")
    return encoding.encode(edit_text(text, old, new, replace_all=replace_all))


def edit_text(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    """Return the text with `old` replaced; raise `ToolFailed` unless it occurs once, or `replace_all` is set."""
    if not old:
        raise ToolFailed("old is empty: give the text to replace, or use write_file for a new file")
    if old == new:
        raise ToolFailed("old and new are the same: nothing would change")
    if old not in text and "\r\n" in text and "\r" not in old:
        # Models write \n; in a file with \r\n line ends the edit is made with \r\n.
        crlf_old, crlf_new = (part.replace("\n", "\r\n") for part in (old, new))
        if crlf_old in text:
            old, new = crlf_old, crlf_new
    places = text.count(old)
    if places == 0:
        raise ToolFailed(f"old was not found in the file{_explain_missing_text(text, old)}")
    if places > 1 and not replace_all:
        lines = _lines_of(text, old)
        raise ToolFailed(
            f"old was found {places} times (lines {', '.join(map(str, lines))}"
            f"{', …' if places > len(lines) else ''}): give more of the text around it, or set replace_all"
        )
    return text.replace(old, new)


def _lines_of(text: str, old: str) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < _MAX_PLACES:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return found


def _explain_missing_text(text: str, old: str) -> str:
    """Return a hint where the intended text probably is, or ""."""
    plain = re.sub(r"\\[nt\"'\\]", lambda found: _ESCAPES[found[0]], old)
    if plain != old and text.count(plain) == 1:  # known problem P2: only reported, never repaired silently
        return f": without its backslash escapes it is at line {_lines_of(text, plain)[0]}"
    lines = text.splitlines()[:_MAX_COMPARED_LINES]
    wanted = [line for line in old.splitlines() if line.strip()]
    if not wanted:
        return ""
    loose = [" ".join(line.split()) for line in lines]
    first = " ".join(wanted[0].split())
    if first in loose:
        number = loose.index(first)
        why = "the line is there, what follows differs" if wanted[0] in lines else "only the spaces differ"
        return f": line {number + 1} is {lines[number]!r} ({why})"
    near = difflib.get_close_matches(wanted[0], lines, n=1, cutoff=0.6)
    return f": line {lines.index(near[0]) + 1} is similar: {near[0]!r}" if near else ""


_MAX_OLD_BYTES = 64 * 1024 * 1024  # limit for a file that must be read for its backup

#: Returns the new content for the old one, which is None if there is no file yet.
ContentChange = Callable[[bytes | None], bytes]


class WriteResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a write did; `backup` is the id of the backup of the old content."""

    path: str
    created: bool
    size_bytes: int
    backup: str  # empty if nothing changed


class FileWriter:
    """Performs all writes of one project, one at a time, so that concurrent edits of a file do not get lost."""

    def __init__(self, sandbox: Sandbox, backups: Backups, meter: FileRateLimiter) -> None:
        self._sandbox = sandbox
        self._backups = backups
        self._meter = meter
        self._lock = threading.Lock()
        self._swept: set[tuple[int, int]] = set()

    def write(
        self,
        path: str,
        change: ContentChange,
        context: Context,
        *,
        tool: str,
        create_parents: bool = False,
        mode: int | None = None,
    ) -> WriteResult:
        """Apply a change to a file, after saving a backup.

        `mode` sets the permissions of a new file; an existing file keeps its own. Raises `ToolRefused` if a limit
        is exceeded and `ToolFailed` if the file was changed by another program meanwhile.
        """
        with self._lock, self._sandbox.open_entry(path, create_parents=create_parents) as entry:
            old, status = _read_current(entry)
            new = change(old)
            self._meter.count_write(context.session, len(new))
            if new == old:
                return WriteResult(path=entry.path, created=False, size_bytes=len(new), backup="")
            before = status.st_mode if status else 0
            backup = self._backups.save(entry.path, old, mode=before, session=context.session, tool=tool)
            self._sweep_once(entry.folder)
            _must_be_unchanged(entry, status)
            replace_file(entry, new, like=status, mode=mode)
            return WriteResult(path=entry.path, created=old is None, size_bytes=len(new), backup=backup)

    def restore(self, backup: str, context: Context) -> WriteResult:
        """Restore a file from a backup, or remove it if it did not exist; the current content is backed up first."""
        head, content = self._backups.load(backup)
        if content is not None:
            return self.write(
                head.path,
                lambda _: content,
                context,
                tool="restore_backup",
                create_parents=True,
                mode=head.mode,
            )
        with self._lock, self._sandbox.open_entry(head.path) as entry:
            old, status = _read_current(entry)
            if old is None or status is None:
                raise ToolFailed("the file is already gone", where=entry.path)
            self._meter.count_write(context.session, 0)
            kept = self._backups.save(
                entry.path, old, mode=status.st_mode, session=context.session, tool="restore_backup"
            )
            entry.remove()
            return WriteResult(path=entry.path, created=False, size_bytes=0, backup=kept)

    def preview(self, path: str, change: ContentChange) -> str:
        """Return a diff of what a write would change, or the reason why it would fail."""
        try:
            try:
                with self._sandbox.open_entry(path) as entry:
                    old, real = _read_current(entry)[0], entry.path
            except ToolFailed:  # parent folders that do not exist yet
                old, real = None, path
            new = change(old)
        except ToolError as error:
            return f"this call will not succeed: {error}\n"
        return _describe_change(real, old, new)

    def _sweep_once(self, folder: int) -> None:
        status = os.fstat(folder)
        known = (status.st_dev, status.st_ino)
        if known not in self._swept:
            self._swept.add(known)
            remove_stale_drafts(folder)


def _read_current(entry: SandboxEntry) -> tuple[bytes | None, os.stat_result | None]:
    return (None, None) if entry.status() is None else entry.read(_MAX_OLD_BYTES)


def _must_be_unchanged(entry: SandboxEntry, before: os.stat_result | None) -> None:
    """Raise `ToolFailed` if another program has changed the file since it was read."""
    now = entry.status()
    if _version(now) != _version(before):
        raise ToolFailed("the file was changed by somebody else just now: read it again", where=entry.path)


def _version(status: os.stat_result | None) -> tuple[int, ...] | None:
    return status and (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def _describe_change(path: str, old: bytes | None, new: bytes) -> str:
    path = printable_path(path)
    before, after = None if old is None else _as_text(old), _as_text(new)
    was = f" {describe_binary(old)} of {len(old)} bytes and" if old is not None and before is None else ""
    if after is None:
        return f"{path}{was} becomes {len(new)} bytes\n"
    lead = f"{path}{was} becomes text\n" if was else ""
    return lead + (unified_diff(path, before, after) or f"{path}: nothing changes\n")


def _as_text(data: bytes) -> str | None:
    """Return the content as text for a preview, or None if it is not text.

    Data that `detect` takes for binary is still shown if it is valid UTF-8: a NUL or `GIF8` at the start must not
    hide a script from the person who approves it.
    """
    encoding = detect_encoding(data)
    if encoding is not None:
        return encoding.decode(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
