"""What always holds between a client and Google, whatever either of them says, in every dialect."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.gemini import encode
from dragoman.dialects.gemini import tools as declarations
from dragoman.incremental import lru
from dragoman.incremental.lru import LruCache
from dragoman.translation.repair import history
from tests.corpus import check
from tests.props.dialect_cases import WIRES
from tests.props.exchange_harness import ANY_END, CHUNKS, ENDS, cut, single_bytes, sse
from tests.props.hypothesis_settings import examples
from tests.unit.dialects.scripted_client import MODELS, refusal

Json = dict[str, Any]

every_dialect = pytest.mark.parametrize("dialect", WIRES)


@every_dialect
@pytest.mark.parametrize("model", MODELS)
@examples(40)
@given(data=st.data())
def test_the_emulator_accepts_whatever_we_send(dialect: str, model: str, data: st.DataObject) -> None:
    wire = WIRES[dialect]
    _, body = wire.exchange(data.draw(wire.conversations), model)
    assert refusal(model, body) == ""
    sent = json.loads(body)
    assert check.request_problems(sent) == []
    assert check.history_problems(sent) == []


@examples(30)
@given(request=WIRES["anthropic"].conversations)
def test_nothing_the_user_said_is_lost(request: Json) -> None:
    exchange, body = WIRES["anthropic"].exchange(request, "gemini-3.8-flash")
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


@every_dialect
@examples(60)
@given(
    data=st.data(),
    chunks=CHUNKS,
    end=ANY_END,
    stream=st.booleans(),
    array=st.booleans(),
    places=st.lists(st.integers(0, 10**6), max_size=12),
)
def test_any_slicing_of_the_upstream_gives_the_same_bytes(
    dialect: str,
    data: st.DataObject,
    chunks: list[Json],
    end: list[Json],
    stream: bool,
    array: bool,
    places: list[int],
) -> None:
    wire = WIRES[dialect]
    request = data.draw(wire.questions)
    upstream = json.dumps(chunks + end).encode() if array else sse(chunks + end)
    expected = wire.client_bytes(request, [upstream], stream=stream)
    assert wire.client_bytes(request, cut(upstream, places), stream=stream) == expected
    assert wire.client_bytes(request, single_bytes(upstream), stream=stream) == expected


@pytest.mark.parametrize("dialect", ["anthropic", "openai_chat", "bedrock"])
@examples(100)
@given(data=st.data(), chunks=CHUNKS, end=ENDS)
def test_a_stream_put_together_equals_the_whole_answer(
    dialect: str, data: st.DataObject, chunks: list[Json], end: Json
) -> None:
    """By the vendor's own accumulator where there is one."""
    wire = WIRES[dialect]
    request, upstream = data.draw(wire.questions), sse([*chunks, end])
    streamed, (remembered, facts, _) = wire.client_bytes(request, [upstream], stream=True)
    whole, (remembered_too, facts_too, _) = wire.client_bytes(request, [upstream], stream=False)
    assert wire.fold(streamed) | {"id": ""} == wire.whole(whole) | {"id": ""}
    assert (remembered, facts) == (remembered_too, facts_too)


@every_dialect
@pytest.mark.parametrize("model", ["gemini-2.5-flash", "gemini-3.8-flash"])
@examples(20)
@given(data=st.data())
def test_caches_change_nothing(dialect: str, model: str, data: st.DataObject) -> None:
    wire = WIRES[dialect]
    request = data.draw(wire.conversations)
    ours = ((declarations, "_DECLARATIONS"), (declarations, "_PARAMETERS"), (encode, "_ENVELOPES"))
    memos = (*wire.memos, *ours)
    with pytest.MonkeyPatch.context() as patch:
        for module, name in memos:
            patch.setattr(module, name, LruCache(max_bytes=0))
        patch.setattr(lru._SharedBudget, "max_bytes", 0)
        cold, without = wire.exchange(request, model)
        patch.setattr(history, "check_history", lambda *_args, **_more: None)
        _, the_long_way = wire.exchange(request, model)
    assert the_long_way == without
    warm, body = wire.exchange(request, model)
    again, same = wire.exchange(request, model)
    assert body == same == without
    assert cold.notes == warm.notes == again.notes
    assert cold.request == warm.request == again.request
