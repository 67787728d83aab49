"""Tables by type have an entry for every type there is: a new event or part must not be forgotten."""

from __future__ import annotations

from typing import get_args

from dragoman.dialects.gemini.parts import ENCODERS, EncodablePart
from dragoman.ir import Event
from dragoman.ir.collect import FEEDS


def test_every_event_is_collected() -> None:
    assert set(FEEDS) == set(get_args(Event))


def test_every_part_is_said() -> None:
    assert set(ENCODERS) == set(get_args(EncodablePart))
