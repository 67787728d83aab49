"""Writing: whole or not at all, the old content kept, nobody's work lost."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.tools.errors import ToolFailed, ToolRefused
from dragoman.tools.fs import FileLimits, FileTools
from dragoman.tools.fs.backups import Backups
from dragoman.tools.fs.sandbox import DRAFT_PREFIX, SandboxEntry, remove_stale_drafts, replace_file
from tests.unit.tools.fs.conftest import ANYONE

DEAD_PID = 2**22 + 1  # above the kernel's highest


def write(files: FileTools, path: str = "f", content: str = "new", **more: Any) -> str:
    return files.write_file({"path": path, "content": content, **more}, ANYONE)


def test_a_new_file_is_written_with_its_folders(files: FileTools, root: Path) -> None:
    assert write(files, "new/dir/f.txt", "é\n").startswith("new/dir/f.txt created, 3 bytes (backup ")
    assert (root / "new/dir/f.txt").read_bytes() == "é\n".encode()
    with pytest.raises(ToolFailed, match="no such file"):
        write(files, "other/f.txt", create_parents=False)


def test_nothing_is_created_on_the_way_to_a_refusal(files: FileTools, root: Path) -> None:
    with pytest.raises(ToolRefused):
        write(files, "a/b/.git/c")
    assert list(root.iterdir()) == []


def test_the_mode_of_a_file_stays_and_the_user_id_bits_do_not(files: FileTools, root: Path) -> None:
    (root / "f").write_text("old")
    (root / "f").chmod(0o4751)
    write(files)
    assert stat.S_IMODE((root / "f").stat().st_mode) == 0o751


def test_the_owner_stays_where_we_may(files: FileTools, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "f").write_text("old")
    asked: list[tuple[int, int]] = []

    def refuse(_descriptor: int, user: int, group: int) -> None:
        asked.append((user, group))
        raise PermissionError

    real = os.fstat
    monkeypatch.setattr(os, "fchown", refuse)
    status = (root / "f").stat()
    foreign = os.stat_result([*status[:4], status.st_uid + 1, *status[5:]])
    folder = os.open(root, os.O_RDONLY)
    replace_file(SandboxEntry(folder=folder, name="f", path="f"), b"new", like=foreign)
    os.close(folder)
    assert asked == [(status.st_uid + 1, status.st_gid)]
    assert real is os.fstat
    assert (root / "f").read_text() == "new"


def test_append_adds_and_creates(files: FileTools, root: Path) -> None:
    write(files, content="a\n", mode="append")
    write(files, content="b\n", mode="append")
    assert (root / "f").read_text() == "a\nb\n"
    (root / "wide").write_bytes(b"\xff\xfe" + "a".encode("utf-16-le"))
    write(files, "wide", "é", mode="append")
    assert (root / "wide").read_bytes().decode("utf-16") == "aé"
    (root / "binary").write_bytes(b"\0")
    with pytest.raises(ToolFailed, match="binary"):
        write(files, "binary", mode="append")


def test_the_same_content_is_not_written_again(files: FileTools, root: Path) -> None:
    (root / "f").write_text("new")
    before = (root / "f").stat().st_ino
    assert "nothing was written" in write(files)
    assert (root / "f").stat().st_ino == before
    assert files.backups.entries() == []


def test_a_failed_write_leaves_the_old_file_and_no_draft(
    files: FileTools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old")
    files.backups.save("warm", b"", mode=0, session="", tool="")
    real = os.rename

    def full(source: str, target: str, **more: int) -> None:
        if target == "f":
            raise OSError(28, "No space left on device")
        real(source, target, **more)

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(ToolFailed, match="No space left"):
        write(files)
    assert os.listdir(root) == ["f"]
    assert (root / "f").read_text() == "old"


def test_content_is_on_the_disk_before_its_name_and_the_name_before_we_say_so(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that loses power must not come back with an empty file; no kill -9 can show that."""
    done: list[str] = []
    sync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        done.append("sync folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "sync file")
        sync(descriptor)

    def renamed(source: str, target: str, **more: int) -> None:
        done.append("rename")
        rename(source, target, **more)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    folder = os.open(root, os.O_RDONLY)
    replace_file(SandboxEntry(folder=folder, name="f", path="f"), b"new")
    os.close(folder)
    assert done == ["sync file", "rename", "sync folder"]


def test_a_write_without_its_backup_does_not_happen(
    files: FileTools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old")

    def full(*_: object, **__: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Backups, "save", full)
    with pytest.raises(ToolFailed, match="No space left"):
        write(files)
    assert (root / "f").read_text() == "old"


def test_what_somebody_saved_meanwhile_is_not_overwritten(
    files: FileTools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("old")
    real = Backups.save

    def saving(self: Backups, *args: Any, **more: Any) -> str:
        (root / "f").write_text("by an editor")
        return real(self, *args, **more)

    monkeypatch.setattr(Backups, "save", saving)
    with pytest.raises(ToolFailed, match="somebody else"):
        write(files)
    assert (root / "f").read_text() == "by an editor"


def test_edits_of_one_file_in_one_turn_all_count(files: FileTools, root: Path) -> None:
    (root / "f").write_text("".join(f"<{number}>\n" for number in range(20)))
    with ThreadPoolExecutor(8) as pool:
        calls = [
            pool.submit(files.edit_file, {"path": "f", "old": f"<{number}>", "new": "done"}, ANYONE)
            for number in range(20)
        ]
    assert all("written" in call.result() for call in calls)
    assert (root / "f").read_text() == "done\n" * 20


def test_a_directory_is_not_written(files: FileTools, root: Path) -> None:
    (root / "d").mkdir()
    for path in ("d", "."):
        with pytest.raises(ToolFailed, match="is a directory"):
            write(files, path)


def test_a_file_too_large_to_keep_is_not_overwritten(files: FileTools, root: Path) -> None:
    with (root / "f").open("wb") as file:
        file.truncate(64 * 1024 * 1024 + 1)
    with pytest.raises(ToolRefused, match="above the limit"):
        write(files)


def test_drafts_of_the_dead_are_swept_and_those_of_the_living_are_not(files: FileTools, root: Path) -> None:
    names = [f"{DRAFT_PREFIX}{pid}-x" for pid in (DEAD_PID, os.getpid(), "nonsense", 10**30, 1)]
    for name in names:
        (root / name).write_text("half")
    write(files)
    write(files, "g")
    assert sorted(os.listdir(root)) == sorted(["f", "g", *names[1:]])


def test_a_folder_that_cannot_be_listed_is_not_swept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = os.open(root, os.O_RDONLY)

    def denied(_folder: int) -> list[str]:
        raise PermissionError

    monkeypatch.setattr(os, "listdir", denied)
    remove_stale_drafts(folder)
    os.close(folder)


def test_the_state_folder_inside_the_project_is_closed(root: Path) -> None:
    files = FileTools(root, limits=FileLimits(state=root / "state"))
    write(files)
    assert files.list_files({}, ANYONE) == ["f"]
    with pytest.raises(ToolRefused, match="closed"):
        write(files, "state/backups/x")


def test_a_state_folder_that_cannot_be_made_is_said(root: Path) -> None:
    (root / "file").write_text("")
    with pytest.raises(ToolFailed):
        FileTools(root, limits=FileLimits(state=root / "file/state"))
