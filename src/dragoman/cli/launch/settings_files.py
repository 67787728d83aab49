"""Files in which a client keeps its settings: a JSON file, or a table in a SQLite database."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
import sqlite3
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from dragoman.cli.launch.settings_overrides import ABSENT, apply_changes

if sys.platform != "win32":  # settings are not overridden on Windows (see apply_overrides)
    import fcntl

_LOCK_TIMEOUT_S = 5.0
_EMPTY_FILE_WAIT_S = 0.5
_POLL_S = 0.02
_PRIVATE_MODE = 0o600


class SettingsFileError(Exception):
    """A file of the client cannot be read or changed; it was not touched."""


class SettingsFileMissing(SettingsFileError):
    """The file does not exist: there is nothing to set or to restore."""


class OriginalFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a file when it was first changed, so that it can be restored byte for byte."""

    text: str = ""
    mode: int = 0  # 0 if the file did not exist


class CurrentSettings(msgspec.Struct, frozen=True, kw_only=True):
    values: Mapping[str, Any]
    original: OriginalFile = OriginalFile()


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True):
    """Values to write; `restore` is set for the last change, which restores the file."""

    values: Mapping[str, Any]
    restore: OriginalFile | None = None


Document = dict[str, msgspec.Raw]
#: Maps the current content to the change, while the file is locked.
DecideChange = Callable[[CurrentSettings], SettingsChange]


class JsonSettingsFile(msgspec.Struct, frozen=True, kw_only=True, tag="json"):
    """Top-level keys of a JSON object; `lock` is the file that the client itself locks for writing."""

    path: str
    lock: str

    def update(self, keys: list[str], decide: DecideChange) -> None:
        file = Path(self.path)
        try:
            file = file.resolve()  # keep a symbolic link, for example into a dotfiles repository
            with _locked(Path(self.lock)):
                text, current = _read(file, keys)
                change = decide(current)
                if change.values or (change.restore and file.exists()):
                    _rewrite(file, text, current.original, change)
        except OSError as error:
            raise SettingsFileError(f"{file}: {error.strerror}") from None


class AuthKvTable(msgspec.Struct, frozen=True, kw_only=True, tag="auth_kv"):
    """The `auth_kv` table of Amazon Q, which stores its login."""

    path: str

    def update(self, keys: list[str], decide: DecideChange) -> None:
        if not Path(self.path).exists():
            raise SettingsFileMissing(f"there is no {self.path}")
        address = f"{Path(self.path).absolute().as_uri()}?mode=rw"
        try:
            with contextlib.closing(sqlite3.connect(address, uri=True, timeout=_LOCK_TIMEOUT_S)) as database:
                database.isolation_level = None
                database.execute("BEGIN IMMEDIATE")
                change = decide(CurrentSettings(values=_rows(database, keys)))
                for key, value in change.values.items():
                    if value is ABSENT:
                        database.execute("DELETE FROM auth_kv WHERE key = ?", (key,))
                    else:
                        database.execute("REPLACE INTO auth_kv (key, value) VALUES (?, ?)", (key, value))
                database.execute("COMMIT")
        except sqlite3.Error as error:
            raise SettingsFileError(f"{self.path}: {error}") from None


SettingsFile = JsonSettingsFile | AuthKvTable


def _rows(database: sqlite3.Connection, keys: list[str]) -> dict[str, Any]:
    query = "SELECT value FROM auth_kv WHERE key = ?"
    current = {key: database.execute(query, (key,)).fetchone() for key in keys}
    return {key: row[0] for key, row in current.items() if row is not None}


def write_atomically(file: Path, content: bytes, mode: int) -> None:
    """Replace the file atomically and sync it to disk.

    Callers hold a lock, so earlier drafts are leftovers and are deleted.
    """
    stem = f".{file.name}.dragoman-"
    for leftover in file.parent.glob(f"{glob.escape(stem)}*"):
        leftover.unlink(missing_ok=True)
    draft = file.parent / f"{stem}{secrets.token_hex(8)}"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _PRIVATE_MODE)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            _copy_owner(stream.fileno(), file)
            os.fchmod(stream.fileno(), mode)
            os.fsync(stream.fileno())
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _copy_owner(descriptor: int, file: Path) -> None:
    """Give the new file the owner of the old one, for example when root runs this in a user's home."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        status = file.stat()
        os.fchown(descriptor, status.st_uid, status.st_gid)


def lock_file(file: Path, *, patience_s: float) -> int | None:
    """Return a descriptor that locks the file until it is closed, or None if it stays locked by others."""
    descriptor = os.open(file, os.O_RDWR)  # NFS requires write access for an exclusive lock
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if time.monotonic() >= deadline:
                os.close(descriptor)
                return None
            time.sleep(_POLL_S)


@contextlib.contextmanager
def _locked(lock: Path) -> Iterator[None]:
    """Lock out the client; without a lock file it has never written."""
    if not lock.exists():
        yield
        return
    descriptor = lock_file(lock, patience_s=_LOCK_TIMEOUT_S)
    if descriptor is None:
        raise SettingsFileError(f"{lock} is locked by another program")
    try:
        yield
    finally:
        os.close(descriptor)


def _read(file: Path, keys: list[str]) -> tuple[Document, CurrentSettings]:
    """Return all members as raw JSON, and the values of `keys`."""
    if not file.exists():
        return {}, CurrentSettings(values={})
    original = OriginalFile(text=_read_text(file), mode=stat.S_IMODE(file.stat().st_mode))
    try:
        document = _parse(original.text)
        values = {key: msgspec.json.decode(document[key]) for key in keys if key in document}
    except (msgspec.DecodeError, RecursionError):
        raise SettingsFileError(f"{file} is not a plain JSON object") from None
    return document, CurrentSettings(values=values, original=original)


def _read_text(file: Path) -> str:
    """Read the file; if it is empty wait a moment, as older clients truncate it before they lock it."""
    deadline = time.monotonic() + _EMPTY_FILE_WAIT_S
    while True:
        try:
            text = file.read_text("utf-8")
        except UnicodeDecodeError:
            raise SettingsFileError(f"{file} is not UTF-8 text") from None
        if text.strip() or time.monotonic() > deadline:
            return text
        time.sleep(_POLL_S)


def _parse(text: str) -> Document:
    return msgspec.json.decode(text, type=dict[str, msgspec.Raw])


def _rewrite(file: Path, document: Document, now: OriginalFile, change: SettingsChange) -> None:
    encoded = {
        key: value if value is ABSENT else msgspec.Raw(msgspec.json.encode(value))
        for key, value in change.values.items()
    }
    text, mode = _text_and_mode(apply_changes(document, encoded), now, change)
    if (text, mode) != (now.text, now.mode):
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, text.encode(), mode)


def _text_and_mode(wanted: Document, now: OriginalFile, change: SettingsChange) -> tuple[str, int]:
    """Return the text and mode to write: the original ones if nothing else has changed."""
    text = msgspec.json.format(msgspec.json.encode(wanted), indent=2).decode() if change.values else now.text
    if change.restore is None:
        return text, (now.mode or _PRIVATE_MODE) & _PRIVATE_MODE  # private, because it contains a gateway key
    if change.restore.mode and _is_same(_parse(change.restore.text), wanted, change.values):
        text = change.restore.text
    return text, change.restore.mode or now.mode


def _is_same(before: Document, wanted: Document, values: Mapping[str, Any]) -> bool:
    """Return whether the restored document equals the original; a key that the client changed differs."""
    own = [key for key in values if key in before]
    return (
        before.keys() == wanted.keys()
        and all(msgspec.json.decode(before[key]) == values[key] for key in own)
        and all(_compact_json(before[key]) == _compact_json(wanted[key]) for key in before if key not in own)
    )


def _compact_json(value: msgspec.Raw) -> bytes:
    return msgspec.json.format(bytes(value), indent=-1)
