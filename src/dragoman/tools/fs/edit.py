"""Replace an exact piece of text, or explain to the model why that is not possible."""

from __future__ import annotations

import difflib
import re

from dragoman.tools.errors import ToolFailed
from dragoman.tools.fs.text import describe_binary, detect_encoding

_MAX_PLACES = 10
_MAX_COMPARED_LINES = 5000
_ESCAPES = {r"\n": "\n", r"\t": "\t", r"\"": '"', r"\'": "'", r"\\": "\\"}


def edit_bytes(data: bytes, old: str, new: str, *, replace_all: bool) -> bytes:
    """Return the file with `old` replaced, in its own encoding and with its own line endings.

    Raises `ToolFailed` for binary data, for bytes that do not survive decoding, and as `edit_text` does.
    """
    encoding = detect_encoding(data)
    if encoding is None:
        raise ToolFailed(f"it {describe_binary(data)} and cannot be edited as text")
    text = encoding.decode(data)
    if encoding.encode(text) != data:
        raise ToolFailed(f"it is no sound {encoding.name}: an edit would damage the rest of it")
    return encoding.encode(edit_text(text, old, new, replace_all=replace_all))


def edit_text(text: str, old: str, new: str, *, replace_all: bool = False) -> str:
    """Return the text with `old` replaced; raise `ToolFailed` unless it occurs once, or `replace_all` is set."""
    if not old:
        raise ToolFailed("old is empty: give the text to replace, or use write_file for a new file")
    if old == new:
        raise ToolFailed("old and new are the same: nothing would change")
    if old not in text and "\r\n" in text and "\r" not in old:
        # Models write \n; in a file with \r\n line ends the edit is made with \r\n.
        crlf_old, crlf_new = (part.replace("\n", "\r\n") for part in (old, new))
        if crlf_old in text:
            old, new = crlf_old, crlf_new
    places = text.count(old)
    if places == 0:
        raise ToolFailed(f"old was not found in the file{_explain_missing_text(text, old)}")
    if places > 1 and not replace_all:
        lines = _lines_of(text, old)
        raise ToolFailed(
            f"old was found {places} times (lines {', '.join(map(str, lines))}"
            f"{', …' if places > len(lines) else ''}): give more of the text around it, or set replace_all"
        )
    return text.replace(old, new)


def _lines_of(text: str, old: str) -> list[int]:
    found: list[int] = []
    at = text.find(old)
    while at >= 0 and len(found) < _MAX_PLACES:
        found.append(text.count("\n", 0, at) + 1)
        at = text.find(old, at + len(old))
    return found


def _explain_missing_text(text: str, old: str) -> str:
    """Return a hint where the intended text probably is, or ""."""
    plain = re.sub(r"\\[nt\"'\\]", lambda found: _ESCAPES[found[0]], old)
    if plain != old and text.count(plain) == 1:  # pain P2: only reported, never repaired silently
        return f": without its backslash escapes it is at line {_lines_of(text, plain)[0]}"
    lines = text.splitlines()[:_MAX_COMPARED_LINES]
    wanted = [line for line in old.splitlines() if line.strip()]
    if not wanted:
        return ""
    loose = [" ".join(line.split()) for line in lines]
    first = " ".join(wanted[0].split())
    if first in loose:
        number = loose.index(first)
        why = "the line is there, what follows differs" if wanted[0] in lines else "only the spaces differ"
        return f": line {number + 1} is {lines[number]!r} ({why})"
    near = difflib.get_close_matches(wanted[0], lines, n=1, cutoff=0.6)
    return f": line {lines.index(near[0]) + 1} is similar: {near[0]!r}" if near else ""
