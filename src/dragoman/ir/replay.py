"""Turn a whole response into events: the inverse of `collect`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from dragoman.ir.collect import AnswerPart, Response
from dragoman.ir.events import CitedText, Event, SignatureDelta, Started, TextDelta, ThoughtDelta
from dragoman.ir.parts import Native, ServerCall, ServerResult, Text, Thought, ToolCall
from dragoman.ir.signature import AFTER_TEXT, ON_TEXT, ON_THOUGHT


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
