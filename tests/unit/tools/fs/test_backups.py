"""The way back: every write can be listed and undone, also the undoing."""

from __future__ import annotations

import itertools
import os
import re
import stat
from pathlib import Path

import pytest

from dragoman.tools.errors import ToolFailed
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.fs.backups import Backups
from tests.unit.tools.fs.conftest import ANYONE


def write(files: FileTools, path: str, content: str) -> str:
    said = files.write_file({"path": path, "content": content}, ANYONE)
    found = re.search(r"backup ([\d\w-]+)", said)
    assert found
    return found[1]


def restore(files: FileTools, backup: str) -> str:
    return files.restore_backup({"id": backup}, ANYONE)


def test_an_overwritten_file_comes_back_byte_for_byte(files: FileTools, root: Path) -> None:
    (root / "f").write_bytes(b"\xff\0old\n")
    (root / "f").chmod(0o640)
    backup = write(files, "f", "new")
    assert "written, 6 bytes" in restore(files, backup)
    assert (root / "f").read_bytes() == b"\xff\0old\n"
    (root / "f").unlink()
    restore(files, backup)
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o640


def test_a_restored_file_is_as_open_as_it_was_though_new_ones_are_the_owners_alone(
    files: FileTools, root: Path
) -> None:
    (root / "f").write_bytes(b"old")
    (root / "f").chmod(0o640)
    backup = write(files, "f", "new")
    (root / "f").unlink()
    before = os.umask(0o077)  # as the gateway has it
    try:
        restore(files, backup)
        write(files, "g", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o640
    assert stat.S_IMODE((root / "g").stat().st_mode) == 0o600


def test_a_new_file_goes_away_again_and_that_can_be_undone(files: FileTools, root: Path) -> None:
    backup = write(files, "d/f", "new")
    assert "gone" in restore(files, backup)
    assert not (root / "d/f").exists()
    with pytest.raises(ToolFailed, match="already gone"):
        restore(files, backup)
    newest = files.backups.entries()[0]
    assert newest.tool == "restore_backup"
    restore(files, newest.id)
    assert (root / "d/f").read_text() == "new"


def test_backups_are_listed_newest_first_by_where_the_file_really_is(files: FileTools, root: Path) -> None:
    for content in ("1", "22", "333"):
        write(files, "f", content)
    (root / "link").symlink_to("f")
    write(files, "g", "x")
    listed = files.list_backups({"path": "link"}, ANYONE)
    assert [backup.size_bytes for backup in listed] == [2, 1, 0]
    assert [backup.existed for backup in listed] == [True, True, False]
    assert {backup.session for backup in listed} == {"s"}
    assert len(files.list_backups({}, ANYONE)) == 4


def test_backups_are_for_their_owner_alone_and_outside_the_project(files: FileTools, root: Path) -> None:
    write(files, "f", "x")
    kept = list(files.backups.folder.iterdir())
    assert [stat.S_IMODE(path.stat().st_mode) for path in kept] == [0o600]
    assert root not in files.backups.folder.parents
    assert os.listdir(root) == ["f"]


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path) -> None:
    times = map(float, itertools.count(1))
    backups = Backups(tmp_path, tmp_path / "p", kept=3, now=lambda: next(times))
    for number in range(5):
        backups.save(f"f{number}", b"x", mode=0o644, session="", tool="")
    assert [backup.path for backup in backups.entries()] == ["f4", "f3", "f2"]


def test_projects_do_not_see_each_others_backups(tmp_path: Path) -> None:
    Backups(tmp_path, tmp_path / "one").save("f", b"x", mode=0, session="", tool="")
    assert Backups(tmp_path, tmp_path / "two").entries() == []


@pytest.mark.parametrize("backup", ["", "../x", "00000000000000000001-abcdef01", "x" * 29, "1-2\n"])
def test_an_id_is_an_id(files: FileTools, backup: str) -> None:
    with pytest.raises(ToolFailed, match="backup"):
        restore(files, backup)


def test_foreign_files_among_the_backups_are_left_alone(tmp_path: Path) -> None:
    backups = Backups(tmp_path, tmp_path / "p", kept=1)
    backups.folder.mkdir(parents=True)
    (backups.folder / "readme.backup").write_text("x")
    for _ in range(2):
        backups.save("f", b"x", mode=0, session="", tool="")
    assert len(backups.entries()) == 1
    assert (backups.folder / "readme.backup").exists()


def test_two_processes_may_prune_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backups = Backups(tmp_path, tmp_path / "p", kept=1)
    backups.save("f", b"x", mode=0, session="", tool="")

    def gone(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(os, "unlink", gone)
    backups.save("f", b"y", mode=0, session="", tool="")
    assert len(backups.entries()) == 2


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({"DRAGOMAN_HOME": "/h"}, "/h"),
        ({"DRAGOMAN_HOME": " ", "XDG_DATA_HOME": "/x"}, "/x/dragoman"),
        ({"HOME": "/u"}, "/u/.local/share/dragoman"),
    ],
)
def test_without_a_folder_given_backups_go_to_the_users_data(
    env: dict[str, str], folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DRAGOMAN_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert FileLimits().state_folder == Path(folder)
    assert FileLimits(state=Path("/given")).state_folder == Path("/given")
