"""Directories and files that become links out of the project while we use them: 100,000 tries and more."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dragoman.tools.definition import Context
from dragoman.tools.errors import ToolError
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.fs.glob import Glob
from dragoman.tools.fs.sandbox import Sandbox, replace_file
from dragoman.tools.fs.search import SearchQuery, python_engine, search
from dragoman.tools.fs.tree import ListingFilter, list_tree
from tests.fuzz import rename_race
from tests.fuzz.tree_snapshot import snapshot

READS, RESOLVES, LISTS, PLACES, WRITES, SEARCHES = 70_000, 15_000, 8_000, 8_000, 150, 15
INSIDE = b"inside"
PATHS = ("d/f", "d/sub/f", "file", "deep/x/y/f")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """`d`, `file` and `deep/x` each have a twin outside the tree's own names that is a link to the canary."""
    root, outside, spare = tmp_path / "project", tmp_path / "outside", tmp_path / "spare"
    for folder in (root / "d/sub", root / "deep/x/y", outside / "sub", outside / "y", spare):
        folder.mkdir(parents=True)
    for path in PATHS:
        (root / path).write_bytes(INSIDE)
    for path in ("f", "sub/f", "y/f", "secret"):
        (outside / path).write_bytes(b"CANARY")
    (spare / "d").symlink_to(outside)
    (spare / "x").symlink_to(outside)
    (spare / "file").symlink_to(outside / "secret")
    return root


@contextmanager
def swapping(project: Path) -> Iterator[None]:
    spare = project.parent / "spare"
    pairs = [project / "d", spare / "d", project / "deep/x", spare / "x", project / "file", spare / "file"]
    command = [sys.executable, rename_race.__file__, *map(str, pairs)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        try:
            yield
            assert process.poll() is None, "the swapper must have been at it all the time"
        finally:
            process.stdin.close()
            process.wait()
    assert process.returncode == 0


def tries(count: int, attempt: Callable[[str], object]) -> Counter[str]:
    seen: Counter[str] = Counter()
    for number in range(count):
        try:
            attempt(PATHS[number % len(PATHS)])
            seen["done"] += 1
        except ToolError:
            seen["refused"] += 1
    return seen


def read(sandbox: Sandbox, path: str) -> None:
    with sandbox.open_entry(path) as place:
        assert place.read(100)[0] == INSIDE


def listed(sandbox: Sandbox, path: str) -> None:
    found = list_tree(
        sandbox, path.partition("/")[0] if "/" in path else ".", ListingFilter(glob=Glob("**/*"))
    )
    assert not {name for name in found if name.rpartition("/")[2] in ("secret", "canary")}


def place_new(sandbox: Sandbox, path: str) -> None:
    """A new folder and a new file; where nothing is synced, many can be tried."""
    with sandbox.open_entry(f"{path}-new/g", create_parents=True) as place:
        replace_file(place, INSIDE)


@pytest.mark.timeout(600)
def test_a_hundred_thousand_races_are_not_lost_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = Sandbox(project)
    before = snapshot(project.parent / "outside")
    assert READS + RESOLVES + LISTS + PLACES >= 100_000
    with swapping(project):
        reads = tries(READS, lambda path: read(sandbox, path))
        resolves = tries(RESOLVES, sandbox.resolve)
        lists = tries(LISTS, lambda path: listed(sandbox, path))
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda _descriptor: None)
            places = tries(PLACES, lambda path: place_new(sandbox, path))
    for seen in (reads, resolves, lists, places):
        assert seen["done"] > 0, "a race that is never won proves nothing"
        assert seen["refused"] > 0, "a race that is never lost proves nothing"
    assert snapshot(project.parent / "outside") == before


@pytest.mark.timeout(600)
def test_writes_and_searches_in_a_race_stay_inside(project: Path, tmp_path: Path) -> None:
    limits = FileLimits(state=tmp_path / "state", writes_per_minute=10**9, reads_per_minute=10**9)
    files = FileTools(project, limits=limits)
    before = snapshot(project.parent / "outside")
    context = Context()
    with swapping(project):
        writes = tries(
            WRITES, lambda path: files.write_file({"path": path, "content": f"{os.urandom(4)!r}"}, context)
        )
        for engine in {files.engine, python_engine}:
            for _ in range(SEARCHES):
                found = asyncio.run(
                    search(files.sandbox, SearchQuery(pattern="CANARY"), engine, timeout_s=60)
                )
                assert found.hits == []
    assert writes["done"] > 0
    assert snapshot(project.parent / "outside") == before
