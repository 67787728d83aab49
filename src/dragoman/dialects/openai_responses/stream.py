"""Encode events as the event stream of the Responses API.

A complete answer is the response object in the last event of such a stream.
See https://platform.openai.com/docs/api-reference/responses-streaming.
"""

from __future__ import annotations

from typing import Any, assert_never

import msgspec

from dragoman.dialects.base import Answer
from dragoman.dialects.openai_responses import output_items, server_tools_out, tool_search
from dragoman.dialects.openai_responses.encode import echo_of, encode_body, status_of
from dragoman.dialects.openai_responses.errors import stream_error
from dragoman.errors import DragomanError
from dragoman.ir import (
    AFTER_TEXT,
    ON_THOUGHT,
    CitedText,
    Event,
    Failed,
    Finished,
    Native,
    Response,
    ServerCall,
    ServerResult,
    SignatureDelta,
    Source,
    Started,
    TextDelta,
    ThoughtDelta,
    ToolCall,
    Usage,
    replay,
    seal,
)

_json = msgspec.json.Encoder().encode
_EVENT = b'event: %b\ndata: {"type":"%b","sequence_number":%d,%b}\n\n'
_TEXT = (
    b'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":%d,'
    b'%b,"content_index":0,"delta":%b,"logprobs":[]}\n\n'
)

#: An SSE comment, which parsers ignore.
_PING = b": ping\n\n"

_MESSAGE, _REASONING = "message", "reasoning"


def encode_response(response: Response, answer: Answer) -> bytes:
    """Encode a complete answer, by streaming it."""
    stream = ResponsesStream(answer)
    for event in replay(response):
        stream.feed(event)
    return stream.body


def failed_stream(error: DragomanError, answer: Answer) -> bytes:
    """Return a complete stream that contains only an error."""
    stream = ResponsesStream(answer)
    return stream.open() + stream.fail(error)


class OutputPosition:
    """The position of an item in the output, and its JSON fields in events."""

    __slots__ = ("index", "json")

    def __init__(self, index: int, identity: str) -> None:
        self.index = index
        self.json = b'"item_id":%b,"output_index":%d' % (_json(identity), index)

    def indexed(self, item: bytes) -> bytes:
        """Return the fields of an event that contains the whole item."""
        return b'"output_index":%d,"item":%b' % (self.index, item)


class ResponsesStream:
    """The stream of one answer.

    Grammar: response.created, response.in_progress, items (added, parts, done; rising index), and one final event.
    Items are sent one at a time, except for calls of server tools, several of which may run at once.

    A call is sent when it is complete, because Codex runs it as soon as its item is done. A reasoning item may hold
    the signature of the call that follows it. Clients that did not ask for reasoning get no reasoning items; for them
    the gateway keeps signatures in its store. For a compaction request, the text of the answer becomes one compaction
    item.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self._echo = echo_of(answer)
        self._number = -1
        self._items: list[bytes] = []
        self._open = ""
        self._id = ""
        self._where = OutputPosition(0, "")
        self._pieces: list[str] = []
        self._chars = 0
        self._annotations: list[dict[str, Any]] = []
        self._found: dict[str, Source] = {}
        self._placed = False  # whether a citation was sent
        self._running: dict[str, tuple[ServerCall, OutputPosition]] = {}
        self._encrypted: str | None = None
        self._usage: Usage | None = None
        self.body = b""  # the final response object, once the stream has ended

    def open(self) -> bytes:
        body = b'"response":%b' % encode_body(self._answer, "in_progress")
        return self._event("response.created", body) + self._event("response.in_progress", body)

    def ping(self) -> bytes:
        return _PING

    def feed(self, event: Event) -> bytes:
        if isinstance(event, TextDelta):  # nearly every event
            return self._text(event.text)
        match event:
            case CitedText():
                return self._cited(event)
            case ThoughtDelta():
                return self._thought(event)
            case SignatureDelta():
                return self._signed(event)
            case ToolCall():
                return self._call(event)
            case ServerCall() | ServerResult():
                return self._served(event)
            case _:
                return self._note(event)

    def _note(self, event: Usage | Started | Native | Finished | Failed) -> bytes:
        match event:
            case Usage():
                self._usage = event
                return b""
            case Started() | Native():
                return b""
            case Finished():
                return self._finish(event)
            case Failed():
                return self.fail(event.error)
            case _:
                assert_never(event)

    def fail(self, error: DragomanError) -> bytes:
        out = self._leave("incomplete")
        for call, place in list(self._running.values()):
            out += self._end_served(call, place, None)
        return out + self._end("failed", error=stream_error(error))

    def _text(self, text: str) -> bytes:
        if not text:
            return b""
        if self._echo.compacts:
            self._pieces.append(text)
            return b""
        opening = b""
        if self._open != _MESSAGE:
            opening = self._leave() + self._start(_MESSAGE)
            opening += self._part("response.content_part.added", output_items.text_part(""))
        self._pieces.append(text)
        self._chars += len(text)
        self._number += 1
        return opening + _TEXT % (self._number, self._where.json, _json(text))

    def _cited(self, event: CitedText) -> bytes:
        out = self._text(event.text)
        if self._open != _MESSAGE:  # as in a compaction, which has no message
            return out
        self._placed = True
        for entry in server_tools_out.url_citations(
            event.sources, self._chars - len(event.text), self._chars
        ):
            fields = {"content_index": 0, "annotation_index": len(self._annotations), "annotation": entry}
            self._annotations.append(entry)
            out += self._at("response.output_text.annotation.added", fields)
        return out

    def _uncited(self) -> bytes:
        """Cite all sources at the end of the text if the upstream did not say which text they support."""
        if self._placed or not self._found or self._open != _MESSAGE:
            return b""
        return self._cited(CitedText("", tuple(self._found.values())))

    def _served(self, event: ServerCall | ServerResult) -> bytes:
        """Encode a call or result of a server tool: the call opens an item, the result closes it."""
        if self._echo.compacts or event.kind not in server_tools_out.KINDS:
            return b""
        if isinstance(event, ServerResult) and event.kind == "tool_search":
            return self._whole_item(tool_search.output_item(event, self._echo.sources))
        if isinstance(event, ServerResult):
            self._found |= {source.url: source for source in event.sources if not source.error}
            call, place = self._running[event.call_id]
            told = self._events_at(place, server_tools_out.closing(call, event))
            return told + self._end_served(call, place, event)
        out = b""
        if event.signature is not None and self._carries:
            out = self._enter_reasoning()
            self._encrypted = seal(event.signature, event.id)
        out += self._leave()
        if event.kind == "tool_search":
            return out + self._whole_item(tool_search.call_item(event))
        item = server_tools_out.in_progress_item(event)
        out += self._added(item["id"], item)
        self._running[event.id] = event, self._where
        return out + self._events_at(self._where, server_tools_out.opening(event))

    def _whole_item(self, item: dict[str, Any]) -> bytes:
        """Add an item and complete it at once."""
        return self._added(item["id"], {**item, "status": "in_progress"}) + self._done(item)

    def _end_served(self, call: ServerCall, place: OutputPosition, result: ServerResult | None) -> bytes:
        del self._running[call.id]
        return self._done(server_tools_out.done_item(call, result, self._echo.includes), place)

    def _events_at(self, place: OutputPosition, told: server_tools_out.ItemEvents) -> bytes:
        return b"".join(self._at(event, fields, place) for event, fields in told)

    def _thought(self, event: ThoughtDelta) -> bytes:
        if not event.text or not self._carries:
            return b""
        out = self._enter_reasoning()
        if not self._pieces:
            out += self._summary("part.added", part=output_items.summary_part(""))
        self._pieces.append(event.text)
        return out + self._summary("text.delta", delta=event.text)

    def _signed(self, event: SignatureDelta) -> bytes:
        """Encode a signature of a thought, or of the end of an answer that ended with a thought."""
        thinking = self._open == _REASONING
        if not self._carries or not (thinking or event.target == ON_THOUGHT):
            return b""
        target = ON_THOUGHT if event.target == ON_THOUGHT else AFTER_TEXT
        out = self._enter_reasoning()
        self._encrypted = seal(event.signature, target)
        return out + self._leave()

    def _call(self, call: ToolCall) -> bytes:
        if self._echo.compacts:
            return b""
        out = b""
        if call.signature is not None and self._carries:
            out = self._enter_reasoning()
            self._encrypted = seal(call.signature, call.id)
        out += self._leave()
        face = self._echo.client_tool(call.name)
        item = output_items.call_item(self._new_id(face.item), face, call.id, call.args)
        out += self._added(item["id"], output_items.in_progress(item))
        if "arguments" in item and isinstance(item["arguments"], str):
            out += self._delta_and_done("response.function_call_arguments", "arguments", item["arguments"])
        elif "input" in item:
            out += self._delta_and_done("response.custom_tool_call_input", "input", item["input"])
        return out + self._done(item)

    def _finish(self, finished: Finished) -> bytes:
        status, incomplete = status_of(finished)
        if self._echo.compacts:
            item = output_items.compaction_item(self._new_id("compaction"), "".join(self._pieces))
            out = self._added(item["id"], item) + self._done(item)
        else:
            out = self._uncited() + self._leave(status)
            if incomplete == "content_filter":
                out += self._refuse(finished.detail or f"Gemini stopped with {finished.raw}")
        return out + self._end(status, incomplete=incomplete)

    def _refuse(self, why: str) -> bytes:
        """Add a message with a refusal, which clients show to the user (known problem D7)."""
        part = output_items.refusal_part(why)
        out = self._start(_MESSAGE) + self._part("response.content_part.added", output_items.refusal_part(""))
        out += self._at("response.refusal.delta", {"content_index": 0, "delta": why})
        out += self._at("response.refusal.done", {"content_index": 0, "refusal": why})
        out += self._part("response.content_part.done", part)
        self._open = ""
        return out + self._done(output_items.message_item(self._id, [part], "completed"))

    def _end(self, status: str, **more: Any) -> bytes:
        self.body = encode_body(
            self._answer, status, output=self._items, usage=self._usage or Usage(), **more
        )
        return self._event(f"response.{status}", b'"response":%b' % self.body)

    @property
    def _carries(self) -> bool:
        return self._echo.carries and not self._echo.compacts

    def _enter_reasoning(self) -> bytes:
        return b"" if self._open == _REASONING else self._leave() + self._start(_REASONING)

    def _start(self, kind: str) -> bytes:
        self._open, self._pieces, self._encrypted = kind, [], None
        self._chars, self._annotations = 0, []
        identity = self._new_id(kind)
        item = (
            output_items.message_item(identity, [], "in_progress")
            if kind == _MESSAGE
            else output_items.reasoning_item(identity, "", None, "in_progress")
        )
        return self._added(identity, item)

    def _leave(self, status: str = "completed") -> bytes:
        kind, text = self._open, "".join(self._pieces)
        self._open = ""
        if kind == _MESSAGE:
            part = output_items.text_part(text, self._annotations)
            done = {"content_index": 0, "text": text, "logprobs": []}
            return (
                self._at("response.output_text.done", done)
                + self._part("response.content_part.done", part)
                + self._done(output_items.message_item(self._id, [part], status))
            )
        if kind == _REASONING:
            out = b""
            if text:
                out = self._summary("text.done", text=text)
                out += self._summary("part.done", part=output_items.summary_part(text))
            return out + self._done(output_items.reasoning_item(self._id, text, self._encrypted, status))
        return b""

    def _new_id(self, kind: str) -> str:
        return output_items.item_id(self._answer.id, kind, len(self._items))

    def _added(self, identity: str, item: dict[str, Any]) -> bytes:
        self._id = identity
        self._where = OutputPosition(len(self._items), identity)
        self._items.append(b"")
        return self._event("response.output_item.added", self._where.indexed(_json(item)))

    def _done(self, item: dict[str, Any], place: OutputPosition | None = None) -> bytes:
        raw = _json(item)
        place = place or self._where
        self._items[place.index] = raw
        return self._event("response.output_item.done", place.indexed(raw))

    def _delta_and_done(self, event: str, field: str, text: str) -> bytes:
        return self._at(f"{event}.delta", {"delta": text}) + self._at(f"{event}.done", {field: text})

    def _part(self, event: str, part: dict[str, Any]) -> bytes:
        return self._at(event, {"content_index": 0, "part": part})

    def _summary(self, event: str, **fields: Any) -> bytes:
        return self._at(f"response.reasoning_summary_{event}", {"summary_index": 0, **fields})

    def _at(self, event: str, fields: dict[str, Any], place: OutputPosition | None = None) -> bytes:
        told = b",%b" % _json(fields)[1:-1] if fields else b""
        return self._event(event, (place or self._where).json + told)

    def _event(self, event: str, fields: bytes) -> bytes:
        self._number += 1
        name = event.encode()
        return _EVENT % (name, name, self._number, fields)
