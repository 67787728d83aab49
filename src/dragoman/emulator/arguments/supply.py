"""Extract argument values from the user's text: quotations, paths, URLs, email addresses, numbers, names."""

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

    def __init__(self, words: str) -> None:
        self._text = words[:20_000]
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
        words = _singular(spaced_name(name))
        kind = kind_of_property(name, form)
        if kind in ("path", "url", "email"):
            taken = self._take(kind)
            return taken if taken is not None or not required else self._take("quoted")
        if form:
            return None
        if not required:
            return (
                self._take("quoted")
                if self.mentions(spaced_name(name)) and words.isdisjoint(_WHOLE_WORDS)
                else None
            )
        if kind == "name":
            return self._take("name") or self._take("quoted") or self._rest()
        return (
            self._take("quoted")
            or (None if words.isdisjoint(_WHOLE_WORDS) else self._whole())
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
    words = _singular(spaced_name(name))
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
        if any(word in names for word in words):
            return kind
    return "text"


def _singular(words: str) -> set[str]:
    """Return the words and their singular forms: a list of `paths` has items of the kind path."""
    plain = set(words.split())
    return plain | {word[:-3] + "y" if word.endswith("ies") else word.removesuffix("s") for word in plain}


def spaced_name(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_\-.]+", " ", name).lower()
