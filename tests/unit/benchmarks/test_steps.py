"""What a turn costs follows what is new of it: counted in steps of Python, which no busy machine can change."""

from __future__ import annotations

import asyncio

import pytest
import uvloop

from benchmarks.conversation import AGENT, BIG, Shape
from benchmarks.steps import OTHER_STYLES, Case, count_steps
from benchmarks.wires import Style

_NOISE = 1.15  # the tools of a call, and how much the last result has to say, differ


def _steps(style: Style, shape: Shape, *, on: bool = True) -> float:
    case = Case(about="", style=style, shape=shape, on=on, requests=4)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return sum(runner.run(count_steps(case)).values()) / case.requests


@pytest.mark.parametrize("style", ["anthropic", *OTHER_STYLES])
def test_the_next_turn_of_a_long_conversation_takes_no_more_steps_than_that_of_a_short_one(
    style: Style,
) -> None:
    short = _steps(style, AGENT)
    assert _steps(style, BIG) < _NOISE * short
    assert short < _steps(style, AGENT, on=False) / 2  # and what nobody has seen does take them
