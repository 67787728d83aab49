"""kill -9 in the middle of a thousand writes: files are old or new, never half, and every backup restores."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman.tools.definition import Context
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.fs.sandbox import DRAFT_PREFIX
from tests.faults import file_writer

WRITES = 1000


def write_until_killed(root: Path, state: Path, start: int, chance: random.Random) -> int:
    """The number after the last write that was told; the one after it may have happened, too."""
    command = [sys.executable, "-m", "tests.faults.file_writer", str(root), str(state), str(start)]
    done = start
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as process:
        assert process.stdout
        for _ in range(chance.randint(1, 60)):
            done = int(process.stdout.readline()) + 1
        time.sleep(chance.random() * 0.01)  # not at the moment of telling: at any moment of the next write
        process.send_signal(signal.SIGKILL)
        told = process.stdout.read().split()
    assert process.returncode == -signal.SIGKILL
    return int(told[-1]) + 1 if told else done


def expect_old_or_new(root: Path, done: int) -> None:
    for number in range(max(0, done - file_writer.FILES), done):
        text = (root / file_writer.name(number)).read_text()
        assert file_writer.is_whole(text), f"{file_writer.name(number)} is half written"
        assert int(text.partition("\n")[0]) >= number, "a write that was told is lost"


def drafts(root: Path) -> list[Path]:
    return list(root.rglob(f"{DRAFT_PREFIX}*"))


@pytest.mark.timeout(600)
def test_a_writer_that_is_killed_leaves_whole_files_and_whole_backups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, state = tmp_path / "project", tmp_path / "state"
    root.mkdir()
    chance = random.Random(5)
    done = kills = 0
    while done < WRITES:
        done = write_until_killed(root, state, done, chance)
        kills += 1
        expect_old_or_new(root, done)
    assert kills >= 10

    monkeypatch.setattr(os, "fsync", lambda _descriptor: None)  # this process is not going to be killed
    files = FileTools(root, limits=FileLimits(state=state, **file_writer.LIMITS))
    backups = files.backups.entries()
    assert len(backups) >= WRITES
    for backup in backups:
        _, before = files.backups.load(backup.id)
        if before is not None:
            assert file_writer.is_whole(before.decode())
            files.restore_backup({"id": backup.id}, Context())
            assert (root / backup.path).read_bytes() == before
        elif (root / backup.path).exists():
            files.restore_backup({"id": backup.id}, Context())
            assert not (root / backup.path).exists()
    for number in range(2 * file_writer.FILES):
        files.write_file({"path": file_writer.name(number), "content": "swept"}, Context())
    assert drafts(root) == []
    assert drafts(state) == []
