"""`Sandbox`: walks from the root to an entry one name at a time, so that the kernel never follows a symlink for us."""

from __future__ import annotations

import contextlib
import errno
import os
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.sandbox.names import MAX_DEPTH, SECRET_NAMES, PathRules, printable_path
from dragoman.tools.sandbox.place import SandboxEntry, translate_os_errors

_MAX_LINKS = 40  # the limit of Linux
_ENTER = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LIST = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_SYSTEM_FOLDERS = ("/proc", "/sys", "/dev")  # only relevant if the root contains them


class Sandbox:
    """Access to everything below one directory.

    The root is opened once, so that renaming or replacing it later has no effect. Symlinks are read and resolved
    here, name by name: links that stay below the root work, others raise `ToolRefused`. `closed` are directories
    that must not be entered; they are identified by inode, not by name.

    All methods that take a path raise `ToolRefused` for a forbidden one and `ToolFailed` for other problems.
    """

    def __init__(
        self, root: Path, *, secrets: Sequence[str] = SECRET_NAMES, closed: Sequence[Path] = ()
    ) -> None:
        self.names = PathRules(secrets)
        self.root = Path(os.path.realpath(root))
        self._aliases = {self.root.parts, Path(os.path.abspath(root)).parts}
        folders = [*map(Path, _SYSTEM_FOLDERS), *closed]
        self.closed = frozenset(filter(None, map(_inode, folders)))
        with translate_os_errors(str(root)):
            self._root = os.open(self.root, _ENTER)
        weakref.finalize(self, os.close, self._root)

    @contextlib.contextmanager
    def open_entry(self, path: str, *, create_parents: bool = False) -> Iterator[SandboxEntry]:
        """Yield the entry that a path leads to: one that does not exist yet, or was no symlink when checked."""
        with self._walk(path, create=create_parents) as walk:
            if path.endswith("/"):
                raise ToolFailed("ends with '/', and a file is wanted", where=printable_path(path))
            with translate_os_errors(path):
                name = walk.to_entry()
            place = SandboxEntry(folder=walk.folder, name=name, path=_join_path(walk.trail, name))
            with translate_os_errors(path):
                yield place

    @contextlib.contextmanager
    def open_directory(self, path: str) -> Iterator[tuple[int, str]]:
        """Yield a descriptor for listing a directory, and the directory's path below the root."""
        with self._walk(path or ".") as walk, translate_os_errors(path):
            walk.to_directory()
            descriptor = os.open(".", _LIST, dir_fd=walk.folder)
            try:
                yield descriptor, "/".join(walk.trail)
            finally:
                os.close(descriptor)

    def resolve(self, path: str) -> str:
        """Return the path below the root with links resolved, for permission rules; it need not exist."""
        with self._walk(path) as walk, translate_os_errors(path):
            try:
                name = walk.to_entry()
            except FileNotFoundError:  # a folder that would have to be created
                return "/".join([*walk.trail, *walk.missing()])
            return _join_path(walk.trail, name)

    def relative_names(self, target: str) -> list[str] | None:
        """Return the names of an absolute path relative to the root, or None if it is outside."""
        parts = Path(target).parts
        for root in self._aliases:
            if parts[: len(root)] == root:
                return list(parts[len(root) :])
        return None

    @contextlib.contextmanager
    def _walk(self, path: str, *, create: bool = False) -> Iterator[_Walk]:
        try:
            names = self.names.split(path)
        except ToolRefused as refused:
            raise self._with_hint(refused, path) from None
        walk = _Walk(self, self._root, names, path, create)
        try:
            yield walk
        finally:
            walk.close()

    def _with_hint(self, refused: ToolRefused, path: str) -> ToolRefused:
        """Add the correct relative path to the refusal of an absolute path inside the root."""
        names = self.relative_names(path) if path.startswith("/") and "\0" not in path else None
        if names is None or ".." in names:
            return refused
        return ToolRefused(
            f"{refused.message} (here: {printable_path('/'.join(names) or '.')})", where=refused.where
        )


class _Walk:
    """The state of one walk: the directories entered so far (`_stack`, `trail`) and the names to go (`_todo`).

    A `..`, which can only come from a symlink, returns to the previous directory on the stack; it is never opened.
    """

    def __init__(self, sandbox: Sandbox, root: int, names: list[str], path: str, create: bool) -> None:
        self._sandbox = sandbox
        self._root = root
        self._todo = names[::-1]
        self._path = path
        self._create = create
        self._name = ""
        self._links = 0
        self._stack: list[int] = []
        self.trail: list[str] = []

    @property
    def folder(self) -> int:
        return self._stack[-1] if self._stack else self._root

    def close(self) -> None:
        self._back(len(self._stack))

    def to_directory(self) -> None:
        while self._todo:
            self._step(self._todo.pop())

    def to_entry(self) -> str:
        """Walk to the parent and return the last name; "." if the path itself means a directory, as `..` does."""
        while self._todo:
            name = self._todo.pop()
            if self._todo or name == "..":
                self._step(name)
                continue
            self._check(name)
            target = _link_target(self.folder, name)
            if target is None:
                return name
            self._follow(name, target)
        return "."

    def missing(self) -> list[str]:
        """Return the names that would have to be created, after a name on the way was not found."""
        if ".." in self._todo:
            raise ToolFailed("a link on the way leads nowhere", where=printable_path(self._path))
        return [self._name, *reversed(self._todo)]

    def _step(self, name: str) -> None:
        self._name = name
        if name == "..":
            if not self._stack:
                raise self._refused("a link on the way leads out of the project")
            self._back(1)
            return
        self._check(name)
        try:
            self._enter(name)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                raise
            target = _link_target(self.folder, name)
            if target is None:
                raise ToolFailed(
                    f"{printable_path(name)} is not a directory", where=printable_path(self._path)
                ) from None
            self._follow(name, target)

    def _enter(self, name: str) -> None:
        try:
            descriptor = os.open(name, _ENTER, dir_fd=self.folder)
        except FileNotFoundError:
            if not self._create:
                raise
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=self.folder)
            descriptor = os.open(name, _ENTER, dir_fd=self.folder)
        self._stack.append(descriptor)
        self.trail.append(name)
        status = os.fstat(descriptor)
        if (status.st_dev, status.st_ino) in self._sandbox.closed:
            raise self._refused(f"{printable_path(name)} is closed to tools")
        if len(self._stack) > MAX_DEPTH:
            raise self._refused(f"it leads deeper than {MAX_DEPTH} folders")

    def _follow(self, name: str, target: str) -> None:
        self._links += 1
        if self._links > _MAX_LINKS:
            raise self._refused("too many links: they lead in a circle")
        names: list[str] | None = target.split("/")
        if target.startswith("/"):
            names = self._sandbox.relative_names(target)
            self._back(len(self._stack))
        if names is None:
            raise self._refused(f"the link {printable_path(name)} leads out of the project")
        self._todo.extend(part for part in reversed(names) if part not in ("", "."))

    def _back(self, steps: int) -> None:
        for _ in range(steps):
            os.close(self._stack.pop())
            self.trail.pop()

    def _check(self, name: str) -> None:
        reason = self._sandbox.names.refusal(name)
        if reason:
            raise self._refused(reason)

    def _refused(self, reason: str) -> ToolRefused:
        return ToolRefused(reason, where=printable_path(self._path))


def _join_path(trail: list[str], name: str) -> str:
    return "/".join(trail if name == "." and trail else [*trail, name])


def _link_target(folder: int, name: str) -> str | None:
    """Return the target of a symlink, or None if the name is no symlink or does not exist."""
    try:
        return os.readlink(name, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
