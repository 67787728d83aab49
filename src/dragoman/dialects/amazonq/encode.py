"""A whole answer as the list of its events: Amazon Q itself has nothing but streams."""

from __future__ import annotations

from dragoman.dialects.amazonq.events import AnswerEvents
from dragoman.dialects.base import Answer
from dragoman.ir import Response, replay


def encode_response(response: Response, answer: Answer) -> bytes:
    events = AnswerEvents(answer)
    told = events.open()
    for event in replay(response):
        told += events.feed(event)
    return b'{"events":[%b]}' % b",".join(b'{"%b":%b}' % (kind.encode(), payload) for kind, payload in told)


def encode_count(tokens: int) -> bytes:
    """Nobody asks: Amazon Q counts only what it has answered."""
    return b'{"inputTokens":%d}' % tokens
