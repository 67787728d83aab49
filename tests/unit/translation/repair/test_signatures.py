"""Signatures from the store: asked for by key, put back on their own part and on no other."""

from __future__ import annotations

import msgspec

from dragoman.ir import (
    AFTER_TEXT,
    ON_TEXT,
    Media,
    Message,
    Part,
    SealedSignature,
    ServerCall,
    Signature,
    Text,
    Thought,
    ToolCall,
    ToolResult,
)
from dragoman.translation.repair import SignatureRestorer, last_user_message, text_key

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
    assert list(SignatureRestorer(HISTORY).missing_keys) == [
        text_key(QUESTION, "a"),
        "toolu_1",
        "toolu_2",
        text_key(HISTORY[3], "b"),
    ]


def test_what_the_client_brought_is_not_asked_for() -> None:
    signed = ToolCall(id="toolu_1", name="f", signature=SIGNATURE)
    empty = Text(text="", signature=SIGNATURE)
    media = Media(mime="image/png", data="AAAA")
    text = Text(text="a", signature=SIGNATURE)
    answer = Message(role="model", parts=(signed, empty, text, media, Text(text="")))
    assert not SignatureRestorer((QUESTION, answer)).missing_keys
    assert not SignatureRestorer(
        (Message(role="user", parts=(CALL,)), Message(role="system", parts=(CALL,)))
    ).missing_keys


def test_where_the_client_kept_the_signature_of_an_answer_the_store_has_no_other() -> None:
    thought, text = Thought(text="hm", signature=SIGNATURE), Text(text="words")
    signed, second = msgspec.structs.replace(CALL, signature=SIGNATURE), ToolCall(id="toolu_2", name="f")
    lost = msgspec.structs.replace(CALL, signature=Signature("", "a tool that was renamed"))
    served = ServerCall(id="served", kind="web_search")

    def wanted(*parts: Part) -> list[str]:
        return [*SignatureRestorer((QUESTION, Message(role="model", parts=parts))).missing_keys]

    assert wanted(thought, text, signed, second) == []
    assert wanted(text, signed, served) == [text_key(QUESTION, "words"), "served"]  # may be several answers
    assert wanted(thought, second) == ["toolu_2"]  # a thought's signature is no call's
    assert wanted(lost, second) == ["toolu_2"]


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
    assert last_user_message(HISTORY) == HISTORY[3]
    assert last_user_message((*HISTORY, QUESTION)) == QUESTION
    assert last_user_message(()) is None


def test_a11_each_signature_returns_to_its_part() -> None:
    recalled = {
        "toolu_1": SealedSignature(SIGNATURE, "toolu_1"),
        text_key(HISTORY[3], "b"): SealedSignature(OTHER, ON_TEXT),
    }
    got = SignatureRestorer(HISTORY).sign(recalled)
    assert got[:2] == HISTORY[:2]
    assert got[2].parts == (
        Thought(text="t"),
        Text(text="a"),
        ToolCall(id="toolu_1", name="f", signature=SIGNATURE),
        ToolCall(id="toolu_2", name="f"),
    )
    assert got[4].parts == (Text(text="b", signature=OTHER),)


def test_a2_one_that_came_on_a_closing_part_returns_on_one() -> None:
    recalled = {text_key(QUESTION, "a"): SealedSignature(SIGNATURE, AFTER_TEXT)}
    got = SignatureRestorer(HISTORY).sign(recalled)
    assert got[2].parts[1:3] == (Text(text="a"), Text(text="", signature=SIGNATURE))


def test_nothing_recalled_changes_nothing() -> None:
    assert SignatureRestorer(HISTORY).sign({}) == HISTORY
    assert SignatureRestorer(HISTORY).sign(None) == HISTORY
    assert SignatureRestorer(HISTORY).sign({"toolu_9": SealedSignature(SIGNATURE, "toolu_9")}) == HISTORY


def test_c7_every_call_of_a_recycled_id_is_signed_by_its_own_or_not_at_all() -> None:
    twice = (QUESTION, Message(role="model", parts=(CALL,)), QUESTION, Message(role="model", parts=(CALL,)))
    got = SignatureRestorer(twice).sign({"toolu_1": SealedSignature(SIGNATURE, "toolu_1")})
    assert [message.parts[0] for message in got if message.role == "model"] == [
        CALL,
        ToolCall(id="toolu_1", name="f", signature=SIGNATURE),
    ]


def test_without_messages_nothing_is_wanted() -> None:
    assert not SignatureRestorer(()).missing_keys
    assert SignatureRestorer((), "one").sign({}) == ()


def _said(number: int) -> tuple[Message, Message]:
    """A step of a conversation, new objects every time."""
    call = ToolCall(id=f"toolu_{number}", name="f")
    result = ToolResult(call_id=call.id)
    return Message(role="model", parts=(call,)), Message(role="user", parts=(result,))


def _sealed(number: int) -> dict[str, SealedSignature]:
    return {f"toolu_{number}": SealedSignature(SIGNATURE, f"toolu_{number}")}


def _signatures(messages: tuple[Message, ...]) -> list[bool]:
    return [
        part.signature is not None
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCall)
    ]


def _begin(*numbers: int) -> tuple[Message, ...]:
    return (
        Message(role="user", parts=(Text(text="q"),)),
        *(message for number in numbers for message in _said(number)),
    )


def test_the_next_turn_of_the_same_caller_asks_for_what_is_new_alone() -> None:
    turn = _begin(1)
    first = SignatureRestorer(turn, "one")
    assert list(first.missing_keys) == ["toolu_1"]
    signed = first.sign(_sealed(1))
    assert first.sign(_sealed(1)) is signed
    longer = (*turn, *_said(2))
    second = SignatureRestorer(longer, "one")
    assert list(second.missing_keys) == ["toolu_2"]
    assert _signatures(second.sign({})) == [True, False]
    third = SignatureRestorer((*longer, *_said(3)), "one")
    assert list(third.missing_keys) == ["toolu_3"]
    assert _signatures(third.sign(_sealed(3))) == [True, False, True]


def test_a1_what_one_caller_was_told_is_not_used_for_another() -> None:
    turn = _begin(1)
    SignatureRestorer(turn, "one").sign(_sealed(1))
    assert list(SignatureRestorer(turn, "other").missing_keys) == ["toolu_1"]
    assert _signatures(SignatureRestorer(turn, "other").sign({})) == [False]
    assert list(SignatureRestorer(turn).missing_keys) == ["toolu_1"]


def test_a_store_that_could_not_be_asked_is_asked_again() -> None:
    turn = _begin(1, 2)
    SignatureRestorer(turn[:3], "one").sign(_sealed(1))
    assert _signatures(SignatureRestorer(turn, "one").sign(None)) == [True, False]
    again = SignatureRestorer(turn, "one")
    assert list(again.missing_keys) == ["toolu_2"]
    assert _signatures(again.sign(_sealed(2))) == [True, True]


def test_a_rewound_conversation_asks_for_what_it_says_instead() -> None:
    turn = _begin(1, 2)
    SignatureRestorer(turn, "one").sign({**_sealed(1), **_sealed(2)})
    forked = SignatureRestorer((*turn[:3], *_said(3)), "one")
    assert list(forked.missing_keys) == ["toolu_3"]
    assert _signatures(forked.sign({})) == [True, False]


def test_c7_an_id_that_comes_again_later_is_signed_at_its_last_place_with_a_memory_too() -> None:
    turn = _begin(1)
    SignatureRestorer(turn, "one").sign(_sealed(1))
    longer = (*turn, *_said(1))
    again = SignatureRestorer(longer, "one")
    assert _signatures(again.sign(_sealed(1))) == _signatures(SignatureRestorer(longer).sign(_sealed(1)))


def test_a_history_that_begins_with_the_model_is_asked_for_as_a_whole() -> None:
    turn = _said(1)
    assert _signatures(SignatureRestorer(turn, "one").sign(_sealed(1))) == [True]
    assert list(SignatureRestorer(turn, "one").missing_keys) == ["toolu_1"]
