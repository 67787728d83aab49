"""List the files below a directory in a stable order, without ignored files, using only directory descriptors.

Rules of nested .gitignore files: the last matching rule of the deepest file that has one decides
(https://git-scm.com/docs/gitignore).
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Self

import msgspec

from dragoman.tools.errors import ToolError
from dragoman.tools.fs.glob import Glob, compile_any, translate
from dragoman.tools.fs.sandbox import DRAFT_PREFIX, MAX_DEPTH, Sandbox, SandboxEntry, is_internal

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


_ENTER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_IGNORE_BYTES = 1 << 20
_NO_IGNORE_RULES = IgnoreRules()


class ListingFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which files to list; `glob` matches paths relative to the listed directory."""

    glob: Glob
    include_ignored: bool = False
    limit: int = sys.maxsize


def list_tree(sandbox: Sandbox, path: str, wanted: ListingFilter) -> list[str]:
    """Return paths relative to the root: a folder's files by name, then those of its subfolders.

    Symlinks are listed as files but never followed.
    """
    with sandbox.open_directory(path) as (folder, real):
        names = real.split("/") if real else []
        ignores = _NO_IGNORE_RULES if wanted.include_ignored else _ignore_rules_above(sandbox, names)
        if ignores is None:
            return []
        prefix = f"{real}/" if real else ""
        listing = _Listing(wanted, sandbox.closed, len(prefix))
        listing.visit(folder, prefix, ignores, len(names))
    return listing.found[: wanted.limit]


class _Listing:
    def __init__(self, wanted: ListingFilter, closed: frozenset[tuple[int, int]], start: int) -> None:
        self._wanted = wanted
        self._closed = closed
        self._start = start
        self.found: list[str] = []

    def visit(self, folder: int, prefix: str, ignores: IgnoreRules, depth: int) -> None:
        """List one folder and its subfolders; the caller owns the descriptor `folder`."""
        files, folders = _sorted_names(folder)
        if not self._wanted.include_ignored and ".gitignore" in files:
            ignores = ignores.with_file(prefix, _read_rules(folder, ".gitignore"))
        below = prefix[self._start :]
        files = ignores.filter_names(prefix, self._wanted.glob.filter_names(below, files), are_folders=False)
        self.found.extend([prefix + name for name in files])
        folders = [name for name in folders if self._wanted.glob.may_enter(below + name)]
        for name in ignores.filter_names(prefix, folders, are_folders=True) if depth < MAX_DEPTH else ():
            if len(self.found) >= self._wanted.limit:
                return
            with self._entered(folder, name) as child:
                if child is not None:
                    self.visit(child, f"{prefix}{name}/", ignores, depth + 1)

    @contextlib.contextmanager
    def _entered(self, folder: int, name: str) -> Iterator[int | None]:
        try:
            child = os.open(name, _ENTER, dir_fd=folder)
        except OSError:  # deleted, replaced by a symlink, or not readable
            yield None
            return
        try:
            status = os.fstat(child)
            yield None if (status.st_dev, status.st_ino) in self._closed else child
        finally:
            os.close(child)


def _sorted_names(folder: int) -> tuple[list[str], list[str]]:
    """Return the files and symlinks, and the folders; leave out `.git`, our draft files and special files."""
    files, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == "." and (is_internal(name) or name.startswith(DRAFT_PREFIX)):
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append(name)
            elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                files.append(name)
    files.sort()
    folders.sort()
    return files, folders


def _ignore_rules_above(sandbox: Sandbox, names: list[str]) -> IgnoreRules | None:
    """Return the ignore rules of all parents of a folder, or None if the folder itself is ignored."""
    with sandbox.open_directory(".") as (root, _), _DirectoryCursor(root) as descent:
        ignores = _NO_IGNORE_RULES.with_file("", _read_exclude(root))
        prefix = ""
        for name in names:
            ignores = ignores.with_file(prefix, _read_rules(descent.folder, ".gitignore"))
            if not ignores.filter_names(prefix, [name], are_folders=True):
                return None
            descent.enter(name)
            prefix += f"{name}/"
    return ignores


def _read_exclude(root: int) -> str:
    """Read .git/info/exclude, directly because the sandbox refuses `.git`."""
    with contextlib.suppress(OSError), _DirectoryCursor(root) as descent:
        descent.enter(".git")
        descent.enter("info")
        return _read_rules(descent.folder, "exclude")
    return ""


class _DirectoryCursor:
    """A directory descriptor that descends name by name and never follows a symlink."""

    def __init__(self, root: int) -> None:
        self.folder = os.dup(root)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.folder)

    def enter(self, name: str) -> None:
        inner = os.open(name, _ENTER, dir_fd=self.folder)
        os.close(self.folder)
        self.folder = inner


def _read_rules(folder: int, name: str) -> str:
    with contextlib.suppress(OSError, ToolError):
        return os.fsdecode(SandboxEntry(folder=folder, name=name, path=name).read(_MAX_IGNORE_BYTES)[0])
    return ""
