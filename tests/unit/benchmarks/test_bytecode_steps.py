"""The cost of a turn follows its new part: counted in steps of the pure core, which are the same on every machine."""

from __future__ import annotations

import pytest

from benchmarks.bytecode_steps import OTHER_STYLES, StepCase, count_steps
from benchmarks.conversation import AGENT, BIG, Shape
from benchmarks.request_encoders import Style

_NOISE = 1.15  # calls name different tools, and results differ in length


def _steps(style: Style, shape: Shape, *, on: bool = True, chunks: int = 0) -> int:
    return sum(
        count_steps(
            StepCase(about="", style=style, shape=shape, running=on, chunks=chunks, requests=4)
        ).values()
    )


@pytest.mark.parametrize("style", ["anthropic", *OTHER_STYLES])
def test_the_next_turn_of_a_long_conversation_takes_no_more_steps_than_that_of_a_short_one(
    style: Style,
) -> None:
    short = _steps(style, AGENT)
    assert _steps(style, BIG) < _NOISE * short
    assert short < _steps(style, AGENT, on=False) / 2, "an unknown history is not read, or a known one is"


@pytest.mark.parametrize("style", ["anthropic", *OTHER_STYLES])
@pytest.mark.parametrize(("on", "chunks"), [(True, 0), (False, 0), (True, 20)])
def test_the_same_case_takes_exactly_the_same_steps_again(style: Style, on: bool, chunks: int) -> None:
    case = StepCase(about="", style=style, running=on, chunks=chunks, requests=4)
    count_steps(case)  # modules that are imported on demand
    first = count_steps(case)
    assert first.total() > 0
    assert count_steps(case) == first
