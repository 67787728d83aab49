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
from dragoman.emulator.arguments.supply import TextValues, kind_of_property
from dragoman.emulator.model.acting import (
    MAX_ORDER_CHARS,
    allows_side_effects,
    asks_for_report,
    find_ordered_action,
    literal_arguments,
    orders_function,
)
from dragoman.emulator.model.choose import find_by_similarity, find_by_verb
from dragoman.emulator.model.clauses import expand_list, first_word, split_steps
from dragoman.emulator.turn import DeclaredFunction

_FORBIDDING = re.compile(r"(?:do\s+not|don['’]?t|never|avoid|stop)\b", re.IGNORECASE)
_MAX_CALLS = 8


class Intent(msgspec.Struct, frozen=True):
    """A function to call and the clause that asks for it.

    An `acting` function, which has side effects, takes its arguments literally from the clause.
    """

    function: DeclaredFunction
    clause: str
    has_side_effects: bool = False

    def arguments(self, earlier: str | None) -> dict[str, Any] | None:
        """Return the arguments, or None if an argument of an acting function is missing."""
        if self.has_side_effects:
            return literal_arguments(self.function, self.clause, earlier)
        return fill_arguments(self.function.schema, self.clause)


IntentSteps = tuple[tuple[Intent, ...], ...]


def read_intents(words: str, functions: Sequence[DeclaredFunction]) -> IntentSteps:
    """Return the calls of each step. There are never more steps than clauses, so every plan ends."""
    if len(words.strip()) > MAX_ORDER_CHARS:
        return _whole_text_intent(words, functions)
    steps: list[tuple[Intent, ...]] = []
    obeying = allows_side_effects(words)
    forbidden = False
    for clauses in split_steps(words):
        wishes: list[Intent] = []
        for clause in clauses:
            if _FORBIDDING.match(clause):
                forbidden = True
                continue
            later = bool(steps or wishes)
            order = find_ordered_action(clause, functions, "" if later else None) if obeying else None
            found = _read_only_intents(clause, functions, later=later) if order is None else []
            if order is not None and wishes:
                steps.append(tuple(wishes))
                wishes = []
            wishes += found or ([Intent(order, clause, has_side_effects=True)] if order is not None else [])
            # Nothing acts unless every clause is understood, including later ones.
            obeying = obeying and _is_understood(clause, found, order)
        if wishes:
            steps.append(tuple(wishes[:_MAX_CALLS]))
    if not obeying:
        steps = _until_side_effects(steps)
    return tuple(steps) or (() if forbidden else _whole_text_intent(words, functions))


def _whole_text_intent(words: str, functions: Sequence[DeclaredFunction]) -> IntentSteps:
    chosen = find_by_similarity(words, functions)
    return ((Intent(chosen, words),),) if chosen is not None else ()


def _read_only_intents(clause: str, functions: Sequence[DeclaredFunction], *, later: bool) -> list[Intent]:
    """Return the calls of a read-only function, one for each value if the clause lists several."""
    supply = TextValues(clause)
    chosen = find_by_similarity(clause, functions)
    if chosen is None and supply.has_literal:
        chosen = find_by_verb(first_word(clause), functions)
    if chosen is None or (later and _has_required_arguments(chosen) and not supply.has_literal):
        return []  # `then tell me what is in the file` needs no second call
    kind = _single_kind(chosen)
    return [Intent(chosen, words) for words in (expand_list(clause, kind) if kind else [clause])]


def _is_understood(clause: str, found: Sequence[Intent], order: DeclaredFunction | None) -> bool:
    if found:
        return orders_function(clause, found[0].function)
    return order is not None or asks_for_report(clause)


def _until_side_effects(steps: Sequence[tuple[Intent, ...]]) -> list[tuple[Intent, ...]]:
    first = next(
        (index for index, step in enumerate(steps) if any(wish.has_side_effects for wish in step)), len(steps)
    )
    return list(steps[:first])


def _has_required_arguments(function: DeclaredFunction) -> bool:
    return bool(resolve(function.schema, function.schema).get("required"))


def _single_kind(function: DeclaredFunction) -> str:
    """Return the kind of the only string that the function requires, or "" if it needs more or a list."""
    root = resolve(function.schema, function.schema)
    named = root.get("properties") or {}
    required = [name for name in root.get("required") or () if isinstance(name, str) and name in named]
    needed = [(name, resolve(function.schema, named[name])) for name in required]
    if any(type_of(node) == "array" for _, node in needed):
        return ""
    kinds = [
        kind_of_property(name, str(node.get("format", "")))
        for name, node in needed
        if type_of(node) == "string"
    ]
    # `fetch URL` requires a prompt too: the more specific of two kinds decides.
    specific = [kind for kind in kinds if kind != "text"] or kinds
    return specific[0] if len(specific) == 1 else ""
