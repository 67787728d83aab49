"""Listing: stable, bounded, blind to what is not a project's file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.tools.errors import ToolFailed
from dragoman.tools.fs.glob import Glob
from dragoman.tools.fs.sandbox import DRAFT_PREFIX, MAX_DEPTH, Sandbox
from dragoman.tools.fs.tree import ListingFilter, list_tree


def listed(sandbox: Sandbox, path: str = ".", pattern: str = "**/*", **more: Any) -> list[str]:
    return list_tree(sandbox, path, ListingFilter(glob=Glob(pattern), **more))


def test_a_folders_files_come_before_its_folders(sandbox: Sandbox, root: Path) -> None:
    for path in ("z", "b/y", "b/c/x", "a/w", "a.txt"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("")
    assert listed(sandbox) == ["a.txt", "z", "a/w", "b/y", "b/c/x"]
    assert listed(sandbox, limit=3) == ["a.txt", "z", "a/w"]
    assert listed(sandbox, "b") == ["b/y", "b/c/x"]
    assert listed(sandbox, "b", "/*") == ["b/y"]


def test_links_are_listed_and_not_followed(sandbox: Sandbox, root: Path, outside: Path) -> None:
    (root / "l").symlink_to(outside)
    (root / "f").symlink_to(outside / "canary.txt")
    assert listed(sandbox) == ["f", "l"]


def test_neither_git_nor_drafts_nor_fifos_are_files_of_the_project(sandbox: Sandbox, root: Path) -> None:
    (root / ".git").mkdir()
    (root / ".git/config").write_text("")
    (root / "sub").mkdir()
    (root / "sub/.git").write_text("gitdir: elsewhere")
    (root / f"{DRAFT_PREFIX}1-x").write_text("")
    os.mkfifo(root / "fifo")
    (root / ".env").write_text("")
    assert listed(sandbox) == [".env"]
    assert listed(sandbox, include_ignored=True) == [".env"]


def test_closed_folders_are_not_entered(root: Path) -> None:
    (root / "state/x").mkdir(parents=True)
    (root / "state/key").write_text("")
    assert listed(Sandbox(root, closed=(root / "state",))) == []


def test_a_folder_that_is_ignored_lists_nothing_unless_asked(sandbox: Sandbox, root: Path) -> None:
    (root / "out/in").mkdir(parents=True)
    (root / "out/in/f").write_text("")
    (root / ".gitignore").write_text("out/\n")
    assert listed(sandbox, "out/in") == []
    assert listed(sandbox, "out/in", include_ignored=True) == ["out/in/f"]


def test_a_gitignore_that_is_no_file_or_too_long_is_no_rule(
    sandbox: Sandbox, root: Path, outside: Path
) -> None:
    (root / "f").write_text("")
    (outside / "rules").write_text("*\n")
    (root / ".gitignore").symlink_to(outside / "rules")
    assert listed(sandbox) == [".gitignore", "f"]
    (root / ".gitignore").unlink()
    (root / ".gitignore").write_text("*\n" + "#" * (1 << 20))
    assert listed(sandbox) == [".gitignore", "f"]


def test_a_folder_that_vanishes_meanwhile_is_skipped(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (root / name).mkdir()
        (root / name / "f").write_text("")
    real = os.open

    def gone(path: str, flags: int, *rest: int, **more: int) -> int:
        if path == "a":
            raise FileNotFoundError(2, "gone")
        return real(path, flags, *rest, **more)

    monkeypatch.setattr(os, "open", gone)
    assert listed(sandbox) == ["b/f"]


def test_a_very_deep_tree_ends_somewhere(sandbox: Sandbox, root: Path) -> None:
    here = os.open(root, os.O_RDONLY)
    for _ in range(MAX_DEPTH + 3):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(os.open("f", os.O_CREAT, dir_fd=inner))
        os.close(here)
        here = inner
    os.close(here)
    assert len(listed(sandbox)) == MAX_DEPTH


def test_what_is_no_directory_cannot_be_listed(sandbox: Sandbox, root: Path) -> None:
    (root / "f").write_text("")
    with pytest.raises(ToolFailed, match="not a directory"):
        listed(sandbox, "f")
