"""Override keys in a client's settings while it runs, and restore them afterwards, also after a crash.

The order makes it crash-safe: the override log in the state folder records the original before a file is changed,
and drops it after the file is restored. If a launcher is killed in between, the next one restores from the log.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import msgspec

from dragoman.cli.launch.client import SettingsEdit
from dragoman.cli.launch.foreground import signal_handlers
from dragoman.cli.launch.settings_files import (
    CurrentSettings,
    OriginalFile,
    SettingsChange,
    SettingsFile,
    SettingsFileError,
    SettingsFileMissing,
    lock_file,
    write_atomically,
)
from dragoman.cli.launch.settings_overrides import (
    ABSENT,
    OverriddenKey,
    add_override,
    changed_values,
    remove_overrides,
)
from dragoman.cli.settings import make_state_folder
from dragoman.cli.terminal import CommandError, print_note, print_status

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
            print_note(f"the record of overridden client settings is damaged; see {aside}")
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
        raise CommandError(f"another launcher holds {lock}", hint="end it, then start this one again")
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


_POSIX = os.name == "posix"
_TERMINATING_SIGNALS = (signal.SIGTERM, signal.SIGHUP) if _POSIX else (signal.SIGTERM,)
_DEFERRED_SIGNALS = (signal.SIGINT, *_TERMINATING_SIGNALS, *((signal.SIGTSTP,) if _POSIX else ()))


@contextlib.contextmanager
def override_settings(home: Path, edits: tuple[SettingsEdit, ...]) -> Iterator[None]:
    """Apply `edits` for the duration of the block; SIGTERM and SIGHUP end the block as an exception."""
    if not edits:
        yield
        return
    if not _POSIX:
        hint = "start dragoman serve and edit the settings by hand (docs/amazon-q.md)"
        raise CommandError("this client's settings cannot be overridden on this system", hint=hint)
    with register_launcher(home) as by, _raise_on_signal():
        try:
            with _defer_signals(), open_override_log(home) as log:
                for edit in edits:
                    _apply_edit(log, edit, by)
            yield
        finally:
            with _defer_signals(), open_override_log(home) as log:
                _restore(log, by)


def restore_leftovers(home: Path) -> None:
    """Restore what killed launchers have left."""
    if not has_override_log(home):
        return
    with _defer_signals(), open_override_log(home) as log:
        changed = _restore(log)
    if changed:
        print_status(f"an earlier launcher was killed; restored: {', '.join(changed)}")


def _apply_edit(log: OverrideLog, edit: SettingsEdit, by: str) -> None:
    """Record the current values, then set the keys; if several launchers set a key, the latest one wins."""
    path = edit.file.path
    entry = log.entries.get(path)

    def decide(current: CurrentSettings) -> SettingsChange:
        known = entry or OverrideEntry(place=edit.file, original=current.original, loans={})
        wanted = {
            key: value
            for key, value in edit.values.items()
            if not edit.only_missing or _is_unset(known.loans.get(key), current.values.get(key, ABSENT))
        }
        overrides = {
            key: add_override(
                known.loans.get(key, OverriddenKey()), current.values.get(key, ABSENT), by, value
            )
            for key, value in wanted.items()
        }
        if overrides:
            log.entries[path] = msgspec.structs.replace(known, loans=known.loans | overrides)
            log.save()
            if edit.applied_message:
                print_status(edit.applied_message)
        return SettingsChange(
            values={key: value for key, value in wanted.items() if value != current.values.get(key, ABSENT)}
        )

    try:
        edit.file.update(list(edit.values), decide)
    except SettingsFileError as error:
        if not edit.unusable_message:
            hint = "the file was not changed; fix it or move it away, then try again"
            raise CommandError(f"the client cannot be configured: {error}", hint=hint) from None
        print_status(edit.unusable_message)


def _is_unset(overridden: OverriddenKey | None, current: object) -> bool:
    return current is ABSENT or (overridden is not None and current in overridden.put)


def _restore(log: OverrideLog, leaving: str = "") -> list[str]:
    """Restore keys that no running launcher overrides; return the paths of the changed files."""
    changed = []
    for path, entry in list(log.entries.items()):
        overrides = {
            key: remove_overrides(overridden, lambda by: by == leaving or log.is_gone(by))
            for key, overridden in entry.loans.items()
        }
        if overrides == entry.loans:
            continue
        wanted = any(overridden.claims for overridden in overrides.values())
        written = False
        try:
            written = _write_changes(entry, overrides, None if wanted else entry.original)
        except SettingsFileMissing:
            wanted = False
        except SettingsFileError as error:
            print_note(f"{error}; the next start of a launcher restores the original settings")
            continue
        changed += [path] if written else []
        if wanted:
            log.entries[path] = msgspec.structs.replace(entry, loans=overrides)
        else:
            del log.entries[path]
        log.save()
    return changed


def _write_changes(
    entry: OverrideEntry, overrides: dict[str, OverriddenKey], restore: OriginalFile | None
) -> bool:
    written = False

    def decide(current: CurrentSettings) -> SettingsChange:
        nonlocal written
        change = SettingsChange(values=changed_values(overrides, current.values), restore=restore)
        written = bool(change.values)
        return change

    entry.place.update(list(overrides), decide)
    return written


@contextlib.contextmanager
def _defer_signals() -> Iterator[None]:
    """Defer signals until the end of the block: a second Ctrl-C must not interrupt the restore."""
    waiting: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        waiting.append(number)

    try:
        with signal_handlers(dict.fromkeys(_DEFERRED_SIGNALS, wait)):
            yield
    finally:
        for number in waiting:
            signal.raise_signal(number)


@contextlib.contextmanager
def _raise_on_signal() -> Iterator[None]:
    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with signal_handlers(dict.fromkeys(_TERMINATING_SIGNALS, end)):
        yield
