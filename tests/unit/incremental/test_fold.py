"""A fold that continues where an earlier one ended returns what one from the beginning would."""

from __future__ import annotations

import gc
from itertools import product

import pytest

from dragoman.incremental.fold import fold, fold_naively
from dragoman.ir import Message, Text
from tests.props.no_caches import nothing_known

_NONE: tuple[str, ...] = ()


def _message(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def _texts(before: tuple[str, ...], message: Message) -> tuple[str, ...]:
    part = message.parts[0]
    return (*before, part.text if isinstance(part, Text) else "")


def _fold(messages: tuple[Message, ...], start: tuple[str, ...] = ()) -> tuple[int, list[str]]:
    """Return for how many messages there was a step, and the last state."""
    stepped: list[Message] = []

    def step(before: tuple[str, ...], message: Message) -> tuple[str, ...]:
        stepped.append(message)
        return _texts(before, message)

    states = fold(messages, "test", start, step)
    assert list(states) == list(fold_naively(messages, start, _texts))
    return len(stepped), list(states[-1])


def test_only_what_is_new_is_looked_at() -> None:
    a, b, c, d = map(_message, "abcd")
    assert _fold((a, b)) == (2, ["a", "b"])
    assert _fold((a, b, c, d)) == (2, ["a", "b", "c", "d"])
    assert _fold((a, b, c, d)) == (0, ["a", "b", "c", "d"])


def test_a_conversation_that_goes_another_way_is_followed_from_there() -> None:
    a, b, c, d = map(_message, "abcd")
    _fold((a, b, c))
    assert _fold((a, b, d, c)) == (2, ["a", "b", "d", "c"])
    assert _fold((a, b)) == (0, ["a", "b"])
    assert _fold((a,)) == (0, ["a"])


def test_a_message_that_was_read_again_is_the_same_message() -> None:
    a, b, c = map(_message, "abc")
    _fold((a, b))
    assert _fold((a, _message("b"), c)) == (1, ["a", "b", "c"])


def test_the_same_words_of_somebody_else_are_another_message() -> None:
    a, b = map(_message, "ab")
    _fold((a, b))
    other = Message(role="model", parts=b.parts)
    assert _fold((a, other)) == (1, ["a", "b"])
    assert _fold((a, other)) == (0, ["a", "b"])


def test_a_fold_with_another_start_begins_anew() -> None:
    a, b = map(_message, "ab")
    _fold((a, b))
    assert _fold((a, b), ("x",)) == (2, ["x", "a", "b"])
    assert _fold((a, b), ("x",)) == (0, ["x", "a", "b"])


@pytest.mark.parametrize(("first", "second"), [*product(["", "a", "ab", "abc", "acb", "aab"], repeat=2)])
def test_any_history_after_any_other_is_folded_as_if_it_were_the_first(first: str, second: str) -> None:
    messages = {letter: _message(letter) for letter in "abc"}
    for letters in (first, second, first):
        history = tuple(map(messages.__getitem__, letters))
        assert list(fold(history, "any", _NONE, _texts)) == list(fold_naively(history, _NONE, _texts))


def test_a_fold_that_another_thread_continues_is_not_shared() -> None:
    a, b = map(_message, "ab")
    _fold((a, b))

    def step(before: tuple[str, ...], message: Message) -> tuple[str, ...]:
        fold((a,), "test", _NONE, _texts)  # as another thread would, meanwhile
        return _texts(before, message)

    messages = (a, b, _message("c"))
    assert list(fold(messages, "test", _NONE, step)) == list(fold_naively(messages, _NONE, _texts))


def test_without_caches_every_message_is_looked_at() -> None:
    a, b = map(_message, "ab")
    _fold((a, b))
    with nothing_known():
        assert _fold((a, b)) == (2, ["a", "b"])


def test_a_history_that_nobody_holds_is_gone_at_once() -> None:
    gc.collect()
    gc.disable()
    try:
        messages = tuple(map(_message, "abc"))
        _fold(messages)
        del messages
        assert gc.collect() == 0
    finally:
        gc.enable()
