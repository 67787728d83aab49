"""What a check has found, and what a check may know."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from dragoman.cli.settings import Settings

#: `note`: as it is meant to be, but worth knowing; `warn`: works today; `fail`: something does not work.
Status = Literal["ok", "note", "warn", "fail"]


class Repair(msgspec.Struct, frozen=True, kw_only=True):
    """Something the doctor may do itself, if it is let; `act` says what it did."""

    question: str
    act: Callable[[], str]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One sentence each: what is the case, why it matters, what to do."""

    status: Status
    what: str
    why: str = ""
    fix: str = ""
    repair: Repair | None = None


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a check looks at; without `settings` their own check says what is wrong with them."""

    env: Mapping[str, str]
    home: Path
    settings: Settings | None = None
    settings_error: str = ""
    offline: bool = False
    clients: tuple[str, ...] = ()  # those that are installed and wanted
    wait_s: float = 60.0


Check = Callable[[Situation], Iterator[Finding]]
