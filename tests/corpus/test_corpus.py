"""The shared conformance cases, in the directions we speak so far."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import check
from tests.corpus.adapter import DIRECTIONS, run_case

#: Dialects of later issues; their cases wait here so that nobody forgets them.
WAITING = ("chat", "responses", "openai")

ALL = [json.loads(path.read_text("utf-8")) for path in sorted(Path(__file__).parent.glob("*/*.json"))]
CASES = [case for case in ALL if case["direction"] in DIRECTIONS]


def _speakable(case: dict[str, Any]) -> bool:
    return bool(case["input"].get("protocol", "anthropic") == "anthropic")


@pytest.mark.parametrize("case", [pytest.param(case, id=case["id"]) for case in CASES if _speakable(case)])
def test_case(case: dict[str, Any]) -> None:
    failures, _advice = check.check_case(case, run_case(case))
    assert failures == []


def test_every_case_is_either_spoken_or_waits_for_its_dialect() -> None:
    silent = [case["direction"] for case in ALL if case["direction"] not in DIRECTIONS]
    assert [direction for direction in silent if not any(word in direction for word in WAITING)] == []
