"""What is said to the model itself: how hard to think, how to sample."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.ir import Sampling, Thinking
from tests.unit.dialects.amazonq.builders import noted, refused, request

PLACE = "additionalModelRequestFields"


@pytest.mark.parametrize(
    ("fields", "thinking"),
    [
        ({}, Thinking()),
        ({"thinking": {"type": "disabled"}}, Thinking(mode="off")),
        (
            {"thinking": {"type": "enabled", "budget_tokens": 2048}},
            Thinking(mode="on", budget_tokens=2048, show=True),
        ),
        ({"thinking": {"type": "adaptive", "display": "omitted"}}, Thinking(mode="on")),
        ({"output_config": {"effort": "high"}}, Thinking(effort="high")),
        ({"effort": "low"}, Thinking(effort="low")),
        (
            {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": "xhigh"}},
            Thinking(mode="on", effort="max", show=True),
        ),
        ({"reasoning": {"effort": "medium"}}, Thinking(mode="on", effort="medium", show=True)),
        ({"reasoning": {"effort": "none"}}, Thinking(mode="off")),
        ({"reasoning": {}}, Thinking()),
        ({"reasoning": {"effort": "low"}, "thinking": {"type": "disabled"}}, Thinking(mode="off")),
        ({"thinking": None, "reasoning": None, "output_config": None, "effort": None}, Thinking()),
    ],
)
def test_how_hard_to_think(fields: dict[str, Any], thinking: Thinking) -> None:
    assert request(additionalModelRequestFields=fields).thinking == thinking
    assert noted(additionalModelRequestFields=fields) == []


def test_how_to_sample() -> None:
    fields = {"max_tokens": 9, "temperature": 0.5, "top_p": 0.9, "top_k": 40, "stop_sequences": ["x"]}
    found = request(additionalModelRequestFields=fields).sampling
    assert found == Sampling(max_tokens=9, temperature=0.5, top_p=0.9, top_k=40, stop=("x",))
    assert request(additionalModelRequestFields=None).sampling == Sampling()


def test_unknown_tuning_is_dropped_with_a_note() -> None:
    fields = {
        "anthropic_beta": ["x"],
        "unset": None,
        "thinking": {"type": "sometimes"},
        "output_config": {"effort": "heroic"},
    }
    assert noted(additionalModelRequestFields=fields) == [
        ("dropped", f"{PLACE}.output_config.effort"),
        ("dropped", f"{PLACE}.thinking"),
        ("dropped", f"{PLACE}.anthropic_beta"),
    ]


def test_tuning_that_cannot_be_read_is_refused_with_its_place() -> None:
    assert refused(additionalModelRequestFields={"top_k": "many"}).where == f"{PLACE}.top_k"
    assert refused(additionalModelRequestFields=[1]).where == PLACE
