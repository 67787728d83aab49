"""Unified diffs of file changes."""

from __future__ import annotations

import difflib
import re

_DIFF_CONTEXT_LINES = 3
_MAX_DIFF_LINES = 4000  # of the changed part: difflib takes quadratic time, and longer diffs are not readable
_HUNK = re.compile(r"@@ -(\d+)((?:,\d+)?) \+(\d+)((?:,\d+)?) @@")


def unified_diff(path: str, old: str | None, new: str) -> str:
    """Return the diff, or "" if nothing changes; `old` is None for a file that does not exist.

    The equal beginning and end are cut off before difflib compares the rest.
    """
    before, after = (old or "").splitlines(keepends=True), new.splitlines(keepends=True)
    if old is not None and before == after:
        return ""
    source = f"a/{path}" if old is not None else "/dev/null"
    head = _count_equal_lines(before, after)
    tail = _count_equal_lines(before[head:][::-1], after[head:][::-1])
    start = max(0, head - _DIFF_CONTEXT_LINES)
    before = before[start : len(before) - max(0, tail - _DIFF_CONTEXT_LINES)]
    after = after[start : len(after) - max(0, tail - _DIFF_CONTEXT_LINES)]
    if len(before) + len(after) > _MAX_DIFF_LINES:
        return f"--- {source}\n+++ b/{path}\n{len(before)} lines become {len(after)}: too many to show\n"
    lines = difflib.unified_diff(before, after, source, f"b/{path}", n=_DIFF_CONTEXT_LINES)
    return (
        "".join(_with_newline(_shift_hunk(line, start)) for line in lines) or f"--- {source}\n+++ b/{path}\n"
    )


def _count_equal_lines(one: list[str], other: list[str]) -> int:
    """Return how many lines at the beginning are equal."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _shift_hunk(line: str, by: int) -> str:
    found = _HUNK.match(line)
    if not found:
        return line
    return f"@@ -{int(found[1]) + by}{found[2]} +{int(found[3]) + by}{found[4]} @@{line[found.end() :]}"


def _with_newline(line: str) -> str:
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
