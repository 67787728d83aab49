"""The file sandbox: all access to a project's files is by descriptor, below one root, with no symlink leading out.

`PathRules` refuses paths by their text alone. `Sandbox` walks from the root to an entry one name at a time, so that
the kernel never follows a symlink for us. `SandboxEntry` is an entry of an open directory, which is read, replaced
or removed relative to that directory's descriptor (openat(2)).
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import functools
import os
import re
import secrets
import stat
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from dragoman.tools.errors import ToolFailed, ToolRefused

MAX_PATH_BYTES = 4095  # PATH_MAX on Linux, without the final NUL
MAX_NAME_BYTES = 255
MAX_DEPTH = 128  # every level holds an open descriptor during a walk

#: Names of files and folders, at any depth, that usually hold secrets. They are never opened, because their content
#: would be sent to the model's provider. An empty tuple disables the check.
SECRET_NAMES = tuple(
    (
        ".env .env.* .netrc .npmrc .pypirc .ssh .aws .gnupg .kube "
        "id_rsa id_dsa id_ecdsa id_ed25519 *.pem *.key credentials.json"
    ).split()
)
_EXAMPLES = re.compile(r"\.env\.(example|sample|template|dist)")

_INTERNALS = {".git": "git's own folder: what is in it runs at the next commit"}
# Code points that some file systems ignore in names: there `.g\u200cit` opens `.git`.
_IGNORABLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


class PathRules:
    """Decides which paths and names are refused; `refusal(name)` returns the reason, or ""."""

    def __init__(self, secrets: Sequence[str] = SECRET_NAMES) -> None:
        patterns = "|".join(fnmatch.translate(pattern.casefold()) for pattern in secrets)
        self._secret = re.compile(patterns) if patterns else None
        self.refusal = functools.lru_cache(maxsize=4096)(self._refusal)

    def split(self, path: str) -> list[str]:
        """Split a relative path into names. Raise `ToolRefused` if it is absolute, has `..` or a refused name."""
        reason = _text_refusal(path)
        if reason:
            raise ToolRefused(reason, where=printable_path(path))
        names = [name for name in path.split("/") if name not in ("", ".")]
        reason = _names_refusal(names) or next(filter(None, map(self.refusal, names)), "")
        if reason:
            raise ToolRefused(reason, where=printable_path(path))
        return names

    def _refusal(self, name: str) -> str:
        """Return why this name is refused, wherever it occurs, or ""."""
        folded = _IGNORABLE.sub("", name).casefold().rstrip(" .")
        if folded in _INTERNALS:
            return _INTERNALS[folded]
        if self._secret and self._secret.match(folded) and not _EXAMPLES.fullmatch(folded):
            return f"{printable_path(name)} is the name of a file with secrets"
        return ""


def is_internal(name: str) -> bool:
    """Return whether listings leave this name out."""
    return name.casefold() in _INTERNALS


def printable_path(path: str) -> str:
    """Return a path for messages: one line, without control characters or invalid Unicode, shortened."""
    text = path if path.isprintable() else ascii(path)
    return text if len(text) <= 200 else f"{text[:197]}…"


def _text_refusal(path: str) -> str:
    if not path:
        return "the path is empty"
    if "\0" in path:
        return "the path contains a NUL character"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "the path is not valid Unicode"
    if size > MAX_PATH_BYTES:
        return f"the path is longer than {MAX_PATH_BYTES} bytes"
    if path.startswith("/"):
        return "absolute paths are refused: give it relative to the project root"
    return ""


def _names_refusal(names: list[str]) -> str:
    if ".." in names:
        return "paths with '..' are refused: give it relative to the project root"
    if names and names[0].startswith("~") and (len(names) > 1 or names[0] == "~"):
        return "'~' is not expanded: give the path relative to the project root"
    if any(len(name.encode()) > MAX_NAME_BYTES for name in names):
        return f"a name in the path is longer than {MAX_NAME_BYTES} bytes"
    if len(names) > MAX_DEPTH:
        return f"the path is deeper than {MAX_DEPTH} folders"
    return ""


DRAFT_PREFIX = ".dragoman-draft-"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY_MODE = 0o666
_PERMISSIONS = 0o777  # a replaced file loses set-user-id, set-group-id and the sticky bit

_NOT_A_FILE: dict[int, type[ToolFailed | ToolRefused]] = {stat.S_IFDIR: ToolFailed}
_KINDS = {
    stat.S_IFDIR: "is a directory",
    stat.S_IFLNK: "became a link while it was being opened",
    stat.S_IFIFO: "is a FIFO: only regular files are opened",
    stat.S_IFSOCK: "is a socket: only regular files are opened",
    stat.S_IFCHR: "is a device: only regular files are opened",
    stat.S_IFBLK: "is a device: only regular files are opened",
}


class SandboxEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The entry `name` in the open directory `folder`; `path` is its path below the root, with links resolved.

    The name "." means the directory itself. The descriptor is valid inside the `with` block that returned this.
    """

    folder: int
    name: str
    path: str

    def status(self) -> os.stat_result | None:
        """Return the status of the entry itself (not of a link's target), or None if it does not exist."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self) -> tuple[int, os.stat_result]:
        """Open a regular file for reading; return its descriptor, which the caller must close, and its status.

        The file type is checked before opening, because opening a device or FIFO can have side effects, and again
        on the descriptor, because the entry may have been replaced in between. Raises `ToolFailed` for a directory
        and `ToolRefused` for any other special file.
        """
        _require_regular_file(os.stat(self.name, dir_fd=self.folder, follow_symlinks=False), self.path)
        descriptor = os.open(self.name, _READ, dir_fd=self.folder)
        try:
            status = os.fstat(descriptor)
            _require_regular_file(status, self.path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, status

    def read(self, max_bytes: int) -> tuple[bytes, os.stat_result]:
        """Return the whole content and the status; raise `ToolRefused` if it is longer than `max_bytes`."""
        descriptor, status = self.open()
        with open(descriptor, "rb") as file:
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            why = f"{max(status.st_size, len(data)):,} bytes is above the limit of {max_bytes:,}"
            raise ToolRefused(why, where=printable_path(self.path))
        return data, status

    def remove(self) -> None:
        os.unlink(self.name, dir_fd=self.folder)
        _sync_folder(self.folder)


def replace_file(
    entry: SandboxEntry, data: bytes, *, like: os.stat_result | None = None, mode: int | None = None
) -> None:
    """Replace the content of a file atomically and durably: write a draft, fsync it, rename it.

    Other hard links keep the old content. `like` is the status of the replaced file: its permission bits and, if
    the process may change it, its owner are kept. `mode` sets the permissions regardless of the umask.
    """
    draft = f"{DRAFT_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    mode = like.st_mode & _PERMISSIONS if like else mode
    descriptor = os.open(draft, _CREATE, _ANY_MODE if mode is None else mode, dir_fd=entry.folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                _copy_attributes(descriptor, like, mode)
            os.fsync(descriptor)
        os.rename(draft, entry.name, src_dir_fd=entry.folder, dst_dir_fd=entry.folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=entry.folder)
        raise
    _sync_folder(entry.folder)


def remove_stale_drafts(folder: int) -> None:
    """Remove the drafts of processes that died while they were writing to this directory."""
    try:
        names = _list_names(folder)
    except OSError:  # the directory may be entered but not listed
        return
    for name in names:
        if name.startswith(DRAFT_PREFIX) and not _is_running(name[len(DRAFT_PREFIX) :].partition("-")[0]):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)


@contextlib.contextmanager
def translate_os_errors(path: str) -> Iterator[None]:
    """Convert `OSError`s to `ToolRefused` or `ToolFailed`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise ToolRefused(f"{error.strerror}", where=printable_path(path)) from None
        raise ToolFailed(
            _MESSAGES.get(error.errno or 0) or f"{error.strerror}", where=printable_path(path)
        ) from None


_MESSAGES = {
    errno.ENOENT: "no such file or directory",
    errno.EACCES: "the system does not permit it",
    errno.EISDIR: "is a directory",
}


def _require_regular_file(status: os.stat_result, path: str) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise _NOT_A_FILE.get(kind, ToolRefused)(
            _KINDS.get(kind, "is no regular file"), where=printable_path(path)
        )


def _copy_attributes(descriptor: int, like: os.stat_result | None, mode: int) -> None:
    now = os.fstat(descriptor)
    if like and (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, mode)


def _sync_folder(folder: int) -> None:
    """Sync a directory, which makes a rename durable; file systems that do not support it are ignored."""
    with contextlib.suppress(OSError):
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)


def _list_names(folder: int) -> list[str]:
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(readable)
    finally:
        os.close(readable)


def _is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True


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
            entry = SandboxEntry(folder=walk.folder, name=name, path=_join_path(walk.trail, name))
            with translate_os_errors(path):
                yield entry

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


__all__ = ["SECRET_NAMES", "PathRules", "Sandbox", "SandboxEntry", "remove_stale_drafts", "replace_file"]
