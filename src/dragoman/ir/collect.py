"""Fold a stream of events into the whole answer."""

from __future__ import annotations

from typing import assert_never

from dragoman.errors import DragomanError
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
from dragoman.ir.parts import Native, Text, Thought, ToolCall
from dragoman.ir.response import Response, Said
from dragoman.ir.signature import AFTER_TEXT, ON_THOUGHT, Signature


class Collector:
    """`feed` events in stream order, then `close` for the answer; a `Failed` is raised by `close`."""

    def __init__(self) -> None:
        self._parts: list[Said] = []
        self._kind: type[Text] | type[Thought] | None = None
        self._pieces: list[str] = []
        self._call = CallStarted(id="", name="")
        self._args: list[bytes] = []
        self._native: list[Native] = []
        self._usage = Usage()
        self._started = Started()
        self._finished = Finished(reason="other")
        self._error: DragomanError | None = None

    def feed(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._append(Text, event.text)
            case ThoughtDelta():
                self._append(Thought, event.text)
            case CallStarted():
                self._end_run(None)
                self._call, self._args = event, []
            case CallDelta():
                self._args.append(event.json)
            case CallEnded():
                self._end_call()
            case Signed():
                self._sign(event.signature, event.target)
            case Native():
                self._add_native(event)
            case Usage():
                self._usage = event
            case Started():
                self._started = event
            case Finished():
                self._finished = event
            case Failed():
                self._error = event.error
            case _:
                assert_never(event)

    def close(self) -> Response:
        if self._error is not None:
            raise self._error
        self._end_run(None)
        return Response(
            parts=tuple(self._parts),
            usage=self._usage,
            finished=self._finished,
            model=self._started.model,
            response_id=self._started.response_id,
            native=tuple(self._native),
        )

    def _append(self, kind: type[Text] | type[Thought], text: str) -> None:
        if self._kind is not kind:
            self._end_run(None)
            self._kind = kind
        self._pieces.append(text)

    def _end_run(self, signature: Signature | None) -> None:
        if self._kind is not None:
            self._parts.append(self._kind(text="".join(self._pieces), signature=signature))
        self._kind, self._pieces = None, []

    def _sign(self, signature: Signature, target: str) -> None:
        kind = Thought if target == ON_THOUGHT else Text
        if target == AFTER_TEXT or self._kind is not kind:
            self._end_run(None)
            self._kind = kind
        self._end_run(signature)

    def _add_native(self, native: Native) -> None:
        if native.field:
            self._native.append(native)
        else:
            self._end_run(None)
            self._parts.append(native)

    def _end_call(self) -> None:
        call, args = self._call, b"".join(self._args) or b"{}"
        self._parts.append(ToolCall(id=call.id, name=call.name, args=args, signature=call.signature))


def collect(events: list[Event]) -> Response:
    collector = Collector()
    for event in events:
        collector.feed(event)
    return collector.close()
