"""What is worked out of a history message by message, kept for the next turn, which goes on where it ends.

A loop over all messages costs the more the longer a conversation lasts; over the new ones it does not. Messages are
values: a course holds for the very ones it was made of, which are recognised at a glance, and for equal ones.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from dragoman.ir.request import Message

T = TypeVar("T")


class Course(Generic[T]):
    """`worked[i]` was worked out of `messages[i]` and of what stands before it, for all messages behind the first.

    The first is left out because the course is noted there: a circle would outlive its last user.
    """

    def __init__(self, setting: Any = None) -> None:
        self.setting = setting  # what else it depends on
        self.messages: list[Message] = []
        self.worked: list[T] = []

    def add(self, message: Message, worked: T) -> None:
        self.messages.append(message)
        self.worked.append(worked)

    def extend(self, messages: Iterable[Message], worked: Iterable[T]) -> None:
        self.messages += messages
        self.worked += worked

    def cut(self, length: int) -> None:
        del self.messages[length:], self.worked[length:]


def take_course(messages: tuple[Message, ...], name: str, make: Callable[[], Course[Any]] = Course) -> Any:
    """As far as it fits these messages. It is nobody else's until it is kept again: threads never share one."""
    course: Course[Any] | None = messages[0].notebook.pop(name, None)
    if course is None:
        return make()
    known = course.messages
    if known != [*messages[1 : 1 + len(known)]]:
        others = messages[1:]
        same = bytes(map(operator.is_, known, others)).find(0)
        course.cut(same if same >= 0 else len(others))
    return course


def keep_course(messages: tuple[Message, ...], name: str, course: Course[Any]) -> None:
    """For the next turn."""
    messages[0].notebook[name] = course
