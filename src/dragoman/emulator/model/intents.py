"""Read from prose which functions to call, step by step, and when prose may trigger tools with side effects.

Nothing is stored between requests: each request derives the same plan from the text of the turn.

The emulator is the default upstream of agents that run commands, and it does not understand "do not". So tools with
side effects are called only if the whole turn is a short, explicit order, and every rule is an allow-list: an unknown
word, a literal that is left over or a missing argument means that nothing is called. Otherwise only a directive
(`directives`) or the mode ANY calls such tools.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.emulator.model.arguments import fill_arguments
from dragoman.emulator.model.json_schema import resolve, type_of
from dragoman.emulator.model.tool_selection import find_by_similarity, find_by_verb, name_words
from dragoman.emulator.model.user_text import (
    VALUE_PATTERNS,
    TextValues,
    expand_list,
    first_word,
    kind_of_property,
    spaced_name,
    split_steps,
)
from dragoman.emulator.parsed_request import DeclaredFunction

MAX_ORDER_CHARS = 400

#: Verbs that prose can order. Actions that cannot be undone need a directive.
_ACTION_VERBS = frozenset("append create edit exec execute post replace run save send update write".split())
_DOUBT = re.compile(
    r"\?|```|:\s*(?:\n|$)|n['’]t\b|"
    r"\b(?:no|not|never|none|nothing|nobody|neither|nor|without|avoid|instead|rather|except|unless|if|whether|"
    r"when|would|could|should|shall|might|may|can|cannot|cant|dont|wont|didnt|isnt|shouldnt|stop|halt|refuse|"
    r"forbid\w*|prevent\w*|skip|cancel|ignore|undo|pretend|suppose|imagine|hypothetical\w*|example|explain\w*|"
    r"describe|translate|mean\w*|danger\w*|careful|harmful|wrong|unsafe|illegal|but|however|only|before|until|"
    r"later|tomorrow)\b",
    re.IGNORECASE,
)
_REPORT = re.compile(
    r"(?:tell|show|give|report|say|summari[sz]e)(?:\s+(?:me|us))?"
    r"(?:\s+(?:it|that|them|what\s+(?:it|they)\s+says?|(?:the|its)\s+(?:results?|outputs?|contents?|answer)))?",
    re.IGNORECASE,
)
_PLAIN_WORDS = frozenset(
    """
    a an and as by called command containing content contents file from in into it its line message named new of
    on output please replace result results saying says shell summary terminal text that the them this to using
    with
    """.split()
)
_WORD = re.compile(r"[^\W_][\w'’-]*")
_CONTENT_NAMES = frozenset("body content contents data message source text".split())
_ADDRESSEES = frozenset("to recipient".split())
_PAIRED_NAMES = frozenset("old new".split())


class ClauseLiterals(msgspec.Struct):
    """The literal values in a clause, and the text around them."""

    quoted: list[str]
    paths: list[str]
    emails: list[str]
    around: str

    @property
    def is_empty(self) -> bool:
        return not (self.quoted or self.paths or self.emails)


def allows_side_effects(user_text: str) -> bool:
    """Whether the turn is short, asks no question and contains no word of negation or doubt."""
    return len(user_text.strip()) <= MAX_ORDER_CHARS and _DOUBT.search(user_text) is None


def asks_for_report(clause: str) -> bool:
    """Whether a clause like `tell me what it says` asks only for the answer."""
    return _REPORT.fullmatch(clause.strip()) is not None


def orders_function(clause: str, function: DeclaredFunction) -> bool:
    """Whether the first word of the clause is part of the function's name."""
    return first_word(clause) in name_words(function)


def find_ordered_action(
    clause: str, functions: Sequence[DeclaredFunction], earlier: str | None
) -> DeclaredFunction | None:
    """Return the function that the clause orders, or None if there is none or more than one.

    Only the candidates with the shortest name are considered.
    """
    if first_word(clause) not in _ACTION_VERBS:
        return None
    orders = [item for item in functions if orders_function(clause, item)]
    shortest = min((len(name_words(item)) for item in orders), default=0)
    plainest = [item for item in orders if len(name_words(item)) == shortest]
    fitting = [item for item in plainest if literal_arguments(item, clause, earlier) is not None]
    return fitting[0] if len(fitting) == 1 else None


def literal_arguments(function: DeclaredFunction, clause: str, earlier: str | None) -> dict[str, Any] | None:
    """Return the arguments, taken literally from the clause, or None if they are incomplete.

    The result of the `earlier` step can be used as content.
    """
    if not orders_function(clause, function):
        return None
    found = _literals(clause)
    root = resolve(function.schema, function.schema)
    named = root.get("properties") or {}
    needed = [name for name in root.get("required") or () if name in named]
    known = (
        _PLAIN_WORDS
        | set(name_words(function))
        | {word for name in needed for word in spaced_name(name).split()}
    )
    if not needed or any(word.lower() not in known for word in _WORD.findall(found.around)):
        return None
    in_quotes = [name for name in needed if _kind_of_argument(name) not in ("path", "email")]
    if len(in_quotes) > 1 and not all(_PAIRED_NAMES & set(spaced_name(name).split()) for name in in_quotes):
        return None  # the order of two quoted texts would be a guess
    args: dict[str, Any] = {}
    for name in needed:
        node = resolve(function.schema, named[name])
        plain = type_of(node) == "string" and not node.keys() & {"enum", "const", "pattern", "anyOf", "oneOf"}
        value = _take_literal(name, found, earlier) if plain else None
        if value is None:
            return None
        args[name] = value
    return args if found.is_empty else None


def _take_literal(name: str, found: ClauseLiterals, earlier: str | None) -> str | None:
    kind = _kind_of_argument(name)
    unquoted = {"path": found.paths, "email": found.emails}.get(kind, [])
    if unquoted:
        return unquoted.pop(0)
    if kind == "email":
        return None
    if kind == "path" and found.quoted and VALUE_PATTERNS["path"].fullmatch(found.quoted[0]) is None:
        return None
    if found.quoted:
        return found.quoted.pop(0)
    return earlier if _CONTENT_NAMES & set(spaced_name(name).split()) else None


def _kind_of_argument(name: str) -> str:
    return "email" if spaced_name(name) in _ADDRESSEES else kind_of_property(name, "")


def _literals(clause: str) -> ClauseLiterals:
    around, quoted = _extract("quoted", clause)
    around, emails = _extract("email", around)
    around, paths = _extract("path", around)
    return ClauseLiterals([text[1:-1] for text in quoted], paths, emails, around)


def _extract(kind: str, text: str) -> tuple[str, list[str]]:
    found = [match.group() for match in VALUE_PATTERNS[kind].finditer(text)]
    return VALUE_PATTERNS[kind].sub(" ", text), found


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


def read_intents(user_text: str, functions: Sequence[DeclaredFunction]) -> IntentSteps:
    """Return the calls of each step. There are never more steps than clauses, so every plan ends."""
    if len(user_text.strip()) > MAX_ORDER_CHARS:
        return _whole_text_intent(user_text, functions)
    steps: list[tuple[Intent, ...]] = []
    obeying = allows_side_effects(user_text)
    forbidden = False
    for clauses in split_steps(user_text):
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
    return tuple(steps) or (() if forbidden else _whole_text_intent(user_text, functions))


def _whole_text_intent(user_text: str, functions: Sequence[DeclaredFunction]) -> IntentSteps:
    chosen = find_by_similarity(user_text, functions)
    return ((Intent(chosen, user_text),),) if chosen is not None else ()


def _read_only_intents(clause: str, functions: Sequence[DeclaredFunction], *, later: bool) -> list[Intent]:
    """Return the calls of a read-only function, one for each value if the clause lists several."""
    text_values = TextValues(clause)
    chosen = find_by_similarity(clause, functions)
    if chosen is None and text_values.has_literal:
        chosen = find_by_verb(first_word(clause), functions)
    if chosen is None or (later and _has_required_arguments(chosen) and not text_values.has_literal):
        return []  # `then tell me what is in the file` needs no second call
    kind = _single_kind(chosen)
    return [Intent(chosen, item) for item in (expand_list(clause, kind) if kind else [clause])]


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
