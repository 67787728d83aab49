"""Split prose into consecutive steps, the clauses of each step, and the values of lists."""

from __future__ import annotations

import re

from dragoman.emulator.arguments.supply import VALUE_PATTERNS

_LEADING = re.compile(
    r"(?:(?:please|first|firstly|now|also|and|then|next|finally|lastly|just)\b[\s,]*)+", re.IGNORECASE
)
_STEP_END = re.compile(
    r"\s*(?:[;.!?](?=\s|$)|\n|,?\s*\b(?:and\s+)?(?:then|after that|afterwards|finally|lastly)\b,?)[\s.!?]*",
    re.IGNORECASE,
)
_TOGETHER = re.compile(r"\s*,\s*(?:and\s+)?(?:also\s+)?|\s+and\s+(?:also\s+)?|\s*&\s*", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")
_BETWEEN = r"(?:\s*,\s*(?:and\s+)?|\s+and\s+|\s*&\s*)(?:(?:in|for|of|at|from|to|on|about)\s+)?"
_MOST_VALUES = 8
_HIDDEN = "\ue000"

#: A clause begins with one of these; any other word after `and` continues the clause before it.
_OPENERS = frozenset(
    """
    add append ask calculate check compute count create delete describe download edit exec execute explain
    fetch find get give glob grep list look make move open post query read remove rename replace report run
    save say search send set show summarise summarize tell update use view what when where which who why how
    write
    """.split()
)
#: Literals of these kinds; a list of them for a property of that kind asks for one call each.
_LISTED = {
    "path": ("quoted", "path"),
    "url": ("url",),
    "email": ("email",),
    "name": ("quoted", "name"),
    "text": ("quoted",),
}
_VALUE = {
    kind: re.compile("|".join(f"(?:{VALUE_PATTERNS[listed].pattern})" for listed in kinds))
    for kind, kinds in _LISTED.items()
}
_LIST = {
    kind: re.compile(rf"(?:{value.pattern})(?:{_BETWEEN}(?:{value.pattern}))+")
    for kind, value in _VALUE.items()
}


def split_steps(words: str) -> list[list[str]]:
    """Return the clauses of each step, in order. Quoted text is never split."""
    hidden = _hide_quoted(words)
    steps = [_clauses(words, hidden, start, end) for start, end in _spans(_STEP_END, hidden, 0, len(words))]
    return [step for step in steps if step]


def first_word(clause: str) -> str:
    found = _WORD.match(clause)
    return found.group().lower() if found else ""


def expand_list(clause: str, kind: str) -> list[str]:
    """Return one clause for each value of a list: `read a and b` becomes `read a`, `read b`."""
    found = _LIST[kind].search(clause)
    if found is None:
        return [clause]
    values = [value.group() for value in _VALUE[kind].finditer(found.group())]
    head, tail = clause[: found.start()], clause[found.end() :]
    return [f"{head}{value}{tail}" for value in values[:_MOST_VALUES]]


def _clauses(words: str, hidden: str, start: int, end: int) -> list[str]:
    clauses: list[str] = []
    joined_from = start
    for begin, stop in _spans(_TOGETHER, hidden, start, end):
        opens = first_word(_strip_leading(words[begin:stop])) in _OPENERS
        if opens or not clauses:
            joined_from = begin
            clauses.append(words[begin:stop])
        else:
            clauses[-1] = words[joined_from:stop]
    return [bare for clause in clauses if (bare := _strip_leading(clause))]


def _strip_leading(clause: str) -> str:
    """Strip leading words such as `please` and `then`."""
    clause = clause.strip()
    leading = _LEADING.match(clause)
    return clause[leading.end() :] if leading else clause


def _spans(separator: re.Pattern[str], hidden: str, start: int, end: int) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for found in separator.finditer(hidden, start, end):
        spans.append((start, found.start()))
        start = found.end()
    return [*spans, (start, end)]


def _hide_quoted(words: str) -> str:
    return VALUE_PATTERNS["quoted"].sub(lambda found: _HIDDEN * len(found.group()), words)
