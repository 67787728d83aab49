"""Rules of nested .gitignore files: the last matching rule of the deepest file that has one decides.

See https://git-scm.com/docs/gitignore.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

import msgspec

from dragoman.tools.fs.glob import compile_any, translate

_LITERAL = re.compile(r"[^*?\[\\]+")


class IgnoreRule(msgspec.Struct, frozen=True):
    """One line of a .gitignore: `regex` matches the path below its folder if `rooted`, else only the last name."""

    regex: re.Pattern[str]
    rooted: bool
    folders_only: bool
    keep: bool  # the line starts with "!"


class IgnoreFile:
    """The rules of one file, with a fast pre-filter for the many names that no rule matches."""

    def __init__(self, text: str) -> None:
        parsed = [_parse_rule(line) for line in text.removeprefix("\ufeff").split("\n")]
        simple = [(rule, plain) for rule, plain in filter(None, parsed)]
        self._rules = [rule for rule, _ in simple][::-1]
        self._names = {plain for rule, plain in simple if plain[:1] not in ("", "*") and not rule.rooted}
        self._endings = tuple(plain[1:] for _, plain in simple if plain.startswith("*"))
        self._paths = {plain for rule, plain in simple if plain and rule.rooted}
        self._folders = {path[: path.rfind("/") + 1] for path in self._paths}
        others = [rule for rule, plain in simple if not plain]
        self._other_names = _compile_rules(rule for rule in others if not rule.rooted)
        self._other_paths = _compile_rules(rule for rule in others if rule.rooted)

    def candidates(self, folder: str, names: list[str]) -> set[str]:
        """Return the names in a folder that some rule may match."""
        known, endings = self._names, self._endings
        found = {name for name in names if name in known or name.endswith(endings)}
        if folder in self._folders:
            found.update(name for name in names if folder + name in self._paths)
        if self._other_names:
            found.update(filter(self._other_names, names))
        if self._other_paths:
            found.update(name for name in names if self._other_paths(folder + name))
        return found

    def decide(self, path: str, name: str, is_folder: bool) -> bool | None:
        """Return True if the path is ignored, False if it is re-included, None if no rule matches."""
        for rule in self._rules:
            if (is_folder or not rule.folders_only) and rule.regex.fullmatch(path if rule.rooted else name):
                return not rule.keep
        return None


class IgnoreRules(msgspec.Struct, frozen=True):
    """The .gitignore files that apply to one folder: its own first, then those of its parents."""

    files: tuple[tuple[int, IgnoreFile], ...] = ()  # (length of the file's folder with its slash, rules)

    def filter_names(self, folder: str, names: list[str], *, are_folders: bool) -> list[str]:
        """Return the names that are not ignored; `folder` is a path with a trailing slash, or empty."""
        concerned: set[str] = set()
        for start, file in self.files:
            concerned |= file.candidates(folder[start:], names)
        if not concerned:
            return names
        return [
            name
            for name in names
            if name not in concerned or not self._ignored(f"{folder}{name}", name, are_folders)
        ]

    def with_file(self, folder: str, text: str) -> IgnoreRules:
        """Return these rules with the .gitignore of `folder` added in front."""
        return IgnoreRules(((len(folder), IgnoreFile(text)), *self.files)) if text else self

    def _ignored(self, path: str, name: str, is_folder: bool) -> bool:
        for start, file in self.files:
            decided = file.decide(path[start:], name, is_folder)
            if decided is not None:
                return decided
        return False


def _compile_rules(rules: Iterable[IgnoreRule]) -> Callable[[str], object] | None:
    patterns = [rule.regex.pattern for rule in rules]
    return compile_any(patterns) if patterns else None


def _parse_rule(line: str) -> tuple[IgnoreRule, str] | None:
    """Parse a line; return its rule, and the literal path, name or `*ending` it matches if it is that simple."""
    line = _strip_trailing_spaces(line.removesuffix("\r"))
    if not line or line.startswith("#"):
        return None
    keep = line.startswith("!")
    pattern = line[keep:]
    folders_only = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    rooted = "/" in pattern
    regex = translate(pattern.removeprefix("/") if rooted else pattern.replace("**", "*"))
    if not pattern or regex is None:
        return None
    return IgnoreRule(re.compile(regex, re.DOTALL), rooted, folders_only, keep), _literal(pattern, rooted)


def _literal(pattern: str, rooted: bool) -> str:
    if rooted:
        return pattern.removeprefix("/") if _LITERAL.fullmatch(pattern) else ""
    return pattern if _LITERAL.fullmatch(pattern.removeprefix("*")) else ""


def _strip_trailing_spaces(line: str) -> str:
    """Strip trailing spaces, except one that is escaped with a backslash."""
    stripped = line.rstrip(" ")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 and len(line) > len(stripped) else stripped
