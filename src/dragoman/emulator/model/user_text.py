"""Read the user's text: its steps and clauses, and the values in it.

Values are quotations, paths, URLs, email addresses, numbers and names. Lists of them become one clause for each value.
"""

from __future__ import annotations

import re

_URL = re.compile(r"\bhttps?://[^\s\"'`<>)\]]*[^\s\"'`<>)\].,;:!?]")
_PATH = re.compile(
    r"(?<![\w/:])(?:~|\.{1,2})?/[\w.@/-]*[\w@/-]|(?<![\w/:.])[\w-]+(?:/[\w.-]+)*\.[A-Za-z]\w{0,5}\b"
)
_NUMBER = re.compile(r"(?<![\w./-])-?\d+(?:\.\d+)?(?![\w/]|\.\d)")
_EMAIL = re.compile(r"\b[\w.+-]+@[\w-]+\.[\w.-]*\w")
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][\w-]*(?: [A-Z][\w-]*)*")

#: Patterns of values by kind; the whole match is the value.
VALUE_PATTERNS = {
    "url": _URL,
    "email": _EMAIL,
    "path": _PATH,
    "quoted": re.compile(r"\"[^\"\n]+\"|`[^`\n]+`|(?<!\w)'[^'\n]+'(?!\w)|“[^”\n]+”"),
    "name": re.compile(r"\b[A-Z][\w-]*(?: [A-Z][\w-]*)*"),
}

_PATH_WORDS = ("path", "file", "dir", "directory", "folder", "cwd", "root")
_URL_WORDS = ("url", "uri", "link", "href", "website")
_NAME_WORDS = ("city", "location", "place", "country", "name", "person", "user", "subject", "title", "town")
_WHOLE_WORDS = (
    "query",
    "prompt",
    "question",
    "text",
    "message",
    "input",
    "task",
    "description",
    "request",
    "content",
)
_MAX_TEXT_CHARS = 400


class TextValues:
    """The values in a text, by kind. A value is used only once, so two properties get two paths."""

    def __init__(self, user_text: str) -> None:
        self._text = user_text[:20_000]
        self._lowered = self._text.lower()
        bare = _URL.sub(" ", self._text)
        self._values_by_kind: dict[str, list[str]] = {
            "url": _URL.findall(self._text),
            "email": _EMAIL.findall(self._text),
            "quoted": [text[1:-1] for text in VALUE_PATTERNS["quoted"].findall(self._text)],
            "path": _PATH.findall(_EMAIL.sub(" ", bare)),
            "number": _NUMBER.findall(bare),
            "name": _NAME.findall(self._text),
        }

    @property
    def has_literal(self) -> bool:
        """Whether the text contains any value besides prose."""
        return any(self._values_by_kind.values())

    def mentions(self, value: str) -> bool:
        return (
            re.search(rf"(?<!\w){re.escape(value.lower())}(?!\w)", self._lowered) is not None
            if value
            else False
        )

    def number_for(self, name: str, *, required: bool) -> float | None:
        """Return the next number. An optional property gets one only if the text mentions its name."""
        if not required and not self.mentions(spaced_name(name)) and not self.mentions(name):
            return None
        taken = self._take("number")
        if taken is None:
            return None
        return float(taken) if "." in taken else int(taken)

    def string_for(self, name: str, form: str, *, required: bool) -> str | None:
        """Return a value of the kind that the name or format of the property suggests.

        Without such a kind, return quoted text, a name or the whole text.
        """
        name_words = _singular(spaced_name(name))
        kind = kind_of_property(name, form)
        if kind in ("path", "url", "email"):
            taken = self._take(kind)
            return taken if taken is not None or not required else self._take("quoted")
        if form:
            return None
        if not required:
            return (
                self._take("quoted")
                if self.mentions(spaced_name(name)) and name_words.isdisjoint(_WHOLE_WORDS)
                else None
            )
        if kind == "name":
            return self._take("name") or self._take("quoted") or self._rest()
        return (
            self._take("quoted")
            or (None if name_words.isdisjoint(_WHOLE_WORDS) else self._whole())
            or self._rest()
        )

    def count_for(self, name: str, form: str) -> int:
        """Return how many values are left of the kind that the items of a list need."""
        kind = kind_of_property(name, form)
        return len(self._values_by_kind["quoted" if kind == "text" else kind])

    def _take(self, kind: str) -> str | None:
        values = self._values_by_kind[kind]
        if not values:
            return None
        value = values.pop(0)
        for others in self._values_by_kind.values():
            if value in others:
                others.remove(value)
        return value

    def _rest(self) -> str | None:
        """Return a proper name if there is one, else the whole text."""
        return self._take("name") or self._whole()

    def _whole(self) -> str | None:
        return self._text.strip()[:_MAX_TEXT_CHARS] or None


def kind_of_property(name: str, form: str) -> str:
    """Return the kind of a property by its name and format: path, url, email, name, or text."""
    name_words = _singular(spaced_name(name))
    if form in ("uri", "url"):
        return "url"
    if form == "email":
        return "email"
    for kind, names in (
        ("url", _URL_WORDS),
        ("path", _PATH_WORDS),
        ("email", ("email",)),
        ("name", _NAME_WORDS),
    ):
        if any(word in names for word in name_words):
            return kind
    return "text"


def _singular(phrase: str) -> set[str]:
    """Return the words and their singular forms: a list of `paths` has items of the kind path."""
    plain = set(phrase.split())
    return plain | {word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s") for word in plain}


def spaced_name(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+", " ", name).lower()


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


def split_steps(user_text: str) -> list[list[str]]:
    """Return the clauses of each step, in order. Quoted text is never split."""
    hidden = _hide_quoted(user_text)
    steps = [
        _clauses(user_text, hidden, start, end) for start, end in _spans(_STEP_END, hidden, 0, len(user_text))
    ]
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


def _clauses(user_text: str, hidden: str, start: int, end: int) -> list[str]:
    clauses: list[str] = []
    joined_from = start
    for begin, stop in _spans(_TOGETHER, hidden, start, end):
        opens = first_word(_strip_leading(user_text[begin:stop])) in _OPENERS
        if opens or not clauses:
            joined_from = begin
            clauses.append(user_text[begin:stop])
        else:
            clauses[-1] = user_text[joined_from:stop]
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


def _hide_quoted(user_text: str) -> str:
    return VALUE_PATTERNS["quoted"].sub(lambda found: _HIDDEN * len(found.group()), user_text)
