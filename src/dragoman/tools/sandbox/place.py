"""`Place`: an entry of an open directory, which is read, replaced or removed without following symlinks."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator

import msgspec

from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.sandbox.names import printable_path

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
    place: SandboxEntry, data: bytes, *, like: os.stat_result | None = None, mode: int | None = None
) -> None:
    """Replace the content of a file atomically and durably: write a draft, fsync it, rename it.

    Other hard links keep the old content. `like` is the status of the replaced file: its permission bits and, if
    the process may change it, its owner are kept. `mode` sets the permissions regardless of the umask.
    """
    draft = f"{DRAFT_PREFIX}{os.getpid()}-{secrets.token_hex(8)}"
    mode = like.st_mode & _PERMISSIONS if like else mode
    descriptor = os.open(draft, _CREATE, _ANY_MODE if mode is None else mode, dir_fd=place.folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            if mode is not None:
                _copy_attributes(descriptor, like, mode)
            os.fsync(descriptor)
        os.rename(draft, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(draft, dir_fd=place.folder)
        raise
    _sync_folder(place.folder)


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
