"""Repair: for any list of messages at all, what leaves is right, and nothing the user said is missing."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects import gemini
from dragoman.dialects.base import Target
from dragoman.errors import InvalidRequest
from dragoman.ir import Media, Message, Part, Request, Signature, Text, Thought, ToolCall, ToolResult
from dragoman.translation.repair import repair
from tests.corpus import check
from tests.props.hypothesis_settings import examples
from tests.unit.dialects.scripted_client import refusal

MODERN = "gemini-3.8-flash"
MODELS = (MODERN, "gemini-3-flash-preview", "gemini-2.5-flash")

WORDS = st.sampled_from(["", " ", "a", "b", "<system-reminder>r</system-reminder>"]) | st.text(
    "xyz ", max_size=4
)
IDS = st.sampled_from(["1", "2", "3", "1-2", "toolu_0000000000000001-g"])
#: of the right back end these would have to be genuine
FOREIGN = st.none() | st.just(Signature("c2ln", "vertex-g9"))
CONTENT = st.lists(
    WORDS.map(lambda words: Text(text=words)) | st.just(Media(mime="image/png", data="iVBORw0KGgo=")),
    max_size=2,
)
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, text=WORDS, signature=FOREIGN),
    st.builds(Thought, text=WORDS, signature=FOREIGN),
    st.just(Media(mime="image/png", data="iVBORw0KGgo=")),
    st.builds(ToolCall, id=IDS, name=st.sampled_from(["f", "g"]), signature=FOREIGN),
    st.builds(ToolResult, call_id=IDS, content=CONTENT.map(tuple), is_error=st.booleans()),
)
ROLES = st.sampled_from(["user", "model", "system"])
MESSAGES = st.lists(
    st.builds(Message, role=ROLES, parts=st.lists(PARTS, max_size=4).map(tuple)), min_size=1, max_size=8
).map(tuple)


def _encode(messages: tuple[Message, ...], model: str) -> bytes:
    request = Request(model="m", messages=messages)
    return gemini.encode_request(request, Target(model=model), lambda: "toolu_0000000000000000").body


def _repaired(messages: tuple[Message, ...], *, ends_with_user: bool = True) -> tuple[Message, ...]:
    return repair(messages, ends_with_user=ends_with_user)[0]


def _speaks(messages: tuple[Message, ...]) -> bool:
    try:
        repair(messages, ends_with_user=True)
    except InvalidRequest:
        return False
    return True


@examples(200)
@given(messages=MESSAGES.filter(_speaks))
def test_c_whatever_came_in_google_accepts_what_leaves(messages: tuple[Message, ...]) -> None:
    for model in MODELS:
        ends_with_user = gemini.ends_with_user(Target(model=model))
        body = _encode(_repaired(messages, ends_with_user=ends_with_user), model)
        assert refusal(model, body) == ""
        sent = json.loads(body)
        assert check.history_problems(sent) == []
        if model != "gemini-2.5-flash":
            assert check.signature_problems(sent) == []


@examples(200)
@given(messages=MESSAGES.filter(_speaks))
def test_c_nothing_the_user_said_is_lost(messages: tuple[Message, ...]) -> None:
    def said(history: tuple[Message, ...]) -> list[str]:
        parts = [part for message in history if message.role == "user" for part in message.parts]
        return [part.text for part in parts if isinstance(part, Text) and part.text]

    kept = iter(said(_repaired(messages)))
    assert all(words in kept for words in said(messages))  # all of it, in the same order


@examples(200)
@given(messages=MESSAGES.filter(_speaks), ends_with_user=st.booleans())
def test_c_what_was_repaired_is_right(messages: tuple[Message, ...], ends_with_user: bool) -> None:
    once = _repaired(messages, ends_with_user=ends_with_user)
    assert repair(once, ends_with_user=ends_with_user) == (once, ())


@examples(200)
@given(messages=MESSAGES.filter(_speaks))
def test_c_every_call_has_its_own_result_right_behind_it(messages: tuple[Message, ...]) -> None:
    repaired = _repaired(messages)
    for message, following in zip(repaired, (*repaired[1:], None), strict=True):
        calls = [part for part in message.parts if isinstance(part, ToolCall)]
        if calls:
            assert following is not None
            pairs = [(part.call_id, part.name) for part in following.parts if isinstance(part, ToolResult)]
            assert pairs == [(call.id, call.name) for call in calls]
            assert len(pairs) == len(following.parts) == len(set(pairs))
