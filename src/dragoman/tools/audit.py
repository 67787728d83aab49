"""The audit log: one JSON line per execution, appended in one write, rotated by size, with secrets redacted.

`AuditLog` writes it; `last_entries` and `AuditFollower` read it, across rotated files and while it is written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec

from dragoman.errors import ConfigError
from dragoman.redact import redact, redact_value
from dragoman.tools.handler import ExecutionRecord

AUDIT_FILE = "audit.jsonl"
MIB = 1024 * 1024
_MAX_ARGUMENT_CHARS = (
    8 * 1024
)  # per argument in a full entry: the content of a written file does not belong in the log
_DIGEST_CHARS = 16


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the log; `args` is only set if the log records full entries."""

    at: datetime
    tool: str
    outcome: str
    allowed: bool
    by: str = ""
    reason: str = ""
    session: str = ""
    caller: str = ""
    request: str = ""
    profile: str = ""
    digest: str = ""
    args: Any = None
    bytes: int = 0
    seconds: float = 0.0
    cached: bool = False
    pid: int = 0


class AuditLog:
    """Appends to a file that only its owner can read.

    Any number of processes may write, because each line is one `O_APPEND` write. A file that would exceed
    `max_bytes` is renamed to `.1`, older ones are renumbered, and `keep` of them stay. The constructor raises
    `ConfigError` if the file cannot be written.
    """

    def __init__(
        self,
        path: Path,
        *,
        detail: Literal["digest", "full"] = "digest",
        max_bytes: int = 16 * MIB,
        keep: int = 8,
        on_loss: Callable[[str], None] | None = None,
    ) -> None:
        self.path = path
        self._full = detail == "full"
        self._max_bytes = max_bytes
        self._keep = keep
        self._on_loss = on_loss
        try:
            os.close(self._open())
        except OSError as error:
            raise ConfigError(f"cannot be written: {error.strerror}", where=str(path)) from None

    def record(self, entry: ExecutionRecord) -> None:
        """Append an entry. On a write error call `on_loss` with a message, or raise `OSError` if there is none."""
        line = msgspec.json.encode(self._entry(entry)) + b"\n"
        try:
            self._append(line)
        except OSError as error:
            if self._on_loss is None:
                raise
            self._on_loss(f"{self.path}: an execution of {entry.tool} was not logged: {error.strerror}")

    def _entry(self, entry: ExecutionRecord) -> AuditEntry:
        return AuditEntry(
            at=datetime.fromtimestamp(round(entry.at_s, 3), UTC),
            tool=entry.tool,
            outcome=entry.outcome,
            allowed=entry.decision.allowed,
            by=redact(entry.decision.by),
            reason=redact(entry.decision.reason),
            session=entry.session,
            caller=entry.caller or f"uid {os.getuid()}",
            request=entry.request,
            profile=entry.profile,
            digest=hashlib.sha256(entry.args).hexdigest()[:_DIGEST_CHARS],
            args=_arguments(entry.args) if self._full else None,
            bytes=entry.result_bytes,
            seconds=round(entry.duration_s, 4),
            cached=entry.cached,
            pid=os.getpid(),
        )

    def _append(self, line: bytes) -> None:
        if not self._fits(line):
            self._rotate(line)
        descriptor = self._open()
        try:
            if os.write(descriptor, line) < len(line):
                os.write(descriptor, b"\n")  # end the partial line, so that the next entry starts a new one
                raise OSError(0, "the disk took only a part of it")
        finally:
            os.close(descriptor)

    def _fits(self, line: bytes) -> bool:
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return True
        return not size or size + len(line) <= self._max_bytes

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        return os.open(self.path, flags, 0o600)

    def _rotate(self, line: bytes) -> None:
        """Rotate the files under a lock; a process that waited for the lock finds it done.

        A writer that has already opened the old file still appends to it under its new name.
        """
        with _locked(self.path.with_name(self.path.name + ".lock")):
            if self._fits(line):
                return
            for number in range(self._keep - 1, 0, -1):
                with contextlib.suppress(FileNotFoundError):
                    rotated_path(self.path, number).replace(rotated_path(self.path, number + 1))
            self.path.replace(rotated_path(self.path, 1))


def rotated_path(path: Path, number: int) -> Path:
    """Return the name of a rotated file; number 1 is the newest."""
    return path.with_name(f"{path.name}.{number}")


def _arguments(args: bytes) -> Any:
    try:
        return redact_value(msgspec.json.decode(args), max_text=_MAX_ARGUMENT_CHARS)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return redact(args[:_MAX_ARGUMENT_CHARS].decode(errors="replace"))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
