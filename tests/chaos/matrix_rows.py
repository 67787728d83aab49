"""The rows of the matrix: what a fault is called, when it can strike whom, and what must come of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from tests.chaos import scripted_turns
from tests.chaos.dialect_clients import TONGUES, End
from tests.chaos.scripted_google import Strike, nothing
from tests.chaos.scripted_turns import SAID, Phase

#: Conversations that only the gateway remembers; all other clients send everything with every request.
KEPT = ("responses, kept", "gemini, kept")


class Cell(msgspec.Struct, frozen=True):
    tongue: str
    phase: Phase
    stream: bool

    def __str__(self) -> str:
        return f"{self.tongue}, {self.phase}, {'stream' if self.stream else 'whole'}"


class Expected(msgspec.Struct, frozen=True):
    """How the turn that is struck ends, and how often Google is asked for it (None: that is left open).

    `or_else`: an end that is as right, where chance decides.
    """

    end: End
    attempts: int | None = 1
    or_else: End | None = None


Expect = Callable[[Cell], Expected]
Act = Callable[[Any], Awaitable[None]]


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """When it can strike a stream and an answer in one piece; `because` says why not always or not everyone."""

    name: str
    expect: Expect
    streamed: tuple[Phase, ...] = scripted_turns.PHASES
    whole: tuple[Phase, ...] = scripted_turns.PHASES
    tongues: tuple[str, ...] = tuple(TONGUES)
    because: str = ""

    def cells(self, tongue: str) -> list[Cell]:
        phases = {True: self.streamed, False: self.whole}
        return [Cell(tongue, phase, form) for form in TONGUES[tongue].forms for phase in phases[form]]


class Fault(Row, frozen=True, kw_only=True):
    """One that strikes one request. `times`: how many attempts; 0: all of them. `hasty`: a time limit is what ends it."""

    strike: Strike = nothing
    make: Callable[[Any], Strike] | None = None  # a strike that needs to know its world
    times: int = 1
    hasty: bool = False


class Disaster(Row, frozen=True, kw_only=True):
    """One that strikes everybody at once, each at another moment; and how it is mended."""

    strike: Act
    mend: Act
    google_waits: bool = False  # it says nothing more
    loses: bool = False  # what was kept: conversations begin anew, signatures are Google's sentinel
    unsure: bool = False  # what was told as failed may be done later: conversations begin anew
    settings: tuple[tuple[str, str], ...] = ()  # of the gateway


def _is_said(cell: Cell) -> bool:
    return cell.stream and cell.phase in SAID


def harmless(_cell: Cell) -> Expected:
    """The answer, as if nothing had happened."""
    return Expected("answer")


def fatal(_cell: Cell) -> Expected:
    """An error at once."""
    return Expected("error")


def stopped(_cell: Cell) -> Expected:
    """An answer that says why it is less."""
    return Expected("stopped")


def cured(cell: Cell) -> Expected:
    """The answer at the second attempt, as long as nothing was said; then an error."""
    return Expected("error") if _is_said(cell) else Expected("answer", 2)


def hopeless(cell: Cell) -> Expected:
    """As often as the budget allows while nothing was said; then an error."""
    return Expected("error", 1 if _is_said(cell) else 3)


def gone(cell: Cell) -> Expected:
    """Nobody is there any more who could tell or hear how it ended."""
    return Expected("cut", _asked(cell))


def stateless(cell: Cell) -> Expected:
    """The answer to whoever sends everything himself; a conversation that must be kept and cannot be is an error."""
    return Expected("error", _asked(cell)) if cell.tongue in KEPT else Expected("answer")


def _asked(cell: Cell) -> int:
    """A disaster between turns is there before Google is asked again."""
    return 0 if cell.phase == "between turns" else 1
