"""Checks of paths and names by their text alone, without access to the disk."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Sequence

from dragoman.tools.errors import ToolRefused

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
