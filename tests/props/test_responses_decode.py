"""Any input: read or refused by its place, and the caches change nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.dialects import openai_responses
from dragoman.dialects.base import Decoded, Target
from dragoman.dialects.openai_responses import tools as tooling
from dragoman.dialects.openai_responses.conversation_state import expand, input_items
from dragoman.dialects.openai_responses.items import _READERS
from dragoman.errors import InvalidRequest
from dragoman.incremental.lru import LruCache
from dragoman.ir import Signature, seal
from dragoman.translation.exchange import Exchange
from tests.props.no_caches import nothing_known
from tests.unit.dialects.openai_responses.builders import call, function, message, output, reasoning, user
from tests.unit.dialects.scripted_client import refusal

Json = dict[str, Any]

POOL: list[Json] = [
    user("a"),
    user("b"),
    message("developer", "mind"),
    message("assistant", "ok"),
    reasoning("call_1"),
    reasoning("call_2", words=""),
    reasoning(encrypted_content=seal(Signature("eA==", "gemini-g4"), "call_1")),
    call("call_1"),
    call("call_2", name="deep", namespace="ns"),
    output(call_id="call_1"),
    output("x", call_id="call_2"),
    {"type": "custom_tool_call", "call_id": "call_3", "name": "patch", "input": "x"},
    {"type": "custom_tool_call_output", "call_id": "call_3", "output": "y"},
    {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "q"}},
    {"type": "additional_tools", "role": "developer", "tools": [function("late")]},
    {"type": "compaction", "encrypted_content": "?"},
]
HISTORIES = st.lists(st.sampled_from(POOL), min_size=1, max_size=12)
LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = """role id call_id name namespace content arguments input output status summary encrypted_content tools
action operation author recipient result queries""".split()
ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from([*_READERS, "message", "hologram", ""])},
    optional=dict.fromkeys(FIELDS, ANYTHING),
)


def body(items: list[Any], **fields: Any) -> bytes:
    return json.dumps({"model": "m", "input": items, "tools": [function()], **fields}).encode()


def place_of_refusal(raw: bytes) -> str | None:
    try:
        openai_responses.decode_request(raw, {})
    except InvalidRequest as error:
        return error.where
    return None


def cold(raw: bytes) -> Decoded:
    with nothing_known(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(tooling, "_TOOL_SETS", LruCache(max_bytes=0))
        return openai_responses.decode_request(raw, {})


@settings(max_examples=150, deadline=None)
@given(history=HISTORIES)
def test_the_caches_change_nothing(history: list[Json]) -> None:
    raw = body(history)
    warm = openai_responses.decode_request(raw, {})
    fresh = cold(raw)
    assert warm.request == fresh.request == openai_responses.decode_request(raw, {}).request
    assert warm.notes == fresh.notes


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(history=HISTORIES, model=st.sampled_from(["gemini-2.5-flash", "gemini-3.8-flash", "gemini-4-argon"]))
def test_c1_google_takes_whatever_a_client_kept(history: list[Json], model: str) -> None:
    exchange = Exchange(openai_responses, new_id=lambda: "t")
    exchange.decode(body([*history, user("and now?")]))
    target = Target(model=model, trust_signatures=False)  # the pool's are nobody's
    assert refusal(model, exchange.encode(target)) == ""


@settings(max_examples=300, deadline=None)
@given(items=st.lists(ITEMS | ANYTHING, min_size=1, max_size=3))
def test_any_item_is_read_or_refused_at_its_place(items: list[Any]) -> None:
    where = place_of_refusal(body(items))
    assert where is None or where.startswith("input[")


@settings(max_examples=200, deadline=None)
@given(
    fields=st.dictionaries(
        st.sampled_from(
            "tools tool_choice reasoning text include metadata conversation prompt stream store".split()
        ),
        ANYTHING,
        max_size=4,
    )
)
def test_any_field_is_read_or_refused_by_its_name(fields: Json) -> None:
    where = place_of_refusal(body([user("q")], **fields))
    assert where is None or where.split(".")[0].split("[")[0] in fields


@settings(max_examples=100, deadline=None)
@given(history=HISTORIES, cut=st.integers(0, 12))
def test_a_session_gives_the_same_request_as_a_client_that_sends_everything(
    history: list[Json], cut: int
) -> None:
    """Wherever the history is cut into what the session keeps and what the client sends."""
    earlier = input_items(body(history[:cut]), "t")
    expanded = expand(body(history[cut:]), earlier)
    whole = openai_responses.decode_request(body(history), {}).request
    assert openai_responses.decode_request(expanded, {}).request == whole
