"""The strict reader: it takes every stream we make of Google's answers, and none that a Rust client would misread."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.base import Target
from dragoman.errors import UpstreamIncomplete
from dragoman.http.aws_eventstream import encode_event, encode_event_headers, encode_exception
from dragoman.translation.exchange import Exchange
from tests.unit.dialects.amazonq.builders import body, tool, with_tools
from tests.unit.dialects.amazonq.recorded_answers import google_answers
from tests.unit.dialects.amazonq.strict_reader import Violation, read

Json = dict[str, Any]

THINKING = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}


ANSWERS = google_answers()


def test_there_are_answers_of_every_dialect() -> None:
    kinds = {"/".join(name.split("/")[:2]) for name in ANSWERS}
    assert kinds >= {
        *(f"golden/{name}" for name in ("amazonq", "anthropic", "openai_chat", "openai_responses")),
        *(f"golden/{name}" for name in ("agent", "bedrock", "tool_search")),
        *(f"corpus/{name}" for name in ("amazonq", "anthropic_stream", "chat_stream", "responses_stream")),
        *(f"corpus/{name}" for name in ("finish_reason", "roundtrip", "stream_error", "stream_framing")),
    }
    assert len(ANSWERS) > 90


@pytest.mark.parametrize("fields", [{}, THINKING], ids=["plain", "thinking"])
@pytest.mark.parametrize("name", ANSWERS)
def test_every_stream_of_every_conversation_is_readable(name: str, fields: Json) -> None:
    numbers = itertools.count()
    exchange = Exchange(AmazonQ(), new_id=lambda: f"{next(numbers):016d}")
    exchange.decode(body(with_tools(tool("fs_read", {"type": "object"})), **fields))
    exchange.encode(Target(model="gemini-3.8-flash"))
    answer = ANSWERS[name].replace(b'{"$declared": 0}', b'"fs_read"')
    pieces = [exchange.open()]
    for piece in (answer[:40], answer[40:]):
        pieces += [exchange.receive(piece), exchange.ping()]
    pieces.append(exchange.finish())
    reading = read(b"".join(pieces))
    assert bool(reading.failure) == (exchange.failure is not None)
    assert [used.name for used in reading.tools] == exchange.summary.calls
    if not fields:
        assert (reading.thoughts, reading.signatures) == ("", [])


def event(kind: str, **payload: Any) -> bytes:
    return encode_event(encode_event_headers(kind), json.dumps(payload).encode())


def used(identity: str = "t1", name: str = "x", **more: Any) -> bytes:
    return event("toolUseEvent", toolUseId=identity, name=name, **more)


TOKENS = {
    "uncachedInputTokens": 1,
    "cacheReadInputTokens": 0,
    "cacheWriteInputTokens": 0,
    "outputTokens": 1,
    "totalTokens": 2,
}
OPENED = event("messageMetadataEvent", conversationId="c", utteranceId="u")
SAID = event("assistantResponseEvent", content="a")
USED = used() + used(input="{}") + used(stop=True)
DONE = event("metadataEvent", stopReason="END_TURN", tokenUsage=TOKENS)
CALLED = event("metadataEvent", stopReason="TOOL_USE", tokenUsage=TOKENS)
PING = event("ping")
BROKEN = encode_exception("error", b'{"__type":"InternalServerException","message":"m"}')


@pytest.mark.parametrize(
    "good",
    [
        OPENED + SAID + DONE,
        OPENED
        + PING
        + SAID
        + PING
        + USED
        + PING
        + used("t2")
        + used("t2", input="{}")
        + used("t2", stop=True)
        + CALLED,
        OPENED + SAID + BROKEN,
        OPENED + used() + used(input='{"a') + BROKEN,
        BROKEN,
    ],
)
def test_what_is_well_made_is_read(good: bytes) -> None:
    found = read(good)
    assert bool(found.failure) != bool(found.stop_reason)


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(OPENED + SAID, id="no end at all"),
        pytest.param(OPENED + SAID + event("metadataEvent", tokenUsage=TOKENS), id="no stop reason"),
        pytest.param(
            OPENED + SAID + event("metadataEvent", stopReason="stop", tokenUsage=TOKENS), id="another's word"
        ),
        pytest.param(OPENED + SAID + CALLED, id="a tool that is not there"),
        pytest.param(OPENED + DONE + SAID, id="words behind the end"),
        pytest.param(OPENED + BROKEN + DONE, id="an end behind a failure"),
        pytest.param(SAID + DONE, id="no opening"),
        pytest.param(OPENED + OPENED + DONE, id="two openings"),
        pytest.param(USED + CALLED, id="a tool before the opening"),
        pytest.param(OPENED + used(input="{}") + used(stop=True) + CALLED, id="input in the first event"),
        pytest.param(OPENED + used(input="{}", stop=True) + CALLED, id="all in one event"),
        pytest.param(OPENED + used() + used(stop=True) + CALLED, id="no input"),
        pytest.param(OPENED + used() + used(input="") + used(stop=True) + CALLED, id="an empty piece"),
        pytest.param(OPENED + used() + used(input="{}", stop=True) + CALLED, id="input in the last event"),
        pytest.param(OPENED + used() + used(input="[1]") + used(stop=True) + CALLED, id="no object"),
        pytest.param(OPENED + used() + used(input='{"a') + used(stop=True) + CALLED, id="half an object"),
        pytest.param(OPENED + used() + used(input="{}") + CALLED, id="not closed"),
        pytest.param(
            OPENED + used() + PING + used(input="{}") + used(stop=True) + CALLED, id="a ping inside"
        ),
        pytest.param(OPENED + used() + used(input="{}") + SAID + used(stop=True) + CALLED, id="words inside"),
        pytest.param(
            OPENED
            + used()
            + used("t2")
            + used(input="{}")
            + used("t2", input="{}")
            + used(stop=True)
            + CALLED,
            id="interleaved",
        ),
        pytest.param(OPENED + USED + USED + CALLED, id="one id twice"),
        pytest.param(OPENED + SAID + event("codeReferenceEvent", references=[]) + DONE, id="code references"),
        pytest.param(OPENED + event("assistantResponseEvent", content="") + DONE, id="empty text"),
        pytest.param(
            OPENED + event("reasoningContentEvent", text="a", signature="b") + DONE, id="both at once"
        ),
        pytest.param(OPENED + encode_exception("internalServerException", b"{}"), id="a name nobody knows"),
        pytest.param(OPENED + encode_exception("error", b'{"message":"m"}'), id="a failure without a type"),
        pytest.param(
            OPENED + event("metadataEvent", stopReason="END_TURN", tokenUsage={**TOKENS, "totalTokens": 9}),
            id="tokens that do not add up",
        ),
    ],
)
def test_every_violation_is_found(bad: bytes) -> None:
    with pytest.raises(Violation):
        read(bad)


def test_a_stream_that_ends_inside_a_frame_is_cut() -> None:
    with pytest.raises(UpstreamIncomplete):
        read(OPENED + DONE[:-1])
