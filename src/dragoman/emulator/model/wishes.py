"""Read from prose which functions to call, step by step.

Nothing is stored between requests: each request derives the same plan from the text of the turn.
"""

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
    """A function to call and the clause that asks for it.

    An `acting` function, which has side effects, takes its arguments literally from the clause.
    """

    function: Function
    words: str
    acting: bool = False

    def arguments(self, earlier: str | None) -> dict[str, Any] | None:
        """Return the arguments, or None if an argument of an acting function is missing."""
        if self.acting:
            return acting_arguments(self.function, self.words, earlier)
        return fill_arguments(self.function.schema, self.words)


Steps = tuple[tuple[Wish, ...], ...]


def read_wishes(words: str, functions: Sequence[Function]) -> Steps:
    """Return the calls of each step. There are never more steps than clauses, so every plan ends."""
    if len(words.strip()) > SHORT:
        return _whole(words, functions)
    steps: list[tuple[Wish, ...]] = []
    obeying = may_act(words)
    forbidden = False
    for clauses in split_steps(words):
        wishes: list[Wish] = []
        for clause in clauses:
            if _FORBIDDING.match(clause):
                forbidden = True
                continue
            later = bool(steps or wishes)
            order = find_acting(clause, functions, "" if later else None) if obeying else None
            found = _look(clause, functions, later=later) if order is None else []
            if order is not None and wishes:
                steps.append(tuple(wishes))
                wishes = []
            wishes += found or ([Wish(order, clause, acting=True)] if order is not None else [])
            # Nothing acts unless every clause is understood, including later ones.
            obeying = obeying and _is_understood(clause, found, order)
        if wishes:
            steps.append(tuple(wishes[:_MOST_CALLS]))
    if not obeying:
        steps = _until_acting(steps)
    return tuple(steps) or (() if forbidden else _whole(words, functions))


def _whole(words: str, functions: Sequence[Function]) -> Steps:
    chosen = find_by_words(words, functions)
    return ((Wish(chosen, words),),) if chosen is not None else ()


def _look(clause: str, functions: Sequence[Function], *, later: bool) -> list[Wish]:
    """Return the calls of a read-only function, one for each value if the clause lists several."""
    supply = Supply(clause)
    chosen = find_by_words(clause, functions)
    if chosen is None and supply.has_literal:
        chosen = find_by_verb(first_word(clause), functions)
    if chosen is None or (later and _needs_something(chosen) and not supply.has_literal):
        return []  # `then tell me what is in the file` needs no second call
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
    """Return the kind of the only string that the function requires, or "" if it needs more or a list."""
    root = resolve(function.schema, function.schema)
    named = root.get("properties") or {}
    required = [name for name in root.get("required") or () if isinstance(name, str) and name in named]
    needed = [(name, resolve(function.schema, named[name])) for name in required]
    if any(type_of(node) == "array" for _, node in needed):
        return ""
    kinds = [kind_of(name, str(node.get("format", ""))) for name, node in needed if type_of(node) == "string"]
    # `fetch URL` requires a prompt too: the more specific of two kinds decides.
    specific = [kind for kind in kinds if kind != "text"] or kinds
    return specific[0] if len(specific) == 1 else ""
