"""Signatures from the store: asked for by key, put back on their own part and on no other."""

from __future__ import annotations

from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    Media,
    Message,
    Sealed,
    Signature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from dragoman.repair import apply_signatures, last_user, text_key, wanted_keys

SIGNATURE = Signature("c2ln", "gemini-g3")
OTHER = Signature("b3RoZXI", "gemini-g3")
QUESTION = Message(role="user", parts=(Text(text="q"),))
CALL = ToolCall(id="toolu_1", name="f")
HISTORY = (
    Message(role="system", parts=(Text(text="s"),)),
    QUESTION,
    Message(role="model", parts=(Thought(text="t"), Text(text="a"), CALL, ToolCall(id="toolu_2", name="f"))),
    Message(role="user", parts=(ToolResult(call_id="toolu_1"), ToolResult(call_id="toolu_2"))),
    Message(role="model", parts=(Text(text="b"),)),
)


def test_a11_unsigned_calls_and_texts_are_asked_for() -> None:
    assert wanted_keys(HISTORY) == {
        text_key(QUESTION, "a"): (2, 1),
        "toolu_1": (2, 2),
        "toolu_2": (2, 3),
        text_key(HISTORY[3], "b"): (4, 0),
    }


def test_what_the_client_brought_is_not_asked_for() -> None:
    signed = ToolCall(id="toolu_1", name="f", signature=SIGNATURE)
    empty = Text(text="", signature=SIGNATURE)
    media = Media(mime="image/png", data="AAAA")
    text = Text(text="a", signature=SIGNATURE)
    assert (
        wanted_keys((QUESTION, Message(role="model", parts=(signed, empty, text, media, Text(text="")))))
        == {}
    )
    assert wanted_keys((Message(role="user", parts=(CALL,)), Message(role="system", parts=(CALL,)))) == {}


def test_a_text_is_known_by_its_words_and_by_what_was_said_before() -> None:
    other = Message(role="user", parts=(Text(text="r"),))
    results = Message(role="user", parts=(ToolResult(call_id="1"), Media(mime="image/png", data="AAAA")))
    keys = {
        text_key(before, words)
        for before in (None, QUESTION, other, results)
        for words in ("a", "b", "\ud83d")
    }
    assert len(keys) == 12
    assert all(key.startswith("text-") for key in keys)


def test_the_last_user_is_found() -> None:
    assert last_user(HISTORY) == HISTORY[3]
    assert last_user((*HISTORY, QUESTION)) == QUESTION
    assert last_user(()) is None


def test_a11_each_signature_returns_to_its_part() -> None:
    places = wanted_keys(HISTORY)
    recalled = {"toolu_1": Sealed(SIGNATURE, "toolu_1"), text_key(HISTORY[3], "b"): Sealed(OTHER, ON_TEXT)}
    got = apply_signatures(HISTORY, places, recalled)
    assert got[:2] == HISTORY[:2]
    assert got[2].parts == (
        Thought(text="t"),
        Text(text="a"),
        ToolCall(id="toolu_1", name="f", signature=SIGNATURE),
        ToolCall(id="toolu_2", name="f"),
    )
    assert got[4].parts == (Text(text="b", signature=OTHER),)


def test_a2_one_that_came_on_a_closing_part_returns_on_one() -> None:
    recalled = {text_key(QUESTION, "a"): Sealed(SIGNATURE, AFTER_TEXT)}
    got = apply_signatures(HISTORY, wanted_keys(HISTORY), recalled)
    assert got[2].parts[1:3] == (Text(text="a"), Text(text="", signature=SIGNATURE))


def test_nothing_recalled_changes_nothing() -> None:
    assert apply_signatures(HISTORY, wanted_keys(HISTORY), {}) is HISTORY
    assert apply_signatures(HISTORY, {}, {"toolu_1": Sealed(SIGNATURE, "toolu_1")}) == HISTORY


def test_c7_every_call_of_a_recycled_id_is_signed_by_its_own_or_not_at_all() -> None:
    twice = (QUESTION, Message(role="model", parts=(CALL,)), QUESTION, Message(role="model", parts=(CALL,)))
    got = apply_signatures(twice, wanted_keys(twice), {"toolu_1": Sealed(SIGNATURE, "toolu_1")})
    assert [message.parts[0] for message in got if message.role == "model"] == [
        CALL,
        ToolCall(id="toolu_1", name="f", signature=SIGNATURE),
    ]
