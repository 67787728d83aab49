"""Reading: exact, bounded, in the encoding the file has."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.fs import read
from dragoman.tools.fs.read import Encoding, LineRange, detect_encoding, read_text
from dragoman.tools.fs.sandbox import Sandbox

LIMIT = 1000
WHOLE = LineRange()


def reading(
    sandbox: Sandbox, wanted: LineRange = WHOLE, *, max_bytes: int = LIMIT, numbered: bool = False
) -> tuple[str, str]:
    excerpt = read_text(sandbox, "f", wanted, max_bytes=max_bytes, numbered=numbered)
    return excerpt.text, excerpt.note


@pytest.mark.parametrize("text", ["", "a", "a\n", "a\r\nb\rc\n\n", "é\u2028x\x0cy\n", "x" * LIMIT])
def test_a_file_comes_back_exactly(sandbox: Sandbox, root: Path, text: str) -> None:
    (root / "f").write_bytes(text.encode())
    assert reading(sandbox) == (text, "")


def test_a_file_above_the_limit_is_refused_and_a_range_of_it_is_not(sandbox: Sandbox, root: Path) -> None:
    (root / "f").write_text("line\n" * 1000)
    with pytest.raises(ToolRefused, match="5,000 bytes is above the limit of 1,000: read a range"):
        reading(sandbox)
    assert reading(sandbox, LineRange(offset=900, limit=2)) == ("line\nline\n", "lines 900 to 901")
    text, note = reading(sandbox, LineRange(offset=2))
    assert len(text) == LIMIT
    assert note == "lines 2 to 201, and there is more: it would be too long at once"


def test_there_is_an_end_to_how_far_a_range_makes_us_look(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read, "_MAX_SCAN_BYTES", 4000)
    (root / "f").write_text("line\n" * 1000)
    with pytest.raises(ToolRefused, match="above the limit"):
        reading(sandbox, LineRange(offset=1, limit=1))


def test_one_endless_line_is_not_loaded_whole(sandbox: Sandbox, root: Path) -> None:
    (root / "f").write_text("x" * 5000 + "\nsecond\n")
    with pytest.raises(ToolRefused, match="line 1 alone"):
        reading(sandbox, LineRange(limit=1))
    assert reading(sandbox, LineRange(offset=2, limit=1)) == ("second\n", "lines 2 to 2")


@pytest.mark.parametrize(("text", "lines"), [("a\nb\n", 2), ("a\nb", 2), ("", 0)])
def test_a_line_behind_the_end_is_said(sandbox: Sandbox, root: Path, text: str, lines: int) -> None:
    (root / "f").write_text(text)
    with pytest.raises(ToolFailed, match=f"line 3 was asked for, and the file has {lines}"):
        reading(sandbox, LineRange(offset=3))


def test_lines_are_numbered_when_asked(sandbox: Sandbox, root: Path) -> None:
    (root / "f").write_text("a\nb\nc")
    assert reading(sandbox, LineRange(offset=2), numbered=True)[0] == "     2\tb\n     3\tc"
    assert reading(sandbox, LineRange(offset=0, limit=1), numbered=True) == ("     1\ta\n", "lines 1 to 1")


@pytest.mark.parametrize(
    ("data", "text", "note"),
    [
        ("\ufeffé\n".encode(), "é\n", "encoding: utf-8 with byte order mark"),
        (b"\xff\xfe" + "é\nx\n".encode("utf-16-le"), "é\nx\n", "encoding: utf-16-le with byte order mark"),
        (b"\xfe\xff" + "é\n".encode("utf-16-be"), "é\n", "encoding: utf-16-be with byte order mark"),
        (b"caf\xe9\n", "café\n", "encoding: latin-1"),
        (b"a" * 70000 + b"\xe9", "a" * 70000 + "é", "encoding: latin-1"),
    ],
)
def test_encodings_are_recognised(sandbox: Sandbox, root: Path, data: bytes, text: str, note: str) -> None:
    (root / "f").write_bytes(data)
    assert reading(sandbox, max_bytes=100_000) == (text, note)


@pytest.mark.parametrize(
    ("data", "kind"), [(b"\x89PNG\r\n", "PNG image"), (b"\x7fELF\0", "program"), (b"a\0b", "binary file,")]
)
def test_binary_files_are_named_and_not_shown(sandbox: Sandbox, root: Path, data: bytes, kind: str) -> None:
    (root / "f").write_bytes(data)
    with pytest.raises(ToolFailed, match=kind):
        reading(sandbox)


def test_a_character_cut_at_the_end_of_a_beginning_is_no_other_encoding() -> None:
    assert detect_encoding("aé".encode()[:2], cut=True) == Encoding()
    assert detect_encoding(b"\xe9a", cut=True) == Encoding("latin-1")
    assert detect_encoding("aé".encode()[:2]) == Encoding("latin-1")


def test_text_that_an_encoding_does_not_have_is_said() -> None:
    with pytest.raises(ToolFailed, match=r"latin-1, which has no character '\\u20ac'"):
        Encoding("latin-1").encode("5 €")
