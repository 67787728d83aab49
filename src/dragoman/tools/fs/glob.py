"""Glob patterns as in git and shells, compiled to regular expressions that match in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from dragoman.tools.errors import ToolFailed

_MAX_ALTERNATIVES = 64
_DEEP = re.compile(r"\*\*+")  # any number of folders
_ESCAPED = re.compile(r"\\.", re.DOTALL)  # an escaped slash is an ordinary slash
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_CLASSES = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z",
    "space": r"\s", "xdigit": "0-9a-fA-F", "word": r"\w", "blank": r" \t",
    "punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
}  # fmt: skip


class Glob:
    """A compiled pattern.

    A pattern without a slash (`*.rs`) matches at any depth; one with a slash is relative to the listed directory.
    `**` and `{a,b}` are supported. Raises `ToolFailed` for too many brace alternatives.
    """

    def __init__(self, pattern: str) -> None:
        spelled = [_rooted(each.removeprefix("./")) for each in expand_braces(pattern)]
        self._ways = [list(map(_part, _folders(each))) for each in spelled]
        self._path = compile_any([translate(each) for each in spelled])
        names = [each.removeprefix("**/") for each in spelled if each.startswith("**/")]
        anywhere = len(names) == len(spelled) and not any("/" in name for name in names)
        self._name = compile_any(map(translate, names)) if anywhere else None
        self._all = spelled == ["**/*"]

    def filter_names(self, folder: str, names: list[str]) -> list[str]:
        """Return the matching names in `folder`, which is a path with a trailing slash, or empty."""
        if self._all:
            return names
        if self._name:
            return list(filter(self._name, names))
        return [name for name in names if self._path(folder + name)]

    def may_enter(self, folder: str) -> bool:
        """Return whether anything below this folder can match; a listing skips the other folders."""
        return self._name is not None or any(_may_contain_match(folder.split("/"), way) for way in self._ways)


def compile_any(regexes: Iterable[str | None]) -> Callable[[str], object]:
    """Return a function that tests whether one of the expressions matches a whole text; None matches nothing."""
    return re.compile("|".join(each or "(?!)" for each in regexes), re.DOTALL).fullmatch


def _rooted(pattern: str) -> str:
    if "/" not in pattern:
        return f"**/{pattern}"
    return "/".join(filter(None, pattern.split("/"))) + ("/**" if pattern.endswith("/") else "")


def _folders(pattern: str) -> list[str]:
    *folders, name = pattern.split("/")
    return [*folders, name] if _DEEP.fullmatch(name) else folders


def _part(name: str) -> Callable[[str], object] | None:
    return None if _DEEP.fullmatch(name) else compile_any([translate(name)])


def _may_contain_match(names: list[str], way: list[Callable[[str], object] | None]) -> bool:
    for name, part in zip(names, way, strict=False):
        if part is None:
            return True
        if not part(name):
            return False
    return len(names) <= len(way)


def expand_braces(pattern: str) -> list[str]:
    """Expand braces: `*.{ts,tsx}` becomes `*.ts` and `*.tsx`. Raise `ToolFailed` for too many alternatives."""
    done, todo = [], [pattern]
    while todo:
        each = todo.pop()
        braces = _BRACES.search(each)
        if not braces:
            done.append(each)
        else:
            todo.extend(each[: braces.start()] + word + each[braces.end() :] for word in braces[1].split(","))
        if len(done) + len(todo) > _MAX_ALTERNATIVES:
            raise ToolFailed(f"the pattern has more than {_MAX_ALTERNATIVES} alternatives")
    return done


def translate(pattern: str) -> str | None:
    """Return a regular expression for a whole path, or None for a pattern that matches nothing.

    A piece between two stars is an atomic group (`(?>…)`) that matches at its first position and is never retried.
    The leftmost match is sufficient, because the next star matches whatever follows; so there is no backtracking.
    """
    runs: list[list[str]] = [[]]
    for part in _ESCAPED.sub(lambda found: found[0].replace("\\/", "/"), pattern).split("/"):
        if _DEEP.fullmatch(part):
            if runs[-1] or len(runs) == 1:
                runs.append([])
            continue
        name = _name(part)
        if not name:  # invalid, or two slashes in a row, which no path contains
            return None
        runs[-1].append(name)
    first, *others = ["/".join(run) for run in runs]
    if not others:
        return first
    out = f"{first}/" if first else ""
    for run in others[:-1]:
        out += f"(?>(?:[^/]+/)*?{run}/)"
    return out + (f"(?:[^/]+/)*{others[-1]}" if others[-1] else ".+")


def _name(part: str) -> str | None:
    pieces = [""]
    for piece in _tokens(part):
        if piece is None:
            return None
        if piece == "*":
            pieces.append("")
        else:
            pieces[-1] += piece
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(f"(?>[^/]*?{inner})" for inner in pieces[1:-1] if inner)
    return f"{pieces[0]}{middle}[^/]*{pieces[-1]}"


def _tokens(part: str) -> Iterator[str | None]:
    """Yield a regular expression per character, "*" for a star, None for invalid syntax."""
    at = 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            yield "*"
        elif char == "?":
            yield "[^/]"
        elif char == "\\":
            yield re.escape(part[at]) if at < len(part) else None
            at += 1
        elif char == "[":
            found, at = _bracket(part, at)
            yield found
        else:
            yield re.escape(char)


def _bracket(part: str, at: int) -> tuple[str | None, int]:
    negated = part[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while at < len(part) and (first or part[at] != "]"):
        first = False
        named = re.compile(r"\[:(\w+):\]").match(part, at)
        if named:
            if named[1] not in _CLASSES:
                return None, len(part)
            items.append(_CLASSES[named[1]])
            at = named.end()
            continue
        low, at = _literal(part, at)
        if part[at : at + 1] == "-" and part[at + 1 : at + 2] not in ("", "]"):
            high, at = _literal(part, at + 1)
            # As in git, a reversed range matches only its first character.
            items.append(f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low))
        else:
            items.append(re.escape(low))
    if at >= len(part):
        return None, at
    body = "".join(items)
    if negated:
        return f"[^/{body}]", at + 1
    return (f"(?!/)[{body}]" if body else "(?!)"), at + 1


def _literal(part: str, at: int) -> tuple[str, int]:
    if part[at] == "\\" and at + 1 < len(part):
        at += 1
    return part[at], at + 1
