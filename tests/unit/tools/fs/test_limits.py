"""A session that runs wild is slowed down, and only that session."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.tools.definition import Context
from dragoman.tools.errors import ToolRefused
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.fs.limits import FileRateLimiter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_reads_and_writes_a_minute_are_limited_by_session() -> None:
    clock = Clock()
    meter = FileRateLimiter(FileLimits(reads_per_minute=2, writes_per_minute=1), clock)
    meter.count_read("a")
    clock.now = 15
    meter.count_read("a")
    meter.count_write("a", 1)
    with pytest.raises(ToolRefused, match="2 reads a minute; wait 45 s"):
        meter.count_read("a")
    with pytest.raises(ToolRefused, match="1 writes a minute; wait 60 s"):
        meter.count_write("a", 1)
    meter.count_read("b")
    clock.now = 60
    meter.count_read("a")


def test_bytes_are_limited_by_file_and_by_session() -> None:
    meter = FileRateLimiter(FileLimits(max_write_bytes=10, written_bytes_per_session=15))
    with pytest.raises(ToolRefused, match="11 bytes is above the limit of 10 for one file"):
        meter.count_write("a", 11)
    meter.count_write("a", 10)
    with pytest.raises(ToolRefused, match="may write 15 bytes"):
        meter.count_write("a", 6)
    meter.count_write("a", 5)


def test_nothing_at_all_may_be_allowed() -> None:
    with pytest.raises(ToolRefused, match=r"0 writes a minute$"):
        FileRateLimiter(FileLimits(writes_per_minute=0)).count_write("a", 1)


def test_sessions_are_forgotten_in_the_end() -> None:
    meter = FileRateLimiter(FileLimits(reads_per_minute=1))
    for number in range(1001):
        meter.count_read(f"{number}")
    meter.count_read("0")
    with pytest.raises(ToolRefused):
        meter.count_read("1000")


def test_every_tool_counts(root: Path, tmp_path: Path) -> None:
    clock = Clock()
    limits = FileLimits(state=tmp_path / "state", reads_per_minute=2, writes_per_minute=2)
    files = FileTools(root, limits=limits, clock=clock)
    context = Context(session="x")
    files.write_file({"path": "f", "content": "1"}, context)
    files.edit_file({"path": "f", "old": "1", "new": "2"}, context)
    with pytest.raises(ToolRefused, match="writes a minute"):
        files.restore_backup({"id": files.backups.entries()[0].id}, context)
    assert (root / "f").read_text() == "2"
    files.read_file({"path": "f"}, context)
    files.list_files({}, context)
    for tool in (files.read_file, files.list_files, files.list_backups):
        with pytest.raises(ToolRefused, match="reads a minute"):
            tool({"path": "f"}, context)
