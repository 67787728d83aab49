"""A conversation that grows, turn by turn, in every dialect: what is remembered of it changes no byte of what is sent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.bedrock import ConverseClient
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.incremental import decode, envelope, fingerprint_index
from dragoman.ir import ON_TEXT, SealedSignature, Signature
from dragoman.translation.exchange import Exchange
from dragoman.translation.repair import TEXT_KEY_PREFIX
from tests.props.conversation_strategies import Talk, talks
from tests.props.dialect_encoders import TONGUES, speak
from tests.props.no_caches import nothing_known

_MADE: dict[str, ClientDialect] = {"gemini": GeminiClient("m"), "bedrock": ConverseClient("m")}
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def _ask(tongue: str, body: bytes, model: str) -> tuple[Any, ...]:
    tokens = iter(range(10**6))
    client = _MADE.get(tongue) or CLIENTS[tongue]
    exchange = Exchange(client, new_id=lambda: f"{next(tokens):016d}", scope="somebody")
    request = exchange.decode(body)
    sent = exchange.encode(Target(model=model), {key: _sealed(key) for key in exchange.missing_keys})
    return sent, request, exchange.notes, exchange.estimate()


def _sealed(key: str) -> SealedSignature:
    """A store that knows a signature of everything."""
    return SealedSignature(
        Signature(f"of {key}", "gemini-g3"), ON_TEXT if key.startswith(TEXT_KEY_PREFIX) else key
    )


def _turns(talk: Talk) -> Iterator[Talk]:
    """The same conversation, a step more each time."""
    for number, item in enumerate(talk.rounds):
        for steps in range(len(item.steps) + 1):
            last = msgspec.structs.replace(item, steps=item.steps[:steps], answer="")
            yield msgspec.structs.replace(talk, rounds=[*talk.rounds[:number], last])


@pytest.fixture
def short_texts_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Invented conversations are short: they are remembered as if they were long."""
    monkeypatch.setattr(fingerprint_index, "_SHORTEST", 64)
    monkeypatch.setattr(fingerprint_index, "_SAMPLE_BYTES", 16)


@pytest.mark.usefixtures("short_texts_count")
@pytest.mark.parametrize("tongue", TONGUES)
@settings(max_examples=25, deadline=None, suppress_health_check=(*_SLOW, HealthCheck.function_scoped_fixture))
@given(talk=talks(), other=talks(), spaced=st.booleans())
def test_what_is_remembered_changes_nothing(tongue: str, talk: Talk, other: Talk, spaced: bool) -> None:
    forked = msgspec.structs.replace(talk, rounds=[talk.rounds[0], *other.rounds])
    spoken = [speak(tongue, one) for one in (*_turns(talk), forked, talk, other, *_turns(forked))]
    bodies = [json.dumps(json.loads(body)).encode() for body in spoken] if spaced else spoken
    asked = [(body, model) for body in bodies for model in ("gemini-2.5-flash", "gemini-3.8-flash")]
    known = [_ask(tongue, *one) for one in asked]
    with nothing_known():
        assert known == [_ask(tongue, *one) for one in asked]


@pytest.mark.parametrize("tongue", TONGUES)
def test_a_long_conversation_is_read_once(tongue: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes that are read as JSON do not grow with the history, and soon are those of the new messages alone."""
    around: list[int] = []
    alone: list[int] = []
    read_rest, read_elements = decode.IncrementalBodyReader._read_rest, envelope._read_elements

    def counted(
        self: decode.IncrementalBodyReader[Any, Any],
        body: bytes,
        cuts: list[tuple[int, int]],
        *more: Any,
    ) -> Any:
        around.append(len(body) - sum(size for _, size in cuts))
        return read_rest(self, body, cuts, *more)

    def counted_alone(text: bytes) -> list[bytes]:
        alone.append(len(text))
        return read_elements(text)

    monkeypatch.setattr(decode.IncrementalBodyReader, "_read_rest", counted)
    monkeypatch.setattr(envelope, "_read_elements", counted_alone)
    whole = [_grown(tongue, turns) for turns in range(20, 60)]
    for body in whole:
        _ask(tongue, body, "gemini-3.8-flash")
    assert len(around) == (len(whole) - 1 if tongue == "amazonq" else 1)
    assert len(around) + len(alone) == len(whole) - 1
    assert max(around + alone) < 2_000
    assert len(whole[-1]) > 10 * max(around + alone)


def _grown(tongue: str, turns: int) -> bytes:
    words = [f"{tongue} says number {number}: " + "word " * 80 for number in range(turns)]
    pairs = [("user" if number % 2 == 0 else "assistant", text) for number, text in enumerate(words)]
    if tongue == "openai_responses":
        items = [{"type": "message", "role": role, "content": text} for role, text in pairs]
        return _json({"model": "m", "input": items})
    if tongue == "gemini":
        roles = {"user": "user", "assistant": "model"}
        return _json({"contents": [{"role": roles[role], "parts": [{"text": text}]} for role, text in pairs]})
    if tongue == "bedrock":
        return _json({"messages": [{"role": role, "content": [{"text": text}]} for role, text in pairs]})
    if tongue == "amazonq":
        kinds = {"user": "userInputMessage", "assistant": "assistantResponseMessage"}
        said = [{kinds[role]: {"content": text}} for role, text in pairs]
        now = {"userInputMessage": {"content": "now?"}}
        return _json({"conversationState": {"history": said, "currentMessage": now, "conversationId": "c"}})
    return _json({"model": "m", "messages": [{"role": role, "content": text} for role, text in pairs]})


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
