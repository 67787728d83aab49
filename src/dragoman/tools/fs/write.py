"""Change files: save a backup of the old content, then replace it atomically."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import msgspec

from dragoman.tools.definition import Context
from dragoman.tools.errors import ToolError, ToolFailed
from dragoman.tools.fs.backups import Backups
from dragoman.tools.fs.diff import unified_diff
from dragoman.tools.fs.limits import FileRateLimiter
from dragoman.tools.fs.text import describe_binary, detect_encoding
from dragoman.tools.sandbox import Sandbox, SandboxEntry, remove_stale_drafts, replace_file
from dragoman.tools.sandbox.names import printable_path

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
        with self._lock, self._sandbox.open_entry(path, create_parents=create_parents) as place:
            old, status = _read_current(place)
            new = change(old)
            self._meter.count_write(context.session, len(new))
            if new == old:
                return WriteResult(path=place.path, created=False, size_bytes=len(new), backup="")
            before = status.st_mode if status else 0
            backup = self._backups.save(place.path, old, mode=before, session=context.session, tool=tool)
            self._sweep_once(place.folder)
            _must_be_unchanged(place, status)
            replace_file(place, new, like=status, mode=mode)
            return WriteResult(path=place.path, created=old is None, size_bytes=len(new), backup=backup)

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
        with self._lock, self._sandbox.open_entry(head.path) as place:
            old, status = _read_current(place)
            if old is None or status is None:
                raise ToolFailed("the file is already gone", where=place.path)
            self._meter.count_write(context.session, 0)
            kept = self._backups.save(
                place.path, old, mode=status.st_mode, session=context.session, tool="restore_backup"
            )
            place.remove()
            return WriteResult(path=place.path, created=False, size_bytes=0, backup=kept)

    def preview(self, path: str, change: ContentChange) -> str:
        """Return a diff of what a write would change, or the reason why it would fail."""
        try:
            try:
                with self._sandbox.open_entry(path) as place:
                    old, real = _read_current(place)[0], place.path
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


def _read_current(place: SandboxEntry) -> tuple[bytes | None, os.stat_result | None]:
    return (None, None) if place.status() is None else place.read(_MAX_OLD_BYTES)


def _must_be_unchanged(place: SandboxEntry, before: os.stat_result | None) -> None:
    """Raise `ToolFailed` if another program has changed the file since it was read."""
    now = place.status()
    if _version(now) != _version(before):
        raise ToolFailed("the file was changed by somebody else just now: read it again", where=place.path)


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
