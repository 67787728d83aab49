"""The result of a check, and what a check can use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.cli.settings import Settings

#: `note`: intended, but worth knowing; `warn`: works for now; `fail`: does not work.
Status = Literal["ok", "note", "warn", "fail"]


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """A repair that the doctor can make after confirmation; `act` returns what it did."""

    question: str
    apply: Callable[[], str]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check: what was found, why it matters, and what to do, one sentence each."""

    status: Status
    what: str
    why: str = ""
    fix: str = ""
    repair: Repair | None = None


class DoctorContext(msgspec.Struct, frozen=True, kw_only=True):
    """The input of all checks; `settings` is None if they are invalid, which is a check of its own."""

    env: Mapping[str, str]
    home: Path
    settings: Settings | None = None
    settings_error: str = ""
    offline: bool = False
    clients: tuple[str, ...] = ()  # the installed or requested ones
    wait_s: float = 60.0


Check = Callable[[DoctorContext], Iterator[Finding]]
