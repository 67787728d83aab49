"""The ledger of the in-memory store, and helpers that all ledgers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from dragoman.store.base import (
    LEDGER_DAYS,
    LEDGER_LABELS,
    LEDGER_LINES,
    LEDGER_LINES_S,
    OTHER_LABEL,
    Line,
    Tally,
)

Labels = tuple[str, ...]


def first_day_kept(now_s: float) -> str:
    return (datetime.fromtimestamp(now_s, UTC) - timedelta(days=LEDGER_DAYS)).date().isoformat()


def other(labels: Labels) -> Labels:
    return (OTHER_LABEL,) * len(labels)


class MemoryLedger:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._lines: dict[str, Line] = {}
        self._sums: dict[tuple[str, str], dict[Labels, Counter[str]]] = {}

    async def note(self, lines: Sequence[Line], tallies: Sequence[Tally]) -> None:
        for line in lines:
            self._lines.setdefault(line.id, line)
        for tally in tallies:
            known = self._sums.setdefault((tally.day, tally.kind), {})
            full = len(known) >= LEDGER_LABELS and tally.labels not in known
            sums = known.setdefault(other(tally.labels) if full else tally.labels, Counter())
            sums.update(tally.sums)
        self._forget()

    async def lines(
        self, *, limit: int, before: tuple[int, str] | None = None, session: str = ""
    ) -> list[Line]:
        found = [
            line
            for line in self._lines.values()
            if (before is None or _place(line) < before) and (not session or line.session == session)
        ]
        return sorted(found, key=_place, reverse=True)[:limit]

    async def line(self, line_id: str) -> Line | None:
        return self._lines.get(line_id)

    async def tallies(self, kind: str, first_day: str, last_day: str) -> list[Tally]:
        found = [
            Tally(day=day, kind=kind, labels=labels, sums=dict(sums))
            for (day, known_kind), known in self._sums.items()
            if known_kind == kind and first_day <= day <= last_day
            for labels, sums in known.items()
        ]
        return sorted(found, key=lambda tally: (tally.day, tally.labels))

    def _forget(self) -> None:
        now_s = self._now()
        oldest_ms = (now_s - LEDGER_LINES_S) * 1000
        kept = [line for line in self._lines.values() if line.at_ms >= oldest_ms]
        if len(kept) > LEDGER_LINES:
            kept = sorted(kept, key=_place)[-LEDGER_LINES:]
        if len(kept) < len(self._lines):
            self._lines = {line.id: line for line in kept}
        first = first_day_kept(now_s)
        for key in [key for key in self._sums if key[0] < first]:
            del self._sums[key]


def _place(line: Line) -> tuple[int, str]:
    return line.at_ms, line.id
