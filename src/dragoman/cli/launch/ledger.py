"""The ledger of overridden settings, written to the state folder before a user's file is changed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dragoman.cli.home import make_state_folder
from dragoman.cli.launch.loans import OverriddenKey
from dragoman.cli.launch.places import OriginalFile, SettingsFile, lock_file, write_atomically
from dragoman.cli.screen import CommandError, print_note

_FOLDER = "lent"
_LOG_FILE = "ledger.json"
_LOCK_FILE = "lock"
_LOCK_TIMEOUT_S = 20.0


class OverrideEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file or table, its original content, and its overridden keys."""

    place: SettingsFile
    original: OriginalFile
    loans: dict[str, OverriddenKey]


class OverrideLog:
    """The entries by path; only one process at a time has the ledger open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.entries = self._load()

    def save(self) -> None:
        if self.entries:
            content = msgspec.json.encode(list(self.entries.values()))
            write_atomically(self._folder / _LOG_FILE, content, 0o600)
        else:
            (self._folder / _LOG_FILE).unlink(missing_ok=True)

    def is_gone(self, by: str) -> bool:
        """Return whether this launcher has ended: the operating system releases its lock in any case."""
        file = self._folder / f"{by}.run"
        try:
            descriptor = lock_file(file, patience_s=0)
        except FileNotFoundError:
            return True
        if descriptor is None:
            return False
        file.unlink(missing_ok=True)
        os.close(descriptor)
        return True

    def _load(self) -> dict[str, OverrideEntry]:
        file = self._folder / _LOG_FILE
        try:
            entries = msgspec.json.decode(file.read_bytes(), type=list[OverrideEntry])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError:
            aside = file.with_suffix(".damaged")
            file.replace(aside)
            print_note(f"what was lent of a client's settings cannot be read any more; see {aside}")
            return {}
        return {entry.place.path: entry for entry in entries}


def has_override_log(home: Path) -> bool:
    return (home / _FOLDER / _LOG_FILE).exists()


@contextlib.contextmanager
def open_override_log(home: Path) -> Iterator[OverrideLog]:
    folder = _folder(home)
    lock = folder / _LOCK_FILE
    lock.touch(mode=0o600)
    descriptor = lock_file(lock, patience_s=_LOCK_TIMEOUT_S)
    if descriptor is None:
        raise CommandError(f"another launcher keeps {lock}", hint="end it, then start this one again")
    try:
        yield OverrideLog(folder)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def register_launcher(home: Path) -> Iterator[str]:
    """Yield an id for this launcher and hold its lock, which shows the others that it is running."""
    by = secrets.token_hex(8)
    file = _folder(home) / f"{by}.run"
    file.touch(mode=0o600)
    descriptor = lock_file(file, patience_s=0)
    try:
        yield by
    finally:
        file.unlink(missing_ok=True)
        if descriptor is not None:
            os.close(descriptor)


def _folder(home: Path) -> Path:
    folder = make_state_folder(home) / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
