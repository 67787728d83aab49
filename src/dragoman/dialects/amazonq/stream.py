"""Encode events as Amazon's event stream."""

from __future__ import annotations

from typing import get_args

from dragoman.dialects.amazonq.decode import Echo
from dragoman.dialects.amazonq.errors import stream_error
from dragoman.dialects.amazonq.events import AnswerEvents, EncodedEvents, Kind
from dragoman.dialects.base import Answer
from dragoman.errors import DragomanError
from dragoman.eventstream import encode_event, encode_event_headers, encode_exception
from dragoman.ir import Event, Failed

_HEADS: dict[Kind, bytes] = {kind: encode_event_headers(kind) for kind in get_args(Kind)}
_PING = encode_event(encode_event_headers("ping"), b"{}")


class AssistantStream:
    """Frames the events of `AnswerEvents`; a failure is an exception, because a plain end looks like success."""

    def __init__(self, answer: Answer) -> None:
        self._events = AnswerEvents(answer)
        self._echo: Echo = answer.echo or Echo()

    def open(self) -> bytes:
        return _framed(self._events.open())

    def feed(self, event: Event) -> bytes:
        return self.fail(event.error) if isinstance(event, Failed) else _framed(self._events.feed(event))

    def ping(self) -> bytes:
        """Return an event of an unknown type, which clients ignore.

        It would end a tool, but it never falls inside one, because every tool is emitted at once.
        """
        return _PING

    def fail(self, error: DragomanError) -> bytes:
        return encode_exception(*stream_error(error, kiro=self._echo.kiro))


def _framed(told: EncodedEvents) -> bytes:
    return b"".join(encode_event(_HEADS[kind], payload) for kind, payload in told)
