"""One entry of one open directory: read it, replace it, remove it, never through a link."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator

import msgspec

from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.sandbox.names import shown

DRAFT_PREFIX = ".dragoman-draft-"
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ANY_MODE = 0o666
_PERMISSIONS = 0o777  # a copy never inherits set-user-id and its kin

_NOT_A_FILE: dict[int, type[ToolFailed | ToolRefused]] = {stat.S_IFDIR: ToolFailed}
_KINDS = {
    stat.S_IFDIR: "is a directory",
    stat.S_IFLNK: "became a link while it was being opened",
    stat.S_IFIFO: "is a FIFO: only regular files are opened",
    stat.S_IFSOCK: "is a socket: only regular files are opened",
    stat.S_IFCHR: "is a device: only regular files are opened",
    stat.S_IFBLK: "is a device: only regular files are opened",
}


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """`name` in the open directory `folder`; `path` is where that is below the root, all links resolved.

    The name "." is the directory itself. The descriptor lives as long as the `with` that gave this.
    """

    folder: int
    name: str
    path: str

    def status(self) -> os.stat_result | None:
        """Of the entry itself; None when there is none."""
        try:
            return os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self) -> tuple[int, os.stat_result]:
        """A descriptor to read a regular file; the kind is checked before, for no side effect, and after."""
        _must_be_file(os.stat(self.name, dir_fd=self.folder, follow_symlinks=False), self.path)
        descriptor = os.open(self.name, _READ, dir_fd=self.folder)
        try:
            status = os.fstat(descriptor)
            _must_be_file(status, self.path)
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, status

    def read(self, max_bytes: int) -> tuple[bytes, os.stat_result]:
        """The whole content, refused when it is longer."""
        descriptor, status = self.open()
        with open(descriptor, "rb") as file:
            data = file.read(max_bytes + 1)
        if len(data) > max_bytes:
            why = f"{max(status.st_size, len(data)):,} bytes is above the limit of {max_bytes:,}"
            raise ToolRefused(why, where=shown(self.path))
        return data, status

    def remove(self) -> None:
        os.unlink(self.name, dir_fd=self.folder)
        _sync_folder(self.folder)


def replace(
    place: Place, data: bytes, *, like: os.stat_result | None = None, mode: int | None = None
) -> None:
    """All of the new content or none of it, also when the machine dies; other hard links keep the old one.

    `like` is the file that is replaced: its permission bits and, where we may, its owner stay. A `mode` that is given
    is the file's, whatever the process leaves out of new ones.
    """
    draft = f"{DRAFT_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    mode = like.st_mode & _PERMISSIONS if like else mode
    descriptor = os.open(draft, _CREATE, _ANY_MODE if mode is None else mode, dir_fd=place.folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                _keep(descriptor, like, mode)
            os.fsync(descriptor)
        os.rename(draft, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=place.folder)
        raise
    _sync_folder(place.folder)


def sweep(folder: int) -> None:
    """Remove the drafts of processes that died while they wrote here."""
    try:
        names = _names(folder)
    except OSError:  # a directory that may be entered and not read
        return
    for name in names:
        if name.startswith(DRAFT_PREFIX) and not _alive(name[len(DRAFT_PREFIX) :].partition("-")[0]):
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)


@contextlib.contextmanager
def explained(path: str) -> Iterator[None]:
    """The system's errors in a tool's words."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise ToolRefused(f"{error.strerror}", where=shown(path)) from None
        raise ToolFailed(_WORDS.get(error.errno or 0) or f"{error.strerror}", where=shown(path)) from None


_WORDS = {
    errno.ENOENT: "no such file or directory",
    errno.EACCES: "the system does not permit it",
    errno.EISDIR: "is a directory",
}


def _must_be_file(status: os.stat_result, path: str) -> None:
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise _NOT_A_FILE.get(kind, ToolRefused)(_KINDS.get(kind, "is no regular file"), where=shown(path))


def _keep(descriptor: int, like: os.stat_result | None, mode: int) -> None:
    now = os.fstat(descriptor)
    if like and (now.st_uid, now.st_gid) != (like.st_uid, like.st_gid):
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, like.st_uid, like.st_gid)
    os.fchmod(descriptor, mode)


def _sync_folder(folder: int) -> None:
    """A rename is on the disk when its directory is; not every file system can be asked."""
    with contextlib.suppress(OSError):
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)


def _names(folder: int) -> list[str]:
    readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.listdir(readable)
    finally:
        os.close(readable)


def _alive(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (ValueError, OverflowError, PermissionError):
        return True
    return True
