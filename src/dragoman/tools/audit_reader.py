"""Read the audit log: the last entries across rotated files, and new entries as they are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from dragoman.tools.audit import AuditEntry

EntryFilter = Callable[[AuditEntry], bool]


def log_files(path: Path) -> list[Path]:
    """Return the existing files of a log, newest first."""
    found = [
        (int(suffix), one)
        for one in path.parent.glob(f"{path.name}.*")
        if (suffix := one.name.removeprefix(f"{path.name}.")).isdecimal()
    ]
    aside = [one for _, one in sorted(found)]
    return [path, *aside] if path.exists() else aside


def last_entries(path: Path, wanted: EntryFilter, count: int) -> tuple[list[AuditEntry], int]:
    """Return the last `count` matching entries, oldest first, and how many damaged lines were skipped."""
    found: list[AuditEntry] = []
    damaged = 0
    for line in _lines_backwards(path):
        if len(found) == count:
            break
        entry = decode_entry(line)
        if entry is None:
            damaged += 1
        elif wanted(entry):
            found.append(entry)
    return found[::-1], damaged


def decode_entry(line: bytes) -> AuditEntry | None:
    """Decode a line; return None if it is damaged."""
    try:
        return msgspec.json.decode(line, type=AuditEntry)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


class AuditFollower:
    """Follows a log: `feed()` returns the entries written since the last call, also across a rotation."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = self._open()
        self._rest = b""
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def read_new(self) -> list[AuditEntry]:
        entries = self._read()
        if self._moved():
            entries += self._read()  # written between the first read and the rotation
            self.close()
            self._file = self._open()
            entries += self._read()
        return entries

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file, self._rest = None, b""

    def _read(self) -> list[AuditEntry]:
        if self._file is None:
            return []
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [entry for entry in map(decode_entry, lines) if entry is not None]

    def _moved(self) -> bool:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            return False
        return self._file is None or os.fstat(self._file.fileno()).st_ino != there.st_ino

    def _open(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None


def _lines_backwards(path: Path) -> Iterator[bytes]:
    for file in log_files(path):
        yield from reversed(file.read_bytes().splitlines())
