"""Encode a complete response as a JSON list of its events; Amazon Q's own API only streams."""

from __future__ import annotations

from dragoman.dialects.amazonq.events import AnswerEvents
from dragoman.dialects.base import Answer
from dragoman.ir import Response, replay


def encode_response(response: Response, answer: Answer) -> bytes:
    events = AnswerEvents(answer)
    encoded = events.open()
    for event in replay(response):
        encoded += events.feed(event)
    return b'{"events":[%b]}' % b",".join(
        b'{"%b":%b}' % (kind.encode(), payload) for kind, payload in encoded
    )


def encode_count(tokens: int) -> bytes:
    """Return a token count in Bedrock's format; Amazon Q's own API has no operation for it."""
    return b'{"inputTokens":%d}' % tokens
