"""What is noted of a message stays with it, and is no other's."""

from __future__ import annotations

import msgspec

from dragoman.ir import Message, Text


def test_each_message_has_a_notebook_of_its_own() -> None:
    one, other = (Message(role="user", parts=(Text(text="a"),)) for _ in range(2))
    one.derived["read"] = 1
    assert one.derived is one.derived
    assert (one.derived, other.derived) == ({"read": 1}, {})
    assert one == other


def test_what_is_noted_is_no_part_of_the_message() -> None:
    message = Message(role="user", parts=(Text(text="a"),))
    plain = msgspec.json.encode(message)
    message.derived["read"] = message.derived["role"] = 1
    assert message.role == "user"
    assert msgspec.json.encode(message) == plain
    assert msgspec.structs.replace(message, role="model").derived == {}
