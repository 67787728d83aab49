"""The page about observing says what is measured."""

from __future__ import annotations

import os
import re
from pathlib import Path

from dragoman.observe.metrics import ALL_METRICS
from dragoman.observe.usage import GROUPS
from dragoman.store import LEDGER_DAYS
from dragoman.store.base import LEDGER_ENTRY_MAX_AGE_S, MAX_LEDGER_ENTRIES, MAX_LEDGER_LABELS

PAGE = Path(__file__).parents[3] / "docs" / "observe.md"
_MARKS = re.compile(r"(<!-- metrics: [^\n]*-->\n).*?(<!-- /metrics -->)", re.DOTALL)


def test_the_table_of_metrics_is_the_code() -> None:
    text = PAGE.read_text("utf-8")
    rows = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(f'`{name}`' for name in metric.labels)} | {metric.help} |"
        for metric in ALL_METRICS
    ]
    table = "\n".join(["| metric | kind | labels | |", "|---|---|---|---|", *rows, ""])
    wanted = _MARKS.sub(lambda found: f"{found[1]}{table}{found[2]}", text)
    if os.environ.get("DRAGOMAN_BLESS"):
        PAGE.write_text(wanted, "utf-8")
    assert wanted == text or os.environ.get("DRAGOMAN_BLESS")
    assert ALL_METRICS[-1].name in wanted


def test_it_says_how_much_is_kept() -> None:
    text = " ".join(PAGE.read_text("utf-8").split())
    assert (
        f"the newest {MAX_LEDGER_ENTRIES:,} requests of at most {LEDGER_ENTRY_MAX_AGE_S // 86_400} days"
        in text
    )
    assert f"sums for {LEDGER_DAYS} days" in text
    assert f"at most {MAX_LEDGER_LABELS} different" in text


def test_it_names_every_way_to_look_at_usage() -> None:
    assert set(
        re.findall(r"^\| `(\w+)` \| (?!histogram|counter|gauge)", PAGE.read_text("utf-8"), re.MULTILINE)
    ) == {*GROUPS}
