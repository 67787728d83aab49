"""The matrix as a table: every fault, what comes of it at every moment, and in how many cells that is played."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.dialect_clients import TONGUES
from tests.chaos.matrix_rows import Cell, Expected, Row
from tests.chaos.network_faults import NETWORK
from tests.chaos.process_faults import PROCESS
from tests.chaos.scripted_turns import PHASES
from tests.chaos.state_faults import REDIS, SQLITE
from tests.chaos.upstream_faults import UPSTREAM

FAMILIES: dict[str, Sequence[Row]] = {
    "Google": UPSTREAM,
    "network and clients": NETWORK,
    "disk and SQLite": SQLITE,
    "Redis": REDIS,
    "the gateway's process": PROCESS,
}
_SIGNS = {"answer": "=", "stopped": "s", "error": "!", "cut": "x"}
_EVERY = sum(len(tongue.forms) for tongue in TONGUES.values())
LEGEND = (
    "`=` the answer, `↻` the answer at another attempt, `!` an error in the client's own dialect, "
    "`s` an answer that says why it is less, `x` the connection is gone; "
    "`=/!` either of them, as chance has it. The number says for how many dialects and forms."
)


def cells_of(row: Row) -> Iterator[Cell]:
    for tongue in row.tongues:
        yield from row.cells(tongue)


def sign(expected: Expected) -> str:
    again = expected.end == "answer" and (expected.attempts or 1) > 1
    first = "↻" if again else _SIGNS[expected.end]
    return first if expected.or_else is None else f"{first}/{_SIGNS[expected.or_else]}"


def table() -> str:
    forms = sorted(
        f"{name} ({'stream' if form else 'whole'})" for name, kind in TONGUES.items() for form in kind.forms
    )
    total = sum(1 for rows in FAMILIES.values() for row in rows for _ in cells_of(row))
    faults = sum(map(len, FAMILIES.values()))
    lines = [
        f"{faults} faults × {len(PHASES)} moments × {_EVERY} dialects and forms: **{total} cells**.",
        "",
        f"Dialects and forms: {', '.join(forms)}.",
        "",
        LEGEND,
    ]
    for family, rows in FAMILIES.items():
        number = sum(1 for row in rows for _ in cells_of(row))
        lines += ["", f"### {family}: {len(rows)} faults, {number} cells", "", *_family(rows)]
    return "\n".join([*lines, ""])


def _family(rows: Sequence[Row]) -> Iterator[str]:
    yield f"| fault | {' | '.join(PHASES)} | left out, because |"
    yield "|---" * (len(PHASES) + 2) + "|"
    for row in rows:
        yield f"| {row.name} | {' | '.join(_entry(row, phase) for phase in PHASES)} | {row.because} |"


def _entry(row: Row, phase: str) -> str:
    signs = Counter(sign(row.expect(cell)) for cell in cells_of(row) if cell.phase == phase)
    return " ".join(f"{number} {one}" for one, number in sorted(signs.items())) or "–"
