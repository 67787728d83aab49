"""What free words ask for: functions to call, step by step, worked out anew from the words each time."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.emulator.arguments.fill import fill_arguments
from dragoman.emulator.arguments.nodes import resolve, type_of
from dragoman.emulator.arguments.supply import Supply, kind_of
from dragoman.emulator.model.acting import SHORT, acting_arguments, find_acting, is_order, is_telling, may_act
from dragoman.emulator.model.choose import find_by_verb, find_by_words
from dragoman.emulator.model.clauses import first_word, split_steps, spread
from dragoman.emulator.turn import Function

_FORBIDDING = re.compile(r"(?:do\s+not|don['’]?t|never|avoid|stop)\b", re.IGNORECASE)
_MOST_CALLS = 8


class Wish(msgspec.Struct, frozen=True):
    """A function to call, and the words that ask for it; `acting` ones take their arguments word by word."""

    function: Function
    words: str
    acting: bool = False

    def arguments(self, earlier: str | None) -> dict[str, Any] | None:
        """The arguments, or None when what an acting function needs is not there."""
        if self.acting:
            return acting_arguments(self.function, self.words, earlier)
        return fill_arguments(self.function.schema, self.words)


Steps = tuple[tuple[Wish, ...], ...]


def read_wishes(words: str, functions: Sequence[Function]) -> Steps:
    """The calls of each step; never more steps than clauses, so every plan ends."""
    if len(words.strip()) > SHORT:
        return _whole(words, functions)
    steps: list[tuple[Wish, ...]] = []
    obeying = may_act(words)
    forbidden = False
    for clauses in split_steps(words):
        asked: list[Wish] = []
        for clause in clauses:
            if _FORBIDDING.match(clause):
                forbidden = True
                continue
            later = bool(steps or asked)
            order = find_acting(clause, functions, "" if later else None) if obeying else None
            found = _look(clause, functions, later=later) if order is None else []
            if order is not None and asked:
                steps.append(tuple(asked))
                asked = []
            asked += found or ([Wish(order, clause, acting=True)] if order is not None else [])
            # Every clause must be understood before anything acts, those that come later too.
            obeying = obeying and _is_understood(clause, found, order)
        if asked:
            steps.append(tuple(asked[:_MOST_CALLS]))
    if not obeying:
        steps = _until_acting(steps)
    return tuple(steps) or (() if forbidden else _whole(words, functions))


def _whole(words: str, functions: Sequence[Function]) -> Steps:
    chosen = find_by_words(words, functions)
    return ((Wish(chosen, words),),) if chosen is not None else ()


def _look(clause: str, functions: Sequence[Function], *, later: bool) -> list[Wish]:
    """The calls of a function that looks and reads: one for each value where the words list several."""
    supply = Supply(clause)
    chosen = find_by_words(clause, functions)
    if chosen is None and supply.has_literal:
        chosen = find_by_verb(first_word(clause), functions)
    if chosen is None or (later and _needs_something(chosen) and not supply.has_literal):
        return []  # `then tell me what is in the file` asks for no second look
    kind = _single_kind(chosen)
    return [Wish(chosen, words) for words in (spread(clause, kind) if kind else [clause])]


def _is_understood(clause: str, found: Sequence[Wish], order: Function | None) -> bool:
    if found:
        return is_order(clause, found[0].function)
    return order is not None or is_telling(clause)


def _until_acting(steps: Sequence[tuple[Wish, ...]]) -> list[tuple[Wish, ...]]:
    first = next((index for index, step in enumerate(steps) if any(wish.acting for wish in step)), len(steps))
    return list(steps[:first])


def _needs_something(function: Function) -> bool:
    return bool(resolve(function.schema, function.schema).get("required"))


def _single_kind(function: Function) -> str:
    """The kind of the one text that the function needs; empty when it needs several, or a list."""
    root = resolve(function.schema, function.schema)
    named = root.get("properties") or {}
    required = [name for name in root.get("required") or () if isinstance(name, str) and name in named]
    needed = [(name, resolve(function.schema, named[name])) for name in required]
    if any(type_of(node) == "array" for _, node in needed):
        return ""
    kinds = [kind_of(name, str(node.get("format", ""))) for name, node in needed if type_of(node) == "string"]
    # `fetch URL` needs a prompt as well: what tells the calls apart is the more particular of them.
    telling = [kind for kind in kinds if kind != "text"] or kinds
    return telling[0] if len(telling) == 1 else ""
