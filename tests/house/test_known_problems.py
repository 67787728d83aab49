"""docs/known-problems.md cannot drift: every test it names exists, and every id in the name of a test is on the page.

Citations in comments and pages are checked in `test_conventions`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "known-problems.md").read_text("utf-8")
IDS = set(re.findall(r"</a>([A-Q]\d+)\b", TEXT))
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))


@pytest.mark.parametrize(("path", "name"), TESTS, ids=[name for _, name in TESTS])
def test_a_test_that_is_named_exists(path: str, name: str) -> None:
    assert re.search(rf"^ *(?:async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_the_id_in_the_name_of_a_test_is_on_the_page() -> None:
    for path in (ROOT / "tests").rglob("test_*.py"):
        for ids in re.findall(r"def test_((?:[a-q]\d{1,2}_)+)", path.read_text("utf-8")):
            for problem in re.findall(r"[a-q]\d+", ids):
                assert problem.upper() in IDS or problem == "h11", (path, problem)
