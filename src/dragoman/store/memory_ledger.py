"""The ledger of the in-memory store, and helpers that all ledgers share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from dragoman.store.base import (
    LEDGER_DAYS,
    LEDGER_ENTRY_MAX_AGE_S,
    MAX_LEDGER_ENTRIES,
    MAX_LEDGER_LABELS,
    OTHER_LABEL,
    LedgerEntry,
    Tally,
)

Labels = tuple[str, ...]


def first_retained_day(now_s: float) -> str:
    return (datetime.fromtimestamp(now_s, UTC) - timedelta(days=LEDGER_DAYS)).date().isoformat()


def other_labels(labels: Labels) -> Labels:
    return (OTHER_LABEL,) * len(labels)


class MemoryLedger:
    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._entries: dict[str, LedgerEntry] = {}
        self._sums: dict[tuple[str, str], dict[Labels, Counter[str]]] = {}

    async def add(self, lines: Sequence[LedgerEntry], tallies: Sequence[Tally]) -> None:
        for line in lines:
            self._entries.setdefault(line.id, line)
        for tally in tallies:
            known = self._sums.setdefault((tally.day, tally.kind), {})
            full = len(known) >= MAX_LEDGER_LABELS and tally.labels not in known
            sums = known.setdefault(other_labels(tally.labels) if full else tally.labels, Counter())
            sums.update(tally.sums)
        self._prune()

    async def entries(
        self, *, limit: int, before: tuple[int, str] | None = None, session: str = ""
    ) -> list[LedgerEntry]:
        found = [
            line
            for line in self._entries.values()
            if (before is None or _sort_key(line) < before) and (not session or line.session == session)
        ]
        return sorted(found, key=_sort_key, reverse=True)[:limit]

    async def entry(self, line_id: str) -> LedgerEntry | None:
        return self._entries.get(line_id)

    async def tallies(self, kind: str, first_day: str, last_day: str) -> list[Tally]:
        found = [
            Tally(day=day, kind=kind, labels=labels, sums=dict(sums))
            for (day, known_kind), known in self._sums.items()
            if known_kind == kind and first_day <= day <= last_day
            for labels, sums in known.items()
        ]
        return sorted(found, key=lambda tally: (tally.day, tally.labels))

    def _prune(self) -> None:
        now_s = self._now()
        oldest_ms = (now_s - LEDGER_ENTRY_MAX_AGE_S) * 1000
        kept = [line for line in self._entries.values() if line.at_ms >= oldest_ms]
        if len(kept) > MAX_LEDGER_ENTRIES:
            kept = sorted(kept, key=_sort_key)[-MAX_LEDGER_ENTRIES:]
        if len(kept) < len(self._entries):
            self._entries = {line.id: line for line in kept}
        first = first_retained_day(now_s)
        for key in [key for key in self._sums if key[0] < first]:
            del self._sums[key]


def _sort_key(line: LedgerEntry) -> tuple[int, str]:
    return line.at_ms, line.id
