"""Reads a stream by the rules of Amazon's Rust clients, and forbids all they only put up with.

The first event of a tool opens it and says nothing else: the clients throw the rest away. What follows belongs to
that tool, whatever its id, until it stops; any other event would end it early. The pieces of its input make one
JSON object. Kiro takes a stream without a final stop reason for cut off and asks again.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from dragoman.http.aws_eventstream import EventMessage, EventStreamDecoder

Json = dict[str, Any]

STOP_REASONS = frozenset(
    "END_TURN TOOL_USE MAX_TOKENS CONTENT_FILTERED MODEL_CONTEXT_WINDOW_EXCEEDED PAUSE_TURN UNKNOWN".split()
)
#: Members of the stream's union that we have a use for; unknown ones are passed over.
_READ = frozenset(
    {"messageMetadataEvent", "assistantResponseEvent", "reasoningContentEvent", "contextUsageEvent"}
)
_FORBIDDEN = frozenset({"codeReferenceEvent", "initial-response"})
_FAILURES = frozenset({"error", "throttlingError", "validationError", "serviceUnavailableError"})


class Violation(AssertionError):
    """What a Rust client would have misread."""


class ToolUse(msgspec.Struct):
    id: str
    name: str
    pieces: list[str] = []

    @property
    def input(self) -> Json:
        try:
            found = json.loads("".join(self.pieces))
        except ValueError as error:
            raise Violation(f"the input of {self.name} is no JSON: {error}") from None
        if not isinstance(found, dict):
            raise Violation(f"the input of {self.name} is no object")
        return found


class Reading(msgspec.Struct):
    """What a client has of an answer; `failure` is the type of the exception that ended it."""

    conversation_id: str = ""
    utterance_id: str = ""
    text: str = ""
    thoughts: str = ""
    signatures: list[str] = []
    tools: list[ToolUse] = []
    context_percentage: float | None = None
    stop_reason: str = ""
    usage: Json = {}
    stop_details: Json = {}
    failure: str = ""
    complaint: Json = {}

    @property
    def calls(self) -> list[tuple[str, Json]]:
        return [(tool.name, tool.input) for tool in self.tools]


class RustCli:
    """`feed` messages in their order, `close` at the end of the stream."""

    def __init__(self) -> None:
        self.reading = Reading(signatures=[], tools=[])
        self._open: ToolUse | None = None
        self._over = False
        self._began = False

    def feed(self, message: EventMessage) -> None:
        if self._over:
            raise Violation("something comes behind the end")
        kind = message.headers[":message-type"]
        payload = json.loads(message.payload)
        if kind == "exception":
            self._fail(message.headers[":exception-type"], payload)
            return
        event = message.headers[":event-type"]
        if event in _FORBIDDEN:
            raise Violation(f"{event} makes the client throw text away")
        if event == "toolUseEvent":
            self._tool(payload)
            return
        if self._open is not None:
            raise Violation(f"{event} ends {self._open.name} early")
        if event == "metadataEvent":
            self._end(payload)
        elif event in _READ:
            self._read(event, payload)

    def close(self) -> Reading:
        if self._open is not None and not self.reading.failure:
            raise Violation(f"{self._open.name} is never closed")
        if not self._over:
            raise Violation("no stop reason: the whole turn would be repeated")
        return self.reading

    def _fail(self, name: str, payload: Json) -> None:
        if name not in _FAILURES:
            raise Violation(f"no client knows the exception {name}")
        if not payload.get("__type") or not payload.get("message"):
            raise Violation("an exception says its type and why")
        self.reading.failure, self.reading.complaint, self._over = name, payload, True

    def _read(self, event: str, payload: Json) -> None:
        if (event == "messageMetadataEvent") == self._began:
            raise Violation(f"{event} at the wrong place: messageMetadataEvent comes first, once")
        self._began = True
        reading = self.reading
        if event == "messageMetadataEvent":
            reading.conversation_id, reading.utterance_id = payload["conversationId"], payload["utteranceId"]
        elif event == "assistantResponseEvent":
            if not payload["content"]:
                raise Violation("a text without a word")
            reading.text += payload["content"]
        elif event == "reasoningContentEvent":
            if len(payload) != 1:
                raise Violation("reasoning is a text or a signature")
            reading.thoughts += payload.get("text", "")
            reading.signatures += [payload["signature"]] if "signature" in payload else []
        else:
            reading.context_percentage = payload["contextUsagePercentage"]

    def _tool(self, payload: Json) -> None:
        if not self._began:
            raise Violation("a tool before the metadata of its message")
        if self._open is None:
            self._open_tool(payload)
            return
        if (payload["toolUseId"], payload["name"]) != (self._open.id, self._open.name):
            raise Violation(f"{payload['name']} would be taken for {self._open.name}")
        if payload.get("stop"):
            if "input" in payload or not self._open.pieces:
                raise Violation("a tool has its input before it stops")
            self.reading.tools.append(self._open)
            assert isinstance(self._open.input, dict)
            self._open = None
        elif not payload.get("input"):
            raise Violation("a piece without a piece")
        else:
            self._open.pieces.append(payload["input"])

    def _open_tool(self, payload: Json) -> None:
        if payload.keys() != {"toolUseId", "name"}:
            raise Violation("what else the first event of a tool says is lost")
        if any(tool.id == payload["toolUseId"] for tool in self.reading.tools):
            raise Violation("two tools have one id")
        self._open = ToolUse(payload["toolUseId"], payload["name"], [])

    def _end(self, payload: Json) -> None:
        reading = self.reading
        if payload.get("stopReason") not in STOP_REASONS:
            raise Violation(f"{payload.get('stopReason')!r} is no stop reason")
        if (payload["stopReason"] == "TOOL_USE") and not reading.tools:
            raise Violation("no tool is used")
        reading.stop_reason, reading.usage, self._over = payload["stopReason"], payload["tokenUsage"], True
        reading.stop_details = payload.get("stopDetails", {})
        asked = reading.usage["uncachedInputTokens"] + reading.usage["cacheReadInputTokens"]
        if reading.usage["totalTokens"] != asked + reading.usage["outputTokens"]:
            raise Violation("the tokens do not add up")


def read(data: bytes) -> Reading:
    """A whole stream, in one piece or as it came."""
    decoder = EventStreamDecoder()
    client = RustCli()
    for message in decoder.feed(data):
        client.feed(message)
    decoder.close()
    return client.close()
