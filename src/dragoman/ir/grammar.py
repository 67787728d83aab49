"""The legal order of events, as a table; `check` says where a stream breaks it."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.ir.events import (
    CallDelta,
    CallEnded,
    CallStarted,
    Event,
    Failed,
    Finished,
    Signed,
    Started,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from dragoman.ir.parts import Native

_ANSWERING: dict[type[Event], str] = {
    TextDelta: "answering",
    ThoughtDelta: "answering",
    Signed: "answering",
    Native: "answering",
    Usage: "answering",
    CallStarted: "calling",
    Finished: "over",
    Failed: "over",
}

#: state -> event -> next state; what is not here is illegal
TRANSITIONS: dict[str, dict[type[Event], str]] = {
    "waiting": {Started: "answering", Failed: "over"},
    "answering": _ANSWERING,
    "calling": {CallDelta: "calling", CallEnded: "answering", Failed: "over"},
    "over": {},
}


def check(events: Iterable[Event]) -> str | None:
    """None for a legal, finished stream; otherwise what is wrong with it."""
    state = "waiting"
    for position, event in enumerate(events):
        following = TRANSITIONS[state].get(type(event))
        if following is None:
            return f"event {position}: {type(event).__name__} while {state}"
        state = following
    return None if state == "over" else f"the stream ends while {state}"
