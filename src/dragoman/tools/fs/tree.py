"""List the files below a directory in a stable order, without ignored files, using only directory descriptors."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Self

import msgspec

from dragoman.tools.errors import ToolError
from dragoman.tools.fs.glob import Glob
from dragoman.tools.fs.ignore import IgnoreRules
from dragoman.tools.sandbox import Sandbox, SandboxEntry
from dragoman.tools.sandbox.names import MAX_DEPTH, is_internal
from dragoman.tools.sandbox.place import DRAFT_PREFIX

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
