"""Fold over the messages of a conversation, continuing where the last turn ended.

A client sends its whole history with every turn. A loop over all messages gets slower as the conversation grows; a
loop over the new messages does not. Messages are immutable and decoding reuses equal ones, so the states of an
earlier fold stay valid as long as the messages are the same objects, or equal ones.

`derived_values` holds what was computed from one value, and lives as long as that value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from itertools import accumulate, chain, islice
from typing import Any, NamedTuple, TypeVar

from dragoman.incremental.lru import caches_enabled
from dragoman.ir import Message

V = TypeVar("V")


def derived_values(owner: object) -> dict[str, Any]:
    """Return the dictionary of the values derived from `owner`."""
    return owner.__dict__


def derive(owner: object, name: str, key: object, make: Callable[..., V], *args: Any) -> V:
    """Return `make(*args)`, or its cached result if it was derived from `owner` with an equal `key` before.

    `make` must be a pure function of `owner` and `key`. Neither the key nor the result may refer to `owner`: the
    reference cycle would keep both alive until the garbage collector runs.
    """
    values = owner.__dict__
    found: tuple[object, V] | None = values.get(name)
    if found is None or found[0] != key:
        found = values[name] = key, make(*args)
    return found[1]


def join_messages(first: Message, second: Message) -> Message:
    """Return both messages as one, with the role of the first; the same object in every turn."""
    return derive(first, "joined", (second,), _join, first, second)


def _join(first: Message, second: Message) -> Message:
    return Message(role=first.role, parts=first.parts + second.parts)


S = TypeVar("S")


class _CachedFold(NamedTuple):
    """An earlier fold: the state after each message. `following` are the messages after the first one."""

    start: object
    following: list[Message]
    states: list[Any]


def fold(messages: tuple[Message, ...], name: str, start: S, step: Callable[[S, Message], S]) -> Sequence[S]:
    """Return the state after each message: `states[i] = step(states[i - 1], messages[i])`, beginning with `start`.

    `step` must be a pure function of its arguments, the first message and `start`. The states are cached under `name`
    on the first message, for folds that begin with an equal `start`. No state may refer to that message, only to a copy
    of it: the reference cycle would keep all of them alive until the garbage collector runs.
    """
    if not messages or not caches_enabled():
        return fold_naively(messages, start, step)
    values = derived_values(messages[0])
    cached: _CachedFold | None = values.pop(name, None)  # no other thread can change it now
    if cached is None or cached.start != start:
        cached = _CachedFold(start, [], [step(start, messages[0])])
    _, known, states = cached
    if known != [*messages[1 : 1 + len(known)]]:
        same = bytes(map(operator.is_, known, messages[1:])).find(0)
        length = same if same >= 0 else len(messages) - 1
        del known[length:], states[1 + length :]
    new = messages[1 + len(known) :]
    states += islice(accumulate(chain(states[-1:], new), step), 1, None)
    known += new
    values[name] = cached
    return [*states]


def fold_naively(messages: tuple[Message, ...], start: S, step: Callable[[S, Message], S]) -> Sequence[S]:
    """Return what `fold` returns, without a cache."""
    return [*accumulate(chain([start], messages), step)][1:]  # type: ignore[arg-type]  # as reduce
