"""Events through the stream machine, and frames as short tuples."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.amazonq.decode import Echo
from dragoman.dialects.base import Answer
from dragoman.ir import Event
from tests.corpus.amazonq_adapter import parse_frames
from tests.unit.dialects import stream_checks as shared

Json = dict[str, Any]

call = partial(shared.call, name="fs_read")


def answer(*, with_thinking: bool = True, kiro: bool = False, context_tokens: int = 0) -> Answer:
    return Answer(
        id="utt_1",
        model="auto",
        input_tokens=7,
        with_thinking=with_thinking,
        context_tokens=context_tokens,
        echo=Echo(conversation_id="c-1", kiro=kiro),
    )


def stream_bytes(events: Sequence[Event], to: Answer | None = None) -> bytes:
    return shared.streamed_bytes(AmazonQ(), events, to or answer())


def frames(events: Sequence[Event], to: Answer | None = None) -> list[tuple[str, Json]]:
    """Behind the opening, without the end."""
    found = parse_frames(stream_bytes(events, to))
    assert found[0][0] == "messageMetadataEvent"
    assert found[-1][0] == "metadataEvent"
    return found[1:-1]


def last(events: Sequence[Event], to: Answer | None = None) -> Json:
    return parse_frames(stream_bytes(events, to))[-1][1]


def whole(events: Sequence[Event], to: Answer | None = None) -> list[tuple[str, Json]]:
    document = json.loads(shared.whole_bytes(AmazonQ(), events, to or answer()))
    return [next(iter(event.items())) for event in document["events"]]
