"""Patterns mean what people expect, and none of them can be slow."""

from __future__ import annotations

import pytest

from dragoman.tools.errors import ToolFailed
from dragoman.tools.fs.glob import Glob, expand_braces

PATHS = "a.rs src/b.rs src/x/c.rs src/x/y/d.py doc/e.md src/x/.hidden lib/src/f.rs".split()


def matching(pattern: str) -> list[str]:
    glob = Glob(pattern)
    found = []
    for path in PATHS:
        folder, slash, name = path.rpartition("/")
        parents = ["/".join(folder.split("/")[: depth + 1]) for depth in range(len(folder.split("/")))]
        if glob.filter_names(folder + slash, [name]):
            assert not folder or all(map(glob.may_enter, parents)), "a listing would not get there"
            found.append(path)
    return found


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.rs", "a.rs src/b.rs src/x/c.rs lib/src/f.rs"),
        ("**/*.rs", "a.rs src/b.rs src/x/c.rs lib/src/f.rs"),
        ("./*.rs", "a.rs src/b.rs src/x/c.rs lib/src/f.rs"),
        ("/*.rs", "a.rs"),
        ("src/*.rs", "src/b.rs"),
        ("src/**", "src/b.rs src/x/c.rs src/x/y/d.py src/x/.hidden"),
        ("src/**/*.rs", "src/b.rs src/x/c.rs"),
        ("**/src/*.rs", "src/b.rs lib/src/f.rs"),
        ("**/x/**/*.py", "src/x/y/d.py"),
        ("src/*/c.rs", "src/x/c.rs"),
        ("s?c/[bz].rs", "src/b.rs"),
        ("*.{rs,md}", "a.rs src/b.rs src/x/c.rs doc/e.md lib/src/f.rs"),
        ("{src,doc}/*.{rs,md}", "src/b.rs doc/e.md"),
        ("**", " ".join(PATHS)),
        ("**/*", " ".join(PATHS)),
        ("*/**/**/*.py", "src/x/y/d.py"),
        ("[!s]*/*", "doc/e.md"),
        ("src/x/[.]hidden", "src/x/.hidden"),
        ("src/", "src/b.rs src/x/c.rs src/x/y/d.py src/x/.hidden"),
        ("src//*.rs", "src/b.rs"),
        (r"\a.rs", "a.rs"),
        ("nothing", ""),
        ("[", ""),
        ("src/[/b.rs", ""),
    ],
)
def test_pattern(pattern: str, expected: str) -> None:
    assert matching(pattern) == expected.split()


def test_folders_that_cannot_match_are_not_entered() -> None:
    glob = Glob("src/*/c.rs")
    assert [glob.may_enter(folder) for folder in ("src", "src/x", "doc", "src/x/y")] == [
        True,
        True,
        False,
        False,
    ]
    assert Glob("src/**/c.rs").may_enter("src/x/y/z")
    assert not Glob("src/**/c.rs").may_enter("lib")


def test_braces_are_bounded() -> None:
    assert sorted(expand_braces("{a,b}{c,d}")) == ["ac", "ad", "bc", "bd"]
    assert expand_braces("{a}") == ["{a}"]
    with pytest.raises(ToolFailed, match="alternatives"):
        Glob("{a,b}" * 20)


@pytest.mark.parametrize(
    "pattern", ["*a" * 30 + "b", "**/a/" * 30 + "b", "*a*/" * 20 + "b", "[a]*" * 30 + "b"]
)
def test_a_pattern_cannot_be_catastrophic(pattern: str) -> None:
    """Without atomic groups this does not end within a lifetime; with them it is done at once."""
    glob = Glob(pattern)
    assert glob.filter_names("a/" * 120, ["a" * 250]) == []
