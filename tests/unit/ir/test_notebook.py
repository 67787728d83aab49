"""What is noted of a message stays with it, and is no other's."""

from __future__ import annotations

from dragoman.ir import Message, Text
from dragoman.ir.notebook import Notebook


def test_each_message_has_a_notebook_of_its_own() -> None:
    one, other = (Message(role="user", parts=(Text(text="a"),)) for _ in range(2))
    one.notebook["read"] = 1
    assert one.notebook is one.notebook
    assert (one.notebook, other.notebook) == ({"read": 1}, {})
    assert one == other


def test_the_class_tells_what_it_is() -> None:
    assert isinstance(Message.notebook, Notebook)
