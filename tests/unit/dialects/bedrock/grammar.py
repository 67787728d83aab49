"""The legal order of a ConverseStream, as a table, and what a client makes of a legal one.

    stream  = messageStart block* messageStop metadata
    block   = [contentBlockStart] contentBlockDelta+ contentBlockStop     one at a time, indexes 0, 1, 2 …
    failure = an exception instead of the rest: behind a whole block, or inside a tool that must not be run

Only a tool's block has a start, and its deltas join to one JSON object. `ping` may stand anywhere but in a tool.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from dragoman.http.aws_eventstream import EventMessage, EventStreamDecoder

Json = dict[str, Any]

#: state -> event -> next state; what is not here is illegal
TRANSITIONS: dict[str, dict[str, str]] = {
    "waiting": {"messageStart": "between"},
    "between": {"contentBlockStart": "tool", "contentBlockDelta": "block", "messageStop": "stopped"},
    "tool": {"contentBlockDelta": "fed tool"},
    "fed tool": {"contentBlockDelta": "fed tool", "contentBlockStop": "between"},
    "block": {"contentBlockDelta": "block", "contentBlockStop": "between"},
    "stopped": {"metadata": "over"},
    "over": {},
}
_MEMBERS = {"text": "text", "reasoningContent": "reasoning", "toolUse": "tool"}


class Told(msgspec.Struct):
    """A whole stream: the message, what came behind it, and the exception if there was one."""

    content: list[Json] = msgspec.field(default_factory=list)
    stop: Json = msgspec.field(default_factory=dict)
    metadata: Json = msgspec.field(default_factory=dict)
    failure: tuple[str, Json] | None = None
    pings: int = 0

    def as_whole(self) -> Json:
        """In the form of Converse's answer."""
        message = {"role": "assistant", "content": self.content}
        return {"output": {"message": message}, **self.stop, **self.metadata}


def frames_of(data: bytes) -> list[EventMessage]:
    decoder = EventStreamDecoder()
    messages = decoder.feed(data)
    decoder.close()
    return messages


class Reader:
    """Reads a stream as strictly as its grammar is written; every break of it is an assertion."""

    def __init__(self) -> None:
        self._state = "waiting"
        self._kind = ""
        self._pieces: list[str] = []
        self.told = Told()

    def read(self, frame: EventMessage) -> None:
        assert self.told.failure is None, "nothing comes behind an exception"
        assert frame.headers[":content-type"] == "application/json"
        payload = json.loads(frame.payload)
        if frame.headers[":message-type"] == "exception":
            assert self._state in ("between", "tool", "fed tool"), f"an exception while {self._state}"
            self.told.failure = frame.headers[":exception-type"], payload
            return
        assert frame.headers[":message-type"] == "event"
        event = frame.headers[":event-type"]
        if event == "ping":
            assert "tool" not in self._state, "a heartbeat inside a tool"
            self.told.pings += 1
            return
        following = TRANSITIONS[self._state].get(event)
        assert following is not None, f"{event} while {self._state}"
        self._take(event, payload, first=self._state == "between")
        self._state = following

    def close(self) -> Told:
        assert self.told.failure is not None or self._state == "over", f"the stream ends while {self._state}"
        return self.told

    def _take(self, event: str, payload: Json, *, first: bool) -> None:
        match event:
            case "messageStart":
                assert payload == {"role": "assistant"}
            case "contentBlockStart":
                (use,) = (payload["start"]["toolUse"],)
                assert set(use) == {"toolUseId", "name"}
                self._begin(payload, "tool", {"toolUse": use})
            case "contentBlockDelta":
                ((member, value),) = payload["delta"].items()
                if first:
                    assert member != "toolUse", "a tool without its start"
                    self._begin(payload, _MEMBERS[member], {})
                assert _MEMBERS[member] == self._kind, f"{member} in a block of {self._kind}"
                self._check_index(payload)
                self._delta(value)
            case "contentBlockStop":
                self._check_index(payload)
                self._end()
            case "messageStop":
                self.told.stop = payload
            case "metadata":
                self.told.metadata = payload

    def _begin(self, payload: Json, kind: str, block: Json) -> None:
        self.told.content.append(block)
        self._kind, self._pieces = kind, []
        self._check_index(payload)

    def _check_index(self, payload: Json) -> None:
        assert payload["contentBlockIndex"] == len(self.told.content) - 1

    def _delta(self, value: Any) -> None:
        if self._kind == "text":
            assert value, "an empty piece of text"
            self._pieces.append(value)
        elif self._kind == "tool":
            self._pieces.append(value["input"])
        else:
            ((field, words),) = value.items()
            text = self.told.content[-1].setdefault("reasoningContent", {}).setdefault("reasoningText", {})
            assert "signature" not in text, "a signature ends its block"
            text[field] = text.get(field, "") + words

    def _end(self) -> None:
        block, said = self.told.content[-1], "".join(self._pieces)
        if self._kind == "text":
            block["text"] = said
        elif self._kind == "tool":
            block["toolUse"]["input"] = json.loads(said)
        else:
            assert "text" in block["reasoningContent"]["reasoningText"], (
                "boto3 sends no reasoning without a text"
            )


def read_stream(data: bytes) -> Told:
    reader = Reader()
    for frame in frames_of(data):
        reader.read(frame)
    return reader.close()
