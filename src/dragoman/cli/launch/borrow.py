"""Override keys in a client's settings while it runs, and restore them afterwards, also after a crash.

The order makes it crash-safe: the ledger records the original before a file is changed, and drops it after
the file is restored. If a launcher is killed in between, the next one restores from the ledger.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import msgspec

from dragoman.cli.foreground import handling
from dragoman.cli.launch.client import Edit
from dragoman.cli.launch.ledger import Entry, Ledger, has_ledger, open_ledger, running
from dragoman.cli.launch.loans import ABSENT, Loan, changes, claim, release
from dragoman.cli.launch.places import Change, Found, Missing, Original, Unusable
from dragoman.cli.screen import Failure, remark, warn

_POSIX = os.name == "posix"
_TERMINATING_SIGNALS = (signal.SIGTERM, signal.SIGHUP) if _POSIX else (signal.SIGTERM,)
_DEFERRED_SIGNALS = (signal.SIGINT, *_TERMINATING_SIGNALS, *((signal.SIGTSTP,) if _POSIX else ()))


@contextlib.contextmanager
def borrowed(home: Path, edits: tuple[Edit, ...]) -> Iterator[None]:
    """Apply `edits` for the duration of the block; SIGTERM and SIGHUP end the block as an exception."""
    if not edits:
        yield
        return
    if not _POSIX:
        hint = "set it by hand as docs/amazon-q.md says, with dragoman serve"
        raise Failure("this client's settings cannot be lent on this system", hint=hint)
    with running(home) as by, _ended_by_exception():
        try:
            with _signals_deferred(), open_ledger(home) as ledger:
                for edit in edits:
                    _apply_edit(ledger, edit, by)
            yield
        finally:
            with _signals_deferred(), open_ledger(home) as ledger:
                _restore(ledger, by)


def repair(home: Path) -> None:
    """Restore what killed launchers have left."""
    if not has_ledger(home):
        return
    with _signals_deferred(), open_ledger(home) as ledger:
        changed = _restore(ledger)
    if changed:
        remark(f"an earlier run was cut off; put back as it was: {', '.join(changed)}")


def _apply_edit(ledger: Ledger, edit: Edit, by: str) -> None:
    """Record the current values, then set the keys; if several launchers set a key, the latest one wins."""
    path = edit.place.path
    entry = ledger.entries.get(path)

    def decide(found: Found) -> Change:
        known = entry or Entry(place=edit.place, original=found.original, loans={})
        wanted = {
            key: value
            for key, value in edit.values.items()
            if not edit.only_missing or _is_free(known.loans.get(key), found.values.get(key, ABSENT))
        }
        loans = {
            key: claim(known.loans.get(key, Loan()), found.values.get(key, ABSENT), by, value)
            for key, value in wanted.items()
        }
        if loans:
            ledger.entries[path] = msgspec.structs.replace(known, loans=known.loans | loans)
            ledger.save()
            if edit.when_put:
                remark(edit.when_put)
        return Change(
            values={key: value for key, value in wanted.items() if value != found.values.get(key, ABSENT)}
        )

    try:
        edit.place.update(list(edit.values), decide)
    except Unusable as error:
        if not edit.otherwise:
            hint = "it was left alone; mend it or move it away, then start this again"
            raise Failure(f"the client cannot be pointed here: {error}", hint=hint) from None
        remark(edit.otherwise)


def _is_free(loan: Loan | None, current: object) -> bool:
    return current is ABSENT or (loan is not None and current in loan.put)


def _restore(ledger: Ledger, leaving: str = "") -> list[str]:
    """Restore keys that no running launcher overrides; return the paths of the changed files."""
    changed = []
    for path, entry in list(ledger.entries.items()):
        loans = {
            key: release(loan, lambda by: by == leaving or ledger.is_gone(by))
            for key, loan in entry.loans.items()
        }
        if loans == entry.loans:
            continue
        wanted = any(loan.claims for loan in loans.values())
        written = False
        try:
            written = _write_changes(entry, loans, None if wanted else entry.original)
        except Missing:
            wanted = False
        except Unusable as error:
            warn(f"{error}; what was there before comes back with the next start of a launcher")
            continue
        changed += [path] if written else []
        if wanted:
            ledger.entries[path] = msgspec.structs.replace(entry, loans=loans)
        else:
            del ledger.entries[path]
        ledger.save()
    return changed


def _write_changes(entry: Entry, loans: dict[str, Loan], back_to: Original | None) -> bool:
    written = False

    def decide(found: Found) -> Change:
        nonlocal written
        change = Change(values=changes(loans, found.values), back_to=back_to)
        written = bool(change.values)
        return change

    entry.place.update(list(loans), decide)
    return written


@contextlib.contextmanager
def _signals_deferred() -> Iterator[None]:
    """Defer signals until the end of the block: a second Ctrl-C must not interrupt the restore."""
    waiting: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        waiting.append(number)

    try:
        with handling(dict.fromkeys(_DEFERRED_SIGNALS, wait)):
            yield
    finally:
        for number in waiting:
            signal.raise_signal(number)


@contextlib.contextmanager
def _ended_by_exception() -> Iterator[None]:
    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with handling(dict.fromkeys(_TERMINATING_SIGNALS, end)):
        yield
