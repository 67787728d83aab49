"""Generate a string for a regular expression: a short one, for the simple constructs of the syntax.

pattern  = sequence { `|` sequence }
sequence = { atom [quantifier] }
atom     = group | class | escape | character
"""

from __future__ import annotations

import re
import string
import warnings

_WORD = string.ascii_lowercase + string.ascii_uppercase + string.digits + "_"
#: The characters that an escape matches; anchors match none.
_ESCAPES = {
    "d": string.digits,
    "w": _WORD,
    "s": " ",
    "D": _WORD[:26],
    "W": " -",
    "S": _WORD,
    "n": "\n",
    "t": "\t",
}
_ANCHORS = frozenset("bBAZz")
_ANYTHING = _WORD[:26] + string.digits + " -.,:/@#"
_QUANTIFIER = re.compile(r"([*+?]|\{(\d+)(?:(,)(\d*))?\})[?+]?")
_FIXED = {"*": (0, None), "+": (1, None), "?": (0, 1)}
_GROUP = re.compile(r"\((?:\?(?:P?<(?P<name>\w+)>|(?P<kind>[:=!]|<[=!])))?")
_MAX_CHARS = 4000


def matches(pattern: str, text: str) -> bool:
    """Whether the pattern occurs in the text. A pattern that Python cannot compile matches everything."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # FutureWarning about ambiguous character sets
            return re.search(pattern, text) is not None
    except re.error:
        return True


def sample_pattern(pattern: str, *, more: int = 0, variant: int = 0) -> str:
    """Return a string that probably matches.

    `more` adds repetitions where they are allowed, `variant` selects other characters.
    """
    return _Sampler(pattern, more, variant).alternatives()[:_MAX_CHARS]


class _Sampler:
    """Parses the pattern from left to right and generates the string at the same time."""

    def __init__(self, pattern: str, more: int, variant: int) -> None:
        self._pattern = pattern
        self._place = 0
        self._more = more
        self._variant = variant

    def alternatives(self) -> str:
        found = [self._sequence()]
        while self._peek() == "|":
            self._place += 1
            found.append(self._sequence())
        return found[0]

    def _sequence(self) -> str:
        written: list[str] = []
        while self._peek() not in ("", "|", ")"):
            atom = self._atom()
            written.append(atom * self._repeats())
        return "".join(written)

    def _atom(self) -> str:
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return self._pick(self._members())
        if character == "\\":
            return self._escape()
        if character in "^$":
            return ""
        return self._pick(_ANYTHING) if character == "." else character

    def _group(self) -> str:
        opening = _GROUP.match(self._pattern, self._place - 1)
        self._place = opening.end() if opening else self._place
        inner = self.alternatives()
        self._place += 1  # the closing bracket
        # A lookaround matches no characters.
        return "" if opening and opening["kind"] not in (None, ":") else inner

    def _escape(self) -> str:
        character = self._next()
        if character in _ANCHORS:
            return ""
        return self._pick(_ESCAPES.get(character, character))

    def _members(self) -> str:
        negated = self._peek() == "^"
        self._place += negated
        members = ""
        while self._peek() not in ("", "]") or (self._peek() == "]" and not members):
            members += self._member()
        self._place += 1  # the closing bracket
        if not negated:
            return members
        return "".join(other for other in _ANYTHING + _WORD if other not in members)

    def _member(self) -> str:
        character = self._next()
        if character == "\\":
            escaped = self._next()
            if escaped in _ESCAPES:
                return _ESCAPES[escaped]
            character = escaped
        ahead = self._pattern[self._place : self._place + 2]
        if len(ahead) == 2 and ahead[0] == "-" and ahead[1] not in "]\\":
            self._place += 2
            last = min(ord(ahead[1]), ord(character) + 127)
            return "".join(map(chr, range(ord(character), last + 1)))
        return character

    def _repeats(self) -> int:
        found = _QUANTIFIER.match(self._pattern, self._place)
        if found is None:
            return 1
        self._place = found.end()
        sign, low, comma, high = found.groups()
        least, most = _FIXED.get(sign, (int(low or 0), None if comma and not high else int(high or low or 0)))
        wanted = least + self._more
        return min(wanted if most is None else min(wanted, most), _MAX_CHARS)

    def _pick(self, members: str) -> str:
        return members[self._variant % len(members)] if members else ""

    def _peek(self) -> str:
        return self._pattern[self._place : self._place + 1]

    def _next(self) -> str:
        character = self._peek()
        self._place += 1
        return character
