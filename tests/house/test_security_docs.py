"""docs/security.md cannot drift: every test it names is there, and every incident of the threat model is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)))
KNOWN_PROBLEMS = [f"Q{number}" for number in range(1, 14)]
INCIDENTS = [
    "CVE-2024-6587", "CVE-2025-59536", "CVE-2026-12773", "CVE-2026-21852", "CVE-2026-25871", "CVE-2026-30623",
    "CVE-2026-35030", "CVE-2026-40217", "CVE-2026-42208", "CVE-2026-42271", "CVE-2026-47101", "CVE-2026-47102",
    "CVE-2026-48710", "GHSA-8hmm-4crw-vm2c", "GHSA-gr74-4xfh-6jw9", "GHSA-q66q-fx2p-7w4m",
    "litellm#24512", "cc-switch#1841", "CPA#3376", "CPA#3457", "nyro#68", "one-api#2387", "gcli#19760",
]  # fmt: skip


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_test_that_is_named_exists(path: str, name: str) -> None:
    assert re.search(rf"^ *(?:async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)


def test_every_row_names_a_test() -> None:
    _, _, table = TEXT.partition("| threat, and where it happened |")
    rows = [line for line in table.partition("\n\n")[0].splitlines()[2:] if line.startswith("|")]
    assert len(rows) > 20
    assert [row for row in rows if "::test_" not in row.rpartition(" | ")[2]] == []


@pytest.mark.parametrize("word", [*KNOWN_PROBLEMS, *INCIDENTS])
def test_every_known_problem_and_incident_is_in_the_table(word: str) -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("|") and "::test_" in line]
    assert [row for row in rows if re.search(rf"{re.escape(word)}\b", row)]


def test_reports_have_a_place() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    assert "in private" in text
    for link in re.findall(r"\]\(([\w./]+)\)", text):
        assert (ROOT / link).exists(), link
