"""Fold a stream of events into the whole answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.errors import DragomanError
from dragoman.ir.events import (
    CallDelta,
    CallEnded,
    CallStarted,
    Cited,
    Event,
    Failed,
    Finished,
    Signed,
    Started,
    TextDelta,
    ThoughtDelta,
    Usage,
)
from dragoman.ir.parts import Citation, Native, ServerCall, ServerResult, Text, Thought, ToolCall
from dragoman.ir.response import Response, Said
from dragoman.ir.signature import AFTER_TEXT, ON_THOUGHT, Signature


class Collector:
    """`feed` events in stream order, then `close` for the answer; a `Failed` is raised by `close`."""

    def __init__(self) -> None:
        self._parts: list[Said] = []
        self._kind: type[Text] | type[Thought] | None = None
        self._pieces: list[str] = []
        self._length = 0
        self._citations: list[Citation] = []
        self._call = CallStarted(id="", name="")
        self._args: list[bytes] = []
        self._native: list[Native] = []
        self._usage = Usage()
        self._started = Started()
        self._finished = Finished(reason="other")
        self._error: DragomanError | None = None

    def feed(self, event: Event) -> None:
        FEEDS[type(event)](self, event)

    def close(self) -> Response:
        if self._error is not None:
            raise self._error
        self._end_run()
        return Response(
            parts=tuple(self._parts),
            usage=self._usage,
            finished=self._finished,
            model=self._started.model,
            response_id=self._started.response_id,
            native=tuple(self._native),
        )

    def _start(self, event: Started) -> None:
        self._started = event

    def _text(self, event: TextDelta) -> None:
        self._append(Text, event.text)

    def _cite(self, event: Cited) -> None:
        self._append(Text, event.text)
        start = self._length - len(event.text)
        self._citations.append(Citation(start=start, end=self._length, sources=event.sources))

    def _think(self, event: ThoughtDelta) -> None:
        self._append(Thought, event.text)

    def _append(self, kind: type[Text] | type[Thought], text: str) -> None:
        if self._kind is not kind:
            self._end_run()
            self._kind = kind
        self._pieces.append(text)
        self._length += len(text)

    def _end_run(self, signature: Signature | None = None) -> None:
        if self._kind is None:
            return
        text = "".join(self._pieces)
        if self._kind is Text:
            self._parts.append(Text(text=text, signature=signature, citations=tuple(self._citations)))
        else:
            self._parts.append(Thought(text=text, signature=signature))
        self._kind, self._pieces, self._length, self._citations = None, [], 0, []

    def _sign(self, event: Signed) -> None:
        kind = Thought if event.target == ON_THOUGHT else Text
        if event.target == AFTER_TEXT or self._kind is not kind:
            self._end_run()
            self._kind = kind
        self._end_run(event.signature)

    def _add(self, part: ServerCall | ServerResult | Native) -> None:
        self._end_run()
        self._parts.append(part)

    def _add_native(self, native: Native) -> None:
        if native.field:
            self._native.append(native)
        else:
            self._add(native)

    def _start_call(self, event: CallStarted) -> None:
        self._end_run()
        self._call, self._args = event, []

    def _add_args(self, event: CallDelta) -> None:
        self._args.append(event.json)

    def _end_call(self, _event: CallEnded) -> None:
        call, args = self._call, b"".join(self._args) or b"{}"
        self._parts.append(ToolCall(id=call.id, name=call.name, args=args, signature=call.signature))

    def _count(self, event: Usage) -> None:
        self._usage = event

    def _finish(self, event: Finished) -> None:
        self._finished = event

    def _fail(self, event: Failed) -> None:
        self._error = event.error


#: What each event means for the whole; all of them are here.
FEEDS: dict[type[Event], Callable[[Collector, Any], None]] = {
    Started: Collector._start,
    TextDelta: Collector._text,
    Cited: Collector._cite,
    ThoughtDelta: Collector._think,
    Signed: Collector._sign,
    CallStarted: Collector._start_call,
    CallDelta: Collector._add_args,
    CallEnded: Collector._end_call,
    ServerCall: Collector._add,
    ServerResult: Collector._add,
    Native: Collector._add_native,
    Usage: Collector._count,
    Finished: Collector._finish,
    Failed: Collector._fail,
}


def collect(events: list[Event]) -> Response:
    collector = Collector()
    for event in events:
        FEEDS[type(event)](collector, event)
    return collector.close()
