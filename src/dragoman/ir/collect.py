"""A whole answer: `collect` folds a stream of events into a `Response`; `replay` is the inverse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, assert_never

import msgspec

from dragoman.errors import DragomanError
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
from dragoman.ir.parts import Citation, Native, ServerCall, ServerResult, Text, Thought, ToolCall
from dragoman.ir.signature import AFTER_TEXT, ON_TEXT, ON_THOUGHT, Signature

AnswerPart = Text | Thought | ToolCall | ServerCall | ServerResult | Native


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer; `native` are the response fields that only the Gemini dialect can express."""

    parts: tuple[AnswerPart, ...] = ()
    usage: Usage = Usage()
    finished: Finished = Finished(reason="other")
    model: str = ""
    response_id: str = ""
    native: tuple[Native, ...] = ()


class Collector:
    """Takes events in stream order with `feed`; `close` returns the response, or raises the error of a `Failed`.

    Consecutive pieces of text, or of thought, form a run that becomes one part.
    """

    _kind: type[TextDelta] | type[ThoughtDelta] | None = None  # event type of the open run
    _measured_pieces = _measured_chars = (
        0  # pieces of the run measured so far, and their total length in characters
    )
    _usage = Usage()
    _started = Started()
    _finished = Finished(reason="other")
    _error: DragomanError | None = None

    def __init__(self) -> None:
        self._parts: list[AnswerPart] = []
        self._pieces: list[str] = []
        self._citations: list[Citation] = []
        self._native: list[Native] = []

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

    def _add_text(self, event: TextDelta | ThoughtDelta) -> None:
        kind = type(event)
        if self._kind is not kind:
            self._end_run()
            self._kind = kind
        self._pieces.append(event.text)

    def _add_cited(self, event: CitedText) -> None:
        self._add_text(TextDelta(event.text))
        self._measured_chars += sum(map(len, self._pieces[self._measured_pieces :]))
        self._measured_pieces = len(self._pieces)
        start = self._measured_chars - len(event.text)
        self._citations.append(Citation(start=start, end=self._measured_chars, sources=event.sources))

    def _end_run(self, signature: Signature | None = None) -> None:
        if self._kind is None:
            return
        text = "".join(self._pieces)
        if self._kind is TextDelta:
            self._parts.append(Text(text=text, signature=signature, citations=tuple(self._citations)))
            self._citations, self._measured_pieces, self._measured_chars = [], 0, 0
        else:
            self._parts.append(Thought(text=text, signature=signature))
        self._kind, self._pieces = None, []

    def _sign(self, event: SignatureDelta) -> None:
        """End the run with a signature; a signature without a matching run becomes an empty part."""
        kind = ThoughtDelta if event.target == ON_THOUGHT else TextDelta
        if event.target == AFTER_TEXT or self._kind is not kind:
            self._end_run()
            self._kind = kind
        self._end_run(event.signature)

    def _add(self, part: ToolCall | ServerCall | ServerResult | Native) -> None:
        self._end_run()
        self._parts.append(part)

    def _add_native(self, native: Native) -> None:
        if native.field:
            self._native.append(native)
        else:
            self._add(native)

    def _count(self, event: Usage) -> None:
        self._usage = event

    def _finish(self, event: Finished) -> None:
        self._finished = event

    def _fail(self, event: Failed) -> None:
        self._error = event.error


#: The handler of each event type. Every type of `Event` has an entry.
FEEDS: dict[type[Event], Callable[[Collector, Any], None]] = {
    Started: Collector._start,
    TextDelta: Collector._add_text,
    CitedText: Collector._add_cited,
    ThoughtDelta: Collector._add_text,
    SignatureDelta: Collector._sign,
    ToolCall: Collector._add,
    ServerCall: Collector._add,
    ServerResult: Collector._add,
    Native: Collector._add_native,
    Usage: Collector._count,
    Finished: Collector._finish,
    Failed: Collector._fail,
}


def collect(events: list[Event]) -> Response:
    """Return the response that these events form. Raise the error of a `Failed`."""
    collector = Collector()
    for event in events:
        FEEDS[type(event)](collector, event)
    return collector.close()


def replay(response: Response) -> Iterator[Event]:
    yield Started(response.model, response.response_id)
    for part in response.parts:
        yield from _replay_part(part)
    yield from response.native
    yield response.usage
    yield response.finished


def _replay_part(part: AnswerPart) -> Iterator[Event]:
    match part:
        case Text():
            yield from text_events(part)
            if part.signature:
                yield SignatureDelta(part.signature, ON_TEXT if part.text else AFTER_TEXT)
        case Thought():
            if part.text:
                yield ThoughtDelta(part.text)
            if part.signature:
                yield SignatureDelta(part.signature, ON_THOUGHT)
        case ToolCall() | ServerCall() | ServerResult() | Native():
            yield part
        case _:
            assert_never(part)


def text_events(part: Text) -> Iterator[TextDelta | CitedText]:
    """Yield the pieces of a text: `Cited` for those with sources, `TextDelta` for the rest."""
    said = 0
    for citation in part.citations:
        if said < citation.start:
            yield TextDelta(part.text[said : citation.start])
        yield CitedText(part.text[citation.start : citation.end], citation.sources)
        said = citation.end
    if said < len(part.text):
        yield TextDelta(part.text[said:])
