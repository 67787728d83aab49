"""The ledger of overridden settings, written to the state folder before a user's file is changed."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from dragoman.cli.home import make_home
from dragoman.cli.launch.loans import Loan
from dragoman.cli.launch.places import Original, Place, hold, write_whole
from dragoman.cli.screen import Failure, warn

_FOLDER = "lent"
_LEDGER = "ledger.json"
_LOCK = "lock"
_PATIENCE_S = 20.0


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One file or table, its original content, and its overridden keys."""

    place: Place
    original: Original
    loans: dict[str, Loan]


class Ledger:
    """The entries by path; only one process at a time has the ledger open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.entries = self._load()

    def save(self) -> None:
        if self.entries:
            content = msgspec.json.encode(list(self.entries.values()))
            write_whole(self._folder / _LEDGER, content, 0o600)
        else:
            (self._folder / _LEDGER).unlink(missing_ok=True)

    def is_gone(self, by: str) -> bool:
        """Return whether this launcher has ended: the operating system releases its lock in any case."""
        file = self._folder / f"{by}.run"
        try:
            descriptor = hold(file, patience_s=0)
        except FileNotFoundError:
            return True
        if descriptor is None:
            return False
        file.unlink(missing_ok=True)
        os.close(descriptor)
        return True

    def _load(self) -> dict[str, Entry]:
        file = self._folder / _LEDGER
        try:
            entries = msgspec.json.decode(file.read_bytes(), type=list[Entry])
        except FileNotFoundError:
            return {}
        except msgspec.DecodeError:
            aside = file.with_suffix(".damaged")
            file.replace(aside)
            warn(f"what was lent of a client's settings cannot be read any more; see {aside}")
            return {}
        return {entry.place.path: entry for entry in entries}


def has_ledger(home: Path) -> bool:
    return (home / _FOLDER / _LEDGER).exists()


@contextlib.contextmanager
def open_ledger(home: Path) -> Iterator[Ledger]:
    folder = _folder(home)
    lock = folder / _LOCK
    lock.touch(mode=0o600)
    descriptor = hold(lock, patience_s=_PATIENCE_S)
    if descriptor is None:
        raise Failure(f"another launcher keeps {lock}", hint="end it, then start this one again")
    try:
        yield Ledger(folder)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def running(home: Path) -> Iterator[str]:
    """Yield an id for this launcher and hold its lock, which shows the others that it is running."""
    by = secrets.token_hex(8)
    file = _folder(home) / f"{by}.run"
    file.touch(mode=0o600)
    descriptor = hold(file, patience_s=0)
    try:
        yield by
    finally:
        file.unlink(missing_ok=True)
        if descriptor is not None:
            os.close(descriptor)


def _folder(home: Path) -> Path:
    folder = make_home(home) / _FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
