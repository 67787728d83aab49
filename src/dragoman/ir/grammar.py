"""The legal order of events as a transition table, and `check`, which validates a stream against it."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.ir.events import (
    CitedText,
    Event,
    Failed,
    Finished,
    SignatureDelta,
    Started,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from dragoman.ir.parts import Native, ServerCall, ServerResult, ToolCall

_ANSWERING: dict[type[Event], str] = {
    TextDelta: "answering",
    CitedText: "answering",
    ThoughtDelta: "answering",
    SignatureDelta: "answering",
    ToolCall: "answering",
    ServerCall: "answering",
    ServerResult: "answering",
    Native: "answering",
    Usage: "answering",
    Finished: "over",
    Failed: "over",
}

#: state -> event -> next state; any other event is illegal
TRANSITIONS: dict[str, dict[type[Event], str]] = {
    "waiting": {Started: "answering", Failed: "over"},
    "answering": _ANSWERING,
    "over": {},
}


def check_events(events: Iterable[Event]) -> str | None:
    """Return None if the stream is legal and complete, otherwise a description of the first violation."""
    state = "waiting"
    running: set[str] = set()
    for position, event in enumerate(events):
        following = TRANSITIONS[state].get(type(event))
        if following is None:
            return f"event {position}: {type(event).__name__} while {state}"
        fault = _check_served(event, running)
        if fault:
            return f"event {position}: {fault}"
        state = following
    return None if state == "over" else f"the stream ends while {state}"


def _check_served(event: Event, running: set[str]) -> str:
    """Return what is wrong with this event, if anything; update `running`, the server calls without a result."""
    match event:
        case ServerCall() if event.id in running:
            return f"ServerCall {event.id} runs already"
        case ServerCall():
            running.add(event.id)
        case ServerResult() if event.call_id not in running:
            return f"ServerResult {event.call_id} of no call"
        case ServerResult():
            running.remove(event.call_id)
        case Finished() if running:
            return f"Finished without the result of {min(running)}"
    return ""
