"""The matrix of faults in the documentation is the one that is played."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.chaos.dialect_clients import TONGUES
from tests.chaos.matrix_rows import Row
from tests.chaos.matrix_table import FAMILIES, cells_of, table
from tests.chaos.scripted_turns import PHASES

PAGE = Path(__file__).parents[2] / "docs" / "reliability.md"
MARKS = re.compile(r"(<!-- matrix:.*?-->\n).*?(<!-- /matrix -->)", re.DOTALL)
ROWS = [pytest.param(row, id=row.name) for rows in FAMILIES.values() for row in rows]


def test_the_matrix_in_the_documentation_is_the_code() -> None:
    text = PAGE.read_text("utf-8")
    wanted = MARKS.sub(lambda found: f"{found[1]}{table()}{found[2]}", text)
    if os.environ.get("DRAGOMAN_BLESS"):
        PAGE.write_text(wanted, "utf-8")
    assert MARKS.search(text)
    assert wanted == text or os.environ.get("DRAGOMAN_BLESS")


@pytest.mark.parametrize("row", ROWS)
def test_whatever_is_left_out_has_a_reason(row: Row) -> None:
    every = sum(len(tongue.forms) * len(PHASES) for tongue in TONGUES.values())
    assert bool(row.because) == (len(list(cells_of(row))) < every)


def test_no_two_faults_have_one_name() -> None:
    names = [row.name for rows in FAMILIES.values() for row in rows]
    assert len(set(names)) == len(names)
