"""What always holds between an Anthropic client and Google, whatever either of them says."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.dialects import anthropic
from dragoman.dialects.anthropic import decode as decode_module
from dragoman.dialects.anthropic import tools as tools_module
from dragoman.dialects.base import Target
from dragoman.dialects.gemini import tools as declarations_module
from dragoman.exchange import Exchange
from dragoman.ir import Message
from dragoman.memo import Memo
from dragoman.repair import history as history_module
from tests.corpus import check
from tests.unit.dialects.anthropic.inventing import WORDS, conversations
from tests.unit.dialects.anthropic.playing import MODELS, refusal
from tests.unit.dialects.anthropic.streaming import assembled

Json = dict[str, Any]

_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large)


def _examples(number: int) -> settings:
    return settings(max_examples=number, deadline=None, suppress_health_check=_SLOW)


def _exchange(request: Json, model: str) -> tuple[Exchange, bytes]:
    # A stream takes its own id first, a whole answer last: this way their calls have the same ids.
    tokens = iter(range(-1 if request.get("stream") else 0, 10**6))
    exchange = Exchange(anthropic, new_token=lambda: f"{next(tokens):016d}")
    exchange.decode(json.dumps(request).encode())
    return exchange, exchange.encode(Target(model=model))


@pytest.mark.parametrize("model", MODELS)
@_examples(40)
@given(request=conversations())
def test_the_emulator_accepts_whatever_we_send(model: str, request: Json) -> None:
    _, body = _exchange(request, model)
    assert refusal(model, body) == ""
    sent = json.loads(body)
    assert check.request_problems(sent) == []
    assert check.history_problems(sent) == []


@_examples(30)
@given(request=conversations())
def test_nothing_the_user_said_is_lost(request: Json) -> None:
    exchange, body = _exchange(request, "gemini-3.8-flash")
    sent = json.dumps(_strings(json.loads(body)), ensure_ascii=False)
    for message in exchange.request.messages:
        for part in message.parts if message.role == "user" else ():
            assert json.dumps(getattr(part, "text", ""), ensure_ascii=False)[1:-1] in sent


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [word for item in value.values() for word in _strings(item)]
    if isinstance(value, list):
        return [word for item in value for word in _strings(item)]
    return [value] if isinstance(value, str) else []


PARTS = st.one_of(
    WORDS.map(lambda words: {"text": words}),
    WORDS.map(lambda words: {"text": words, "thought": True}),
    st.builds(
        lambda words, sign: {"text": words, "thoughtSignature": sign}, WORDS, st.sampled_from(["YQ", "Yg"])
    ),
    st.just({"text": "", "thought": True, "thoughtSignature": "Yw"}),
    st.builds(
        lambda name, args: {"functionCall": {"name": name, "args": args}},
        st.sampled_from(["Read", "Bash", "unknown"]),
        st.dictionaries(WORDS, WORDS, max_size=2),
    ),
    st.just({"functionCall": {"name": "Read", "id": "g7"}, "thoughtSignature": "ZA"}),
    st.just({"inlineData": {"mimeType": "image/png", "data": "AAAA"}}),
)
USAGE = st.fixed_dictionaries(
    {},
    optional={
        "promptTokenCount": st.integers(0, 99),
        "cachedContentTokenCount": st.integers(0, 99),
        "candidatesTokenCount": st.integers(0, 99),
        "thoughtsTokenCount": st.integers(0, 99),
    },
)
CHUNKS = st.lists(
    st.builds(
        lambda parts, usage: {
            "candidates": [{"content": {"parts": parts, "role": "model"}}],
            "usageMetadata": usage,
        },
        st.lists(PARTS, max_size=3),
        USAGE,
    ),
    max_size=5,
)
ENDS = st.sampled_from(
    [
        {"candidates": [{"finishReason": "STOP"}]},
        {
            "candidates": [
                {"content": {"parts": [{"text": "", "thoughtSignature": "ZQ"}]}, "finishReason": "STOP"}
            ]
        },
        {
            "candidates": [{"content": {}, "finishReason": "MAX_TOKENS"}],
            "usageMetadata": {"promptTokenCount": 5},
        },
        {"candidates": [{"finishReason": "SAFETY", "finishMessage": "no"}]},
        {"promptFeedback": {"blockReason": "SAFETY"}},
    ]
)
BREAKS = st.sampled_from([[], [{"error": {"code": 503, "message": "high demand", "status": "UNAVAILABLE"}}]])
REQUEST = {
    "model": "claude-x",
    "max_tokens": 9000,
    "messages": [{"role": "user", "content": "q"}],
    "tools": [{"name": "Read", "input_schema": {"type": "object"}}, {"name": "Bash", "input_schema": {}}],
}
THINKING = st.sampled_from([{}, {"thinking": {"type": "adaptive"}}, {"thinking": {"type": "disabled"}}])


def _client_bytes(request: Json, pieces: list[bytes]) -> tuple[bytes, Any]:
    exchange, _ = _exchange(request, "gemini-3.8-flash")
    out = exchange.open() + b"".join(map(exchange.receive, pieces)) + exchange.finish()
    return out, (exchange.memories, exchange.facts, exchange.notes)


def _sse(chunks: list[Json]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)


def _cut(data: bytes, places: list[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[start:end] for start, end in pairwise(marks)]


@_examples(60)
@given(
    chunks=CHUNKS,
    end=st.one_of(ENDS.map(lambda end: [end]), BREAKS),
    fields=THINKING,
    stream=st.booleans(),
    array=st.booleans(),
    places=st.lists(st.integers(0, 10**6), max_size=12),
)
def test_any_slicing_of_the_upstream_gives_the_same_bytes(
    chunks: list[Json], end: list[Json], fields: Json, stream: bool, array: bool, places: list[int]
) -> None:
    request = {**REQUEST, **fields, "stream": stream}
    data = json.dumps(chunks + end).encode() if array else _sse(chunks + end)
    expected = _client_bytes(request, [data])
    assert _client_bytes(request, _cut(data, places)) == expected
    assert _client_bytes(request, [data[i : i + 1] for i in range(len(data))]) == expected


@_examples(100)
@given(chunks=CHUNKS, end=ENDS, fields=THINKING)
def test_a_stream_put_together_equals_the_whole_answer(chunks: list[Json], end: Json, fields: Json) -> None:
    data = _sse([*chunks, end])
    streamed, (remembered, facts, _) = _client_bytes({**REQUEST, **fields, "stream": True}, [data])
    whole, (remembered_too, facts_too, _) = _client_bytes({**REQUEST, **fields, "stream": False}, [data])
    assert assembled(streamed) | {"id": ""} == json.loads(whole) | {"id": ""}
    assert check.anthropic_message_problems(json.loads(whole)) == []
    assert (remembered, facts) == (remembered_too, facts_too)


@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.8-flash"])
@_examples(20)
@given(request=conversations())
def test_caches_change_nothing(model: str, request: Json) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (decode_module, "_MESSAGES"),
            (tools_module, "_TOOL_SETS"),
            (declarations_module, "_DECLARATIONS"),
            (declarations_module, "_PARAMETERS"),
        ):
            patch.setattr(module, name, Memo(max_bytes=0))
        patch.setattr(Message, "notebook", property(lambda _message: {}))
        cold, without = _exchange(request, model)
        patch.setattr(history_module, "sound_history", lambda *_args, **_more: None)
        _, the_long_way = _exchange(request, model)
    assert the_long_way == without
    warm, body = _exchange(request, model)
    again, same = _exchange(request, model)
    assert body == same == without
    assert cold.notes == warm.notes == again.notes
    assert cold.request == warm.request == again.request
