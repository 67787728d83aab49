"""What leaves for Google, byte for byte: a neutral request written as an Anthropic body, its upstream body beside it.

`make bless` writes the files anew; read the diff before you commit it.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import Target
from dragoman.translation.exchange import Exchange

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*.json"))


def translate(case: dict[str, Any]) -> tuple[bytes, list[str]]:
    numbers = itertools.count(1)
    exchange = Exchange(CLIENTS["anthropic"], new_id=lambda: f"{next(numbers):016d}")
    exchange.decode(json.dumps(case["request"]).encode())
    body = exchange.encode(Target(model=case["model"], backend=case.get("backend", "gemini")))
    return body, [str(note) for note in exchange.notes]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_upstream_body(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    body, notes = translate(case)
    fresh = {**case, "body": body.decode(), "notes": notes}
    if os.environ.get("DRAGOMAN_BLESS"):
        path.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n", "utf-8")
    else:
        assert body == case["body"].encode()
        assert notes == case["notes"]


def test_there_are_situations_and_each_is_used() -> None:
    assert {path.stem for path in CASES} >= {
        "plain_text",
        "parallel_tool_round_with_signatures",
        "images_in_results_on_3",
        "images_in_results_on_2_5",
        "json_output",
        "adaptive_thinking",
        "hostile_names",
    }
