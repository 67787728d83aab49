"""Match regular expressions written by a model, in Python's syntax, in linear time.

    pattern  = sequence { `|` sequence };  sequence = { atom [quantifier] };  atom = group | class | escape | character

Python's `re` backtracks, so a pattern could block the gateway for an exponential time. This matcher simulates an
NFA and caches its state sets as a DFA, in one pass over the text. Features that need backtracking are refused: back
references, lookaround, atomic groups and possessive quantifiers. Only whether a line matches is of interest, so lazy
and greedy quantifiers are equivalent.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from typing import Final, Literal

import msgspec

MAX_PATTERN_CHARS: Final = 200
_MAX_STEPS: Final = 2_000  # instructions of a compiled pattern; `{1000}` copies its atom a thousand times
_MAX_WORK: Final = 400_000  # instructions executed over all lines: less than half a second
_MAX_STATES: Final = 4_096

_FLAGS = re.compile(r"(?:\(\?[ims]+\))*")
_GROUP = re.compile(r"\((?:\?(?:P<\w+>|[ims]*:))?")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|0[0-7]{0,2}|[1-9]\d*|.)", re.DOTALL)
_QUANTIFIER = re.compile(r"(?:([*+?])|\{(?!\})(\d*)(?:(,)(\d*))?\})([?+]?)")
_SIGNS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


class PatternError(ValueError):
    """The pattern is invalid or not supported; `late` if it exceeded the work limit while matching."""

    def __init__(self, why: str, *, late: bool = False) -> None:
        super().__init__(why)
        self.late = late


#: The kind of the character on one side of a position; `edge` is the start or end of the line.
_Side = Literal["edge", "word", "other"]


class _Char:
    """Matches one character; Python's `re` decides whether it belongs to the class or escape."""

    def __init__(self, source: str) -> None:
        self._is_one = _compile(source).fullmatch
        self._known: dict[str, bool] = {}

    def takes(self, character: str) -> bool:
        known = self._known.get(character)
        if known is None:
            known = self._known[character] = self._is_one(character) is not None
        return known


class _Assertion(msgspec.Struct, frozen=True):
    """A zero-width assertion: `^`, `$`, `\\b`, `\\B`."""

    kind: str

    def holds(self, before: _Side, ahead: _Side) -> bool:
        match self.kind:
            case "^":
                return before == "edge"
            case "$":
                return ahead == "edge"
            case "b":
                return (before == "word") != (ahead == "word")
            case _:
                return (before == "word") == (ahead == "word")


class _Split(msgspec.Struct, frozen=True):
    """Continues at each of these offsets, relative to this instruction."""

    offsets: tuple[int, ...]


_ASSERTIONS = {r"\b": "b", r"\B": "B", r"\A": "^", r"\Z": "$", "^": "^", "$": "$"}
_Code = list[_Char | _Assertion | _Split]


class _Closure(msgspec.Struct, frozen=True):
    """The epsilon closure of a state: whether the pattern has matched, and the characters that continue it."""

    found: bool
    chars: list[tuple[int, _Char]]


class _State:
    """A DFA state: the set of NFA positions and the kind of the last character; caches its transitions."""

    __slots__ = ("before", "closures", "moves", "places")

    def __init__(self, places: frozenset[int], before: _Side) -> None:
        self.places = places
        self.before = before
        self.closures: dict[_Side, _Closure] = {}
        self.moves: dict[str, _State] = {}


_FOUND = _State(frozenset(), "edge")


class LinearRegex:
    """A compiled pattern. Raise `PatternError` if it is invalid, not supported or too large."""

    def __init__(self, source: str) -> None:
        if len(source) > MAX_PATTERN_CHARS:
            raise PatternError(f"the pattern is longer than {MAX_PATTERN_CHARS} characters")
        try:
            _compile(source)
        except (re.error, OverflowError, RecursionError) as error:
            raise PatternError(str(error)) from None
        self._code = _Reader(source).read()
        self._work = 0
        self._reset_cache()

    def matches(self, line: str) -> bool:
        """Whether the pattern matches anywhere in the line, ignoring case; the line must have no line breaks.

        Raise a late `PatternError` if all calls together exceed the work limit.
        """
        state = self._start
        for character in line:
            following = state.moves.get(character) or self._move(state, character)
            if following is _FOUND:
                return True
            state = following
        return self._move(state, "") is _FOUND

    def _reset_cache(self) -> None:
        self._states: dict[tuple[frozenset[int], _Side], _State] = {}
        self._start = _State(frozenset([0]), "edge")

    def _move(self, state: _State, character: str) -> _State:
        """Return the state after one character, or after the end of the line (an empty string)."""
        side = _side(character)
        closure = state.closures.get(side) or self._closure(state, side)
        self._work += 1 + len(closure.chars)
        if self._work > _MAX_WORK:
            raise PatternError("the pattern takes too long; write a simpler one", late=True)
        if closure.found:
            following = _FOUND
        else:
            taken = [place + 1 for place, char in closure.chars if char.takes(character)]
            key = frozenset((0, *taken)), side
            if len(self._states) >= _MAX_STATES:
                self._reset_cache()
            following = self._states.setdefault(key, _State(*key))
        state.moves[character] = following
        return following

    def _closure(self, state: _State, ahead: _Side) -> _Closure:
        """Return the epsilon closure of a state, given the kind of the next character."""
        reached: set[int] = set()
        chars: list[tuple[int, _Char]] = []
        waiting = list(state.places)
        while waiting:
            place = waiting.pop()
            if place in reached:
                continue
            reached.add(place)
            match self._code[place] if place < len(self._code) else None:
                case _Split(offsets=offsets):
                    waiting += (place + offset for offset in offsets)
                case _Assertion() as assertion if assertion.holds(state.before, ahead):
                    waiting.append(place + 1)
                case _Char() as char:
                    chars.append((place, char))
        self._work += len(reached)
        state.closures[ahead] = closure = _Closure(found=len(self._code) in reached, chars=chars)
        return closure


class _Reader:
    """A recursive-descent compiler for a pattern that Python's `re` has accepted."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._place = 0

    def read(self) -> _Code:
        self._skip(_FLAGS)
        return self._alternatives()

    def _alternatives(self) -> _Code:
        code = self._sequence()
        while self._peek() == "|":
            self._place += 1
            other = self._sequence()
            code = [_Split((1, len(code) + 2)), *code, _Split((len(other) + 1,)), *other]
        return code

    def _sequence(self) -> _Code:
        code: _Code = []
        while self._peek() not in ("", "|", ")"):
            code += self._repeated(self._atom())
            if len(code) > _MAX_STEPS:
                raise PatternError("the pattern repeats too much")
        return code

    def _atom(self) -> _Code:
        character = self._peek()
        if character == "(":
            return self._group()
        if character == "[":
            return [_Char(self._skip(_CLASS))]
        source = self._skip(_ESCAPE) if character == "\\" else character
        if character != "\\":
            self._place += 1
        if source in _ASSERTIONS:
            return [_Assertion(_ASSERTIONS[source])]
        if source[1:2].isdigit() and source[1] != "0":
            raise PatternError("back references cannot be used here")
        return [_Char(source if len(source) > 1 or source == "." else re.escape(source))]

    def _group(self) -> _Code:
        opening = self._skip(_GROUP)
        if opening == "(" and self._peek() == "?":
            kind = self._source[self._place - 1 : self._place + 2]
            raise PatternError(f"{kind} cannot be used here: no looking around, references or other flags")
        code = self._alternatives()
        self._place += 1  # the closing bracket
        return code

    def _repeated(self, code: _Code) -> _Code:
        found = _QUANTIFIER.match(self._source, self._place)
        if found is None:
            return code
        self._place = found.end()
        sign, low, comma, high, manner = found.groups()
        if manner == "+":
            raise PatternError("possessive quantifiers cannot be used here")
        least, most = _SIGNS.get(
            sign, (int(low or 0), int(high) if high else None if comma else int(low or 0))
        )
        if len(code) * max(least, most or 0, 1) > _MAX_STEPS:
            raise PatternError("the pattern repeats too much")
        return [*code * least, *_optional_repeats(code, None if most is None else most - least)]

    def _peek(self) -> str:
        return self._source[self._place : self._place + 1]

    def _skip(self, form: re.Pattern[str]) -> str:
        found = form.match(self._source, self._place)
        read = found.group() if found is not None else self._peek()
        self._place += len(read)
        return read


def _optional_repeats(code: _Code, times: int | None) -> Iterator[_Char | _Assertion | _Split]:
    """Yield the code for at most `times` optional repetitions, or any number if `times` is None."""
    if times is None:
        yield from (_Split((1, len(code) + 2)), *code, _Split((-len(code) - 1,)))
    else:
        yield from (_Split((1, len(code) + 1)), *code) * times


def _side(character: str) -> _Side:
    if character == "":
        return "edge"
    return "word" if character.isalnum() or character == "_" else "other"


def _compile(source: str) -> re.Pattern[str]:
    with warnings.catch_warnings():  # FutureWarning for syntax that may change its meaning
        warnings.simplefilter("ignore")
        return re.compile(source, re.IGNORECASE)
