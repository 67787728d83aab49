"""An incremental fold over a conversation: results per message, cached for the next turn.

A client sends its whole history with every turn. A loop over all messages gets slower as the conversation grows; a
loop over the new messages does not. Messages are immutable and decoding reuses equal ones, so cached results stay
valid as long as the messages are the same objects, or equal ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from dragoman.ir.request import Message

T = TypeVar("T")


class IncrementalFold(Generic[T]):
    """The results of one fold: `worked[i]` depends on `messages[i]` and on the messages before it.

    The first message of the conversation is left out, because the course is stored in its `notebook`: a reference
    cycle would keep both alive until the garbage collector runs.
    """

    def __init__(self, setting: Any = None) -> None:
        self.state = setting  # other state of the fold, defined by its user
        self.messages: list[Message] = []
        self.results: list[T] = []

    def add(self, message: Message, worked: T) -> None:
        self.messages.append(message)
        self.results.append(worked)

    def extend(self, messages: Iterable[Message], worked: Iterable[T]) -> None:
        self.messages += messages
        self.results += worked

    def truncate(self, length: int) -> None:
        """Drop the results after the first `length` ones."""
        del self.messages[length:], self.results[length:]


def take_fold(
    messages: tuple[Message, ...], name: str, make: Callable[[], IncrementalFold[Any]] = IncrementalFold
) -> Any:
    """Remove the course `name` from the first message and return it, cut to the part that fits `messages`.

    Return `make()` if there is none. Until `keep_course` stores it again, no other thread can get it.
    """
    course: IncrementalFold[Any] | None = messages[0].derived.pop(name, None)
    if course is None:
        return make()
    known = course.messages
    if known != [*messages[1 : 1 + len(known)]]:
        others = messages[1:]
        same = bytes(map(operator.is_, known, others)).find(0)
        course.truncate(same if same >= 0 else len(others))
    return course


def store_fold(messages: tuple[Message, ...], name: str, course: IncrementalFold[Any]) -> None:
    """Store the course in the first message, for the next turn."""
    messages[0].derived[name] = course
