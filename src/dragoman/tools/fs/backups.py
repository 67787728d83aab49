"""Backups of files before they are written, stored outside the project."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from dragoman.tools.errors import ToolFailed
from dragoman.tools.fs.sandbox import SandboxEntry, remove_stale_drafts, replace_file

_ID = re.compile(r"\d{20}-[0-9a-f]{8}")
_SUFFIX = ".backup"


class Backup(msgspec.Struct, frozen=True, kw_only=True):
    """The header of a backup file, followed by the old content; `existed` is false if there was no file before."""

    id: str
    path: str
    at_s: float
    session: str
    tool: str
    existed: bool
    mode: int
    size_bytes: int


class Backups:
    """The backups of one project root, in its own folder below the state folder.

    Each backup is one file that is written atomically; the oldest beyond `kept` are deleted.
    """

    def __init__(
        self, state: Path, root: Path, *, kept: int = 1000, now: Callable[[], float] = time.time
    ) -> None:
        self.folder = state / "backups" / hashlib.sha256(os.fsencode(root)).hexdigest()[:16]
        self._kept = kept
        self._now = now
        self._swept = False

    def save(self, path: str, content: bytes | None, *, mode: int, session: str, tool: str) -> str:
        """Save a backup, durably, and return its id; `content` is None if there was no file."""
        at_s = self._now()
        head = Backup(
            id=f"{int(at_s * 1e9):020d}-{secrets.token_hex(4)}",
            path=path,
            at_s=at_s,
            session=session,
            tool=tool,
            existed=content is not None,
            mode=mode & 0o777,
            size_bytes=len(content or b""),
        )
        with self._open() as folder:
            entry = SandboxEntry(folder=folder, name=head.id + _SUFFIX, path=head.id)
            replace_file(entry, msgspec.json.encode(head) + b"\n" + (content or b""), mode=0o600)
            self._prune(folder)
        return head.id

    def entries(self, path: str = "") -> list[Backup]:
        """Return the backups, newest first; only those of one file if `path` is given."""
        if not self.folder.is_dir():
            return []
        with self._open() as folder:
            heads = [self._read(folder, backup)[0] for backup in reversed(self._ids(folder))]
        return [head for head in heads if not path or head.path == path]

    def load(self, backup: str) -> tuple[Backup, bytes | None]:
        """Return a backup and the content of the file, None if there was no file. Raise `ToolFailed` if unknown."""
        if not _ID.fullmatch(backup):
            raise ToolFailed("that is no id of a backup", where=repr(backup))
        try:
            with self._open() as folder:
                head, content = self._read(folder, backup)
        except FileNotFoundError:
            raise ToolFailed("there is no such backup", where=backup) from None
        return head, content if head.existed else None

    @contextlib.contextmanager
    def _open(self) -> Iterator[int]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if not self._swept:
                remove_stale_drafts(folder)
                self._swept = True
            yield folder
        finally:
            os.close(folder)

    def _read(self, folder: int, backup: str) -> tuple[Backup, bytes]:
        descriptor = os.open(backup + _SUFFIX, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
        with open(descriptor, "rb") as file:
            head = file.readline()
            return msgspec.json.decode(head, type=Backup), file.read()

    def _ids(self, folder: int) -> list[str]:
        names = (name.removesuffix(_SUFFIX) for name in os.listdir(folder) if name.endswith(_SUFFIX))
        return sorted(filter(_ID.fullmatch, names))

    def _prune(self, folder: int) -> None:
        for backup in self._ids(folder)[: -self._kept]:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(backup + _SUFFIX, dir_fd=folder)
