"""What a path may be, judged by its text alone; the disk is not asked."""

from __future__ import annotations

import fnmatch
import functools
import re
from collections.abc import Sequence

from dragoman.tools.errors import ToolRefused

MAX_PATH_BYTES = 4095  # Linux: PATH_MAX without the final NUL
MAX_NAME_BYTES = 255
MAX_DEPTH = 128  # every level holds a descriptor while we walk

#: Names whose content would go to the model's provider, at any depth, as file or folder; () turns it off.
SECRETS = tuple(
    (
        ".env .env.* .netrc .npmrc .pypirc .ssh .aws .gnupg .kube "
        "id_rsa id_dsa id_ecdsa id_ed25519 *.pem *.key credentials.json"
    ).split()
)
_EXAMPLES = re.compile(r"\.env\.(example|sample|template|dist)")

_INTERNALS = {".git": "git's own folder: what is in it runs at the next commit"}
# Code points that some file systems ignore in names: `.g\u200cit` is `.git` there.
_IGNORABLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


class Names:
    """Which paths and names are refused, and why."""

    def __init__(self, secrets: Sequence[str] = SECRETS) -> None:
        patterns = "|".join(fnmatch.translate(pattern.casefold()) for pattern in secrets)
        self._secret = re.compile(patterns) if patterns else None
        self.refusal = functools.lru_cache(maxsize=4096)(self._refusal)

    def split(self, path: str) -> list[str]:
        """The names along a relative path; anything that could lead elsewhere is refused."""
        reason = _bad_text(path)
        if reason:
            raise ToolRefused(reason, where=shown(path))
        names = [name for name in path.split("/") if name not in ("", ".")]
        reason = _bad_names(names) or next(filter(None, map(self.refusal, names)), "")
        if reason:
            raise ToolRefused(reason, where=shown(path))
        return names

    def _refusal(self, name: str) -> str:
        """Why nobody may go to this name, wherever it is; empty when they may."""
        folded = _IGNORABLE.sub("", name).casefold().rstrip(" .")
        if folded in _INTERNALS:
            return _INTERNALS[folded]
        if self._secret and self._secret.match(folded) and not _EXAMPLES.fullmatch(folded):
            return f"{shown(name)} is the name of a file with secrets"
        return ""


def is_internal(name: str) -> bool:
    """Whether a listing leaves it out altogether."""
    return name.casefold() in _INTERNALS


def shown(path: str) -> str:
    """A path as one harmless line: no control characters, no broken Unicode, not endless."""
    text = path if path.isprintable() else ascii(path)
    return text if len(text) <= 200 else f"{text[:197]}…"


def _bad_text(path: str) -> str:
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


def _bad_names(names: list[str]) -> str:
    if ".." in names:
        return "paths with '..' are refused: give it relative to the project root"
    if names and names[0].startswith("~") and (len(names) > 1 or names[0] == "~"):
        return "'~' is not expanded: give the path relative to the project root"
    if any(len(name.encode()) > MAX_NAME_BYTES for name in names):
        return f"a name in the path is longer than {MAX_NAME_BYTES} bytes"
    if len(names) > MAX_DEPTH:
        return f"the path is deeper than {MAX_DEPTH} folders"
    return ""
