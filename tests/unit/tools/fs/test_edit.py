"""Editing: exactly what was meant, or a reason that helps."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.tools.errors import ToolFailed
from dragoman.tools.fs import FileTools
from dragoman.tools.fs.write import edit_bytes, edit_text
from tests.unit.tools.fs.conftest import ANYONE

TEXT = "def a():\n    return 1\n\ndef b():\n    return 1\n"


def refused(text: str, old: str, new: str = "new") -> str:
    with pytest.raises(ToolFailed) as caught:
        edit_text(text, old, new)
    return caught.value.message


def test_one_exact_match_is_replaced() -> None:
    assert edit_text(TEXT, "def b", "def c") == TEXT.replace("def b", "def c")
    assert edit_text("a.b", "a.b", r"\1\n") == r"\1\n"


def test_several_matches_are_named_by_line() -> None:
    assert refused(TEXT, "return 1").startswith("old was found 2 times (lines 2, 5): give more")
    assert "lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …" in refused("x\n" * 20, "x")
    assert edit_text(TEXT, "return 1", "pass", replace_all=True).count("pass") == 2


@pytest.mark.parametrize(
    ("old", "hint"),
    [
        ("def  a():", "line 1 is 'def a():' (only the spaces differ)"),
        ("def a():\n  return 2", "line 1 is 'def a():' (the line is there, what follows differs)"),
        ("def aa():", "line 1 is similar: 'def a():'"),
        ("def a():\\n    return 1", "without its backslash escapes it is at line 1"),
        ("something else entirely", "not found in the file"),
        ("\n\n\n\n", "not found in the file"),
    ],
)
def test_what_was_not_found_is_looked_for(old: str, hint: str) -> None:
    """known problem P2: escapes are pointed out, never repaired"""
    assert hint in refused(TEXT, old)


def test_nothing_to_do_is_said() -> None:
    assert "old is empty" in refused("x", "")
    assert "the same" in refused("x", "x", "x")


def test_line_endings_of_the_file_stay() -> None:
    assert edit_text("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz") == "x\r\ny\r\nz\r\nc\r\n"
    assert "not found" in refused("a\r\nb\r\n", "q\nr")


def test_encoding_of_the_file_stays() -> None:
    wide = b"\xff\xfe" + "né\n".encode("utf-16-le")
    assert edit_bytes(wide, "é", "o", replace_all=False) == b"\xff\xfe" + "no\n".encode("utf-16-le")
    assert edit_bytes(b"caf\xe9", "caf", "gar", replace_all=False) == b"gar\xe9"
    with pytest.raises(ToolFailed, match="would damage"):
        edit_bytes(wide + b"x", "é", "o", replace_all=False)
    with pytest.raises(ToolFailed, match="PNG"):
        edit_bytes(b"\x89PNG", "P", "Q", replace_all=False)


def test_a_file_that_is_not_there_cannot_be_edited(files: FileTools, root: Path) -> None:
    with pytest.raises(ToolFailed, match="no such file"):
        files.edit_file({"path": "f", "old": "a", "new": "b"}, ANYONE)
    assert list(root.iterdir()) == []
