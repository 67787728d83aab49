"""The shared conformance cases: every one is run, or declined by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import InvalidRequest
from tests.corpus import chat_adapter, check
from tests.corpus.adapter import run_case

CASES = [json.loads(path.read_text("utf-8")) for path in sorted(Path(__file__).parent.glob("*/*.json"))]


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["id"] not in chat_adapter.DECLINED], ids=lambda case: case["id"]
)
def test_case(case: dict[str, Any]) -> None:
    failures, _advice = check.check_case(case, run_case(case))
    assert failures == []


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["id"] in chat_adapter.DECLINED], ids=lambda case: case["id"]
)
def test_what_we_decline_is_refused_by_its_name(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest) as caught:
        run_case(case)
    assert caught.value.where == chat_adapter.DECLINED[case["id"]]
