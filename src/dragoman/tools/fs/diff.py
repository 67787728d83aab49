"""Unified diffs of file changes."""

from __future__ import annotations

import difflib
import re

_CONTEXT = 3
_MAX_LINES = 4000  # of the changed part: difflib takes quadratic time, and longer diffs are not readable
_HUNK = re.compile(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def unified(path: str, old: str | None, new: str) -> str:
    """Return the diff, or "" if nothing changes; `old` is None for a file that does not exist.

    The equal beginning and end are cut off before difflib compares the rest.
    """
    before, after = (old or "").splitlines(keepends=True), new.splitlines(keepends=True)
    if old is not None and before == after:
        return ""
    source = f"a/{path}" if old is not None else "/dev/null"
    head = _same(before, after)
    tail = _same(before[head:][::-1], after[head:][::-1])
    start = max(0, head - _CONTEXT)
    before = before[start : len(before) - max(0, tail - _CONTEXT)]
    after = after[start : len(after) - max(0, tail - _CONTEXT)]
    if len(before) + len(after) > _MAX_LINES:
        return f"--- {source}\n+++ b/{path}\n{len(before)} lines become {len(after)}: too many to show\n"
    lines = difflib.unified_diff(before, after, source, f"b/{path}", n=_CONTEXT)
    return "".join(_whole(_moved(line, start)) for line in lines) or f"--- {source}\n+++ b/{path}\n"


def _same(one: list[str], other: list[str]) -> int:
    """Return how many lines at the beginning are equal."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _moved(line: str, by: int) -> str:
    found = _HUNK.match(line)
    if not found:
        return line
    return f"@@ -{int(found[1]) + by}{found[2]} +{int(found[3]) + by}{found[4]} @@{line[found.end() :]}"


def _whole(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
