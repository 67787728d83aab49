"""Set keys of a client's own settings for as long as it runs, and put back what was there, whatever happens.

Order is everything: the ledger says what was there before the place is touched, and forgets it after the place is
as it was. A launcher that is killed in between leaves the ledger to the next one.
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
_ENDING = (signal.SIGTERM, signal.SIGHUP) if _POSIX else (signal.SIGTERM,)
_WAITING = (signal.SIGINT, *_ENDING, *((signal.SIGTSTP,) if _POSIX else ()))


@contextlib.contextmanager
def borrowed(home: Path, edits: tuple[Edit, ...]) -> Iterator[None]:
    """Everything in `edits` holds inside; a signal that would end this process ends the block instead."""
    if not edits:
        yield
        return
    if not _POSIX:
        hint = "set it by hand as docs/amazon-q.md says, with dragoman serve"
        raise Failure("this client's settings cannot be lent on this system", hint=hint)
    with running(home) as by, _ended_by_exception():
        try:
            with _undisturbed(), open_ledger(home) as ledger:
                for edit in edits:
                    _put(ledger, edit, by)
            yield
        finally:
            with _undisturbed(), open_ledger(home) as ledger:
                _settle(ledger, by)


def repair(home: Path) -> None:
    """Put back what launchers that were killed have left."""
    if not has_ledger(home):
        return
    with _undisturbed(), open_ledger(home) as ledger:
        changed = _settle(ledger)
    if changed:
        remark(f"an earlier run was cut off; put back as it was: {', '.join(changed)}")


def _put(ledger: Ledger, edit: Edit, by: str) -> None:
    """Write down what is there, then set the keys; where others hold them already, the latest word counts."""
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


def _settle(ledger: Ledger, leaving: str = "") -> list[str]:
    """Everything as the launchers that are still there want it, or as it was; the places that were changed."""
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
            written = _write_due(entry, loans, None if wanted else entry.original)
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


def _write_due(entry: Entry, loans: dict[str, Loan], back_to: Original | None) -> bool:
    written = False

    def decide(found: Found) -> Change:
        nonlocal written
        change = Change(values=changes(loans, found.values), back_to=back_to)
        written = bool(change.values)
        return change

    entry.place.update(list(loans), decide)
    return written


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not stop what the first one has begun; it comes afterwards."""
    waiting: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        waiting.append(number)

    try:
        with handling(dict.fromkeys(_WAITING, wait)):
            yield
    finally:
        for number in waiting:
            signal.raise_signal(number)


@contextlib.contextmanager
def _ended_by_exception() -> Iterator[None]:
    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    with handling(dict.fromkeys(_ENDING, end)):
        yield
