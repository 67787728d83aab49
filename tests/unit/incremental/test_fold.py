"""What is kept of a history for the next turn holds for the same messages, and for nothing else."""

from __future__ import annotations

import gc

from dragoman.incremental.fold import store_fold, take_fold
from dragoman.ir import Message, Text


def _message(text: str) -> Message:
    return Message(role="user", parts=(Text(text=text),))


def _follow(messages: tuple[Message, ...]) -> tuple[int, list[str]]:
    """How many messages were looked at, and what is worked out of all but the first."""
    course = take_fold(messages, "test")
    new = messages[1 + len(course.results) :]
    for message in new:
        part = message.parts[0]
        course.add(message, part.text if isinstance(part, Text) else "")
    store_fold(messages, "test", course)
    return len(new), list(course.results)


def test_only_what_is_new_is_looked_at() -> None:
    a, b, c, d = map(_message, "abcd")
    assert _follow((a, b)) == (1, ["b"])
    assert _follow((a, b, c, d)) == (2, ["b", "c", "d"])
    assert _follow((a, b, c, d)) == (0, ["b", "c", "d"])


def test_a_conversation_that_goes_another_way_is_followed_from_there() -> None:
    a, b, c, d = map(_message, "abcd")
    _follow((a, b, c))
    assert _follow((a, b, d, c)) == (2, ["b", "d", "c"])
    assert _follow((a, b)) == (0, ["b"])
    assert _follow((a,)) == (0, [])


def test_a_message_that_was_read_again_is_the_same_message() -> None:
    a, b, c = map(_message, "abc")
    _follow((a, b))
    assert _follow((a, _message("b"), c)) == (1, ["b", "c"])


def test_the_same_words_of_somebody_else_are_another_message() -> None:
    a, b = map(_message, "ab")
    _follow((a, b))
    said = Message(role="model", parts=b.parts)
    assert _follow((a, said)) == (1, ["b"])
    assert _follow((a, said)) == (0, ["b"])


def test_a_course_is_nobody_elses_while_it_is_taken() -> None:
    messages = (_message("a"), _message("b"))
    _follow(messages)
    assert len(take_fold(messages, "test").results) == 1
    assert take_fold(messages, "test").results == []


def test_a_history_that_nobody_holds_is_gone_at_once() -> None:
    gc.collect()
    gc.disable()
    try:
        messages = tuple(map(_message, "abc"))
        _follow(messages)
        del messages
        assert gc.collect() == 0
    finally:
        gc.enable()
