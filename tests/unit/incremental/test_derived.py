"""What is derived from a message stays with it, and is no other's."""

from __future__ import annotations

import msgspec

from dragoman.incremental.fold import derive, derived_values, join_messages
from dragoman.ir import Message, Text


def _message() -> Message:
    return Message(role="user", parts=(Text(text="a"),))


def test_each_message_has_its_own_derived_values() -> None:
    one, other = _message(), _message()
    derived_values(one)["read"] = 1
    assert derived_values(one) is derived_values(one)
    assert (derived_values(one), derived_values(other)) == ({"read": 1}, {})
    assert one == other


def test_derived_values_are_no_part_of_the_message() -> None:
    message = _message()
    plain = msgspec.json.encode(message)
    derived_values(message).update(read=1, role=1)
    assert message.role == "user"
    assert msgspec.json.encode(message) == plain
    assert derived_values(msgspec.structs.replace(message, role="model")) == {}


def test_a_value_is_derived_again_if_its_key_changes() -> None:
    message = _message()
    assert [derive(message, "sum", key, sum, (key, 1)) for key in (1, 1, 2)] == [2, 2, 3]
    assert derive(message, "sum", 2, sum, (0,)) == 3


def test_two_messages_are_joined_to_the_same_object_every_time() -> None:
    one, other = _message(), Message(role="model", parts=(Text(text="b"),))
    joined = join_messages(one, other)
    assert joined == Message(role="user", parts=(*one.parts, *other.parts))
    assert join_messages(one, other) is joined
