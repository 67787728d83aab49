"""Nothing below the root leads out of it: links, special files, closed folders, a root that moves."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman.tools.errors import ToolError, ToolFailed, ToolRefused
from dragoman.tools.fs.sandbox import MAX_DEPTH, Sandbox, SandboxEntry, replace_file


def content(sandbox: Sandbox, path: str) -> bytes:
    with sandbox.open_entry(path) as place:
        return place.read(1 << 20)[0]


def put(sandbox: Sandbox, path: str, data: bytes = b"new") -> None:
    with sandbox.open_entry(path, create_parents=True) as place:
        replace_file(place, data)


def test_a_file_is_read_by_its_path(sandbox: Sandbox, root: Path) -> None:
    (root / "src").mkdir()
    (root / "src/main.rs").write_text("fn main(){}")
    for spelled in ("src/main.rs", "./src//main.rs", "src/./main.rs"):
        assert content(sandbox, spelled) == b"fn main(){}"


def test_a_missing_file_is_a_failure_and_not_a_refusal(sandbox: Sandbox) -> None:
    with pytest.raises(ToolFailed, match="no such file"):
        content(sandbox, "nowhere/x")


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("l", "b.txt"),
        ("l", "./b.txt"),
        ("d/l", "../b.txt"),
        ("d/e/l", "../../d/../b.txt"),
        ("l", "$ROOT/b.txt"),
        ("l", "$ROOT//./b.txt"),
        ("d/l", "$ROOT/d/../b.txt"),
    ],
)
def test_a_link_that_stays_inside_works(sandbox: Sandbox, root: Path, link: str, target: str) -> None:
    (root / "d/e").mkdir(parents=True)
    (root / "b.txt").write_text("x")
    (root / link).symlink_to(target.replace("$ROOT", str(root)))
    assert content(sandbox, link) == b"x"
    assert sandbox.resolve(link) == "b.txt"


@pytest.mark.parametrize(
    "target",
    [
        "$OUT/canary.txt",
        "../project-evil/canary.txt",
        "d/../../project-evil/canary.txt",
        "/etc/passwd",
        "/",
        "..",
        "../",
        "/proc/self/root/etc/passwd",
        "/proc/self/cwd",
        "/proc/self/fd/0",
        "$ROOT-evil/canary.txt",
        "$ROOT/../project-evil/canary.txt",
        "//etc/passwd",
        "../project/b.txt",
    ],
)
def test_a_link_that_leads_out_is_refused(sandbox: Sandbox, root: Path, outside: Path, target: str) -> None:
    (root / "d").mkdir()
    (root / "b.txt").write_text("x")
    (root / "l").symlink_to(target.replace("$ROOT", str(root)).replace("$OUT", str(outside)))
    for path in ("l", "l/canary.txt", "l/x/y"):
        with pytest.raises(ToolRefused, match="leads out of the project"):
            content(sandbox, path)
        with pytest.raises(ToolRefused, match="leads out of the project"):
            put(sandbox, path)
    assert sorted(os.listdir(outside)) == ["canary.txt"]
    assert (outside / "canary.txt").read_text() == "CANARY"


def test_a_new_file_is_never_written_through_a_dangling_link(
    sandbox: Sandbox, root: Path, outside: Path
) -> None:
    """known problem P3: the target does not exist, so a check by realpath sees nothing wrong"""
    (root / "l").symlink_to(outside / "new.txt")
    with pytest.raises(ToolRefused):
        put(sandbox, "l")
    assert not (outside / "new.txt").exists()
    (root / "inner").symlink_to("made.txt")
    put(sandbox, "inner")
    assert (root / "made.txt").read_text() == "new"
    assert (root / "inner").is_symlink()


def test_links_in_a_circle_end(sandbox: Sandbox, root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    with pytest.raises(ToolRefused, match="circle"):
        content(sandbox, "a")


def test_links_cannot_lead_into_a_refused_name(sandbox: Sandbox, root: Path) -> None:
    (root / ".git/hooks").mkdir(parents=True)
    (root / "h").symlink_to(".git/hooks")
    with pytest.raises(ToolRefused, match="runs at the next commit"):
        put(sandbox, "h/pre-commit")
    assert list((root / ".git/hooks").iterdir()) == []


def test_a_link_that_ends_with_a_directory_is_a_directory(sandbox: Sandbox, root: Path) -> None:
    (root / "d/e").mkdir(parents=True)
    (root / "l").symlink_to("d/e/..")
    assert sandbox.resolve("l") == "d"
    with pytest.raises(ToolFailed, match="is a directory"):
        content(sandbox, "l")
    with pytest.raises(ToolFailed):
        put(sandbox, "l")


def test_only_regular_files_are_opened(sandbox: Sandbox, root: Path) -> None:
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "socket"))
        for name, kind in {"fifo": "FIFO", "socket": "socket"}.items():
            with pytest.raises(ToolRefused, match=kind):
                content(sandbox, name)
    with pytest.raises(ToolFailed, match="is a directory"):
        content(sandbox, ".")


def test_a_device_is_refused() -> None:
    with pytest.raises(ToolRefused, match="is a device"):
        content(Sandbox(Path("/dev")), "null")


def test_a_file_that_becomes_a_fifo_between_look_and_open_is_refused(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("x")
    real = os.open

    def swap_first(path: str, flags: int, *rest: int, **more: int) -> int:
        if path == "f":
            (root / "f").unlink()
            os.mkfifo(root / "f")
        return real(path, flags, *rest, **more)

    with sandbox.open_entry("f") as place:
        monkeypatch.setattr(os, "open", swap_first)
        with pytest.raises(ToolRefused, match="FIFO"):
            place.read(10)


def test_a_file_that_becomes_a_link_between_look_and_open_is_refused(
    sandbox: Sandbox, root: Path, outside: Path
) -> None:
    def looked_and_then_opened(path: str, reader: Callable[[SandboxEntry], object]) -> None:
        with sandbox.open_entry(path) as place:
            (root / path).symlink_to(outside / "canary.txt")
            reader(place)

    with pytest.raises(ToolRefused, match="became a link"):
        looked_and_then_opened("f", lambda place: place.read(10))
    with pytest.raises(ToolRefused, match="symbolic link"):
        looked_and_then_opened(
            "g", lambda place: os.open(place.name, os.O_RDONLY | os.O_NOFOLLOW, dir_fd=place.folder)
        )


def test_writing_over_a_link_that_appeared_replaces_the_link(
    sandbox: Sandbox, root: Path, outside: Path
) -> None:
    with sandbox.open_entry("f") as place:
        (root / "f").symlink_to(outside / "canary.txt")
        replace_file(place, b"new")
    assert not (root / "f").is_symlink()
    assert (outside / "canary.txt").read_text() == "CANARY"


def test_a_hard_link_to_outside_is_broken_by_a_write(sandbox: Sandbox, root: Path, outside: Path) -> None:
    os.link(outside / "canary.txt", root / "hard")
    put(sandbox, "hard")
    assert (root / "hard").read_text() == "new"
    assert (outside / "canary.txt").read_text() == "CANARY"


def test_closed_folders_are_known_by_inode(root: Path) -> None:
    (root / "state").mkdir()
    (root / "state/key").write_text("k")
    (root / "other").symlink_to("state")
    sandbox = Sandbox(root, closed=(root / "state", root / "not-there"))
    (root / "state").rename(root / "renamed")
    (root / "other2").symlink_to("renamed")
    for path in ("renamed/key", "other2/key"):
        with pytest.raises(ToolRefused, match="closed to tools"):
            content(sandbox, path)


def test_system_folders_are_closed_when_the_root_is_above_them() -> None:
    for path in ("proc/self/environ", "sys/kernel/mm", "dev/null"):
        with pytest.raises(ToolRefused, match="closed to tools"):
            content(Sandbox(Path("/")), path)


def test_a_root_that_is_replaced_stays_the_directory_it_was(
    sandbox: Sandbox, root: Path, outside: Path
) -> None:
    (root / "f").write_text("mine")
    root.rename(root.parent / "moved")
    root.symlink_to(outside)
    assert content(sandbox, "f") == b"mine"
    put(sandbox, "new.txt")
    assert (root.parent / "moved/new.txt").exists()
    assert sorted(os.listdir(outside)) == ["canary.txt"]


def test_a_directory_that_moves_out_during_a_write_takes_only_itself_along(
    sandbox: Sandbox, root: Path, outside: Path
) -> None:
    (root / "d").mkdir()
    with sandbox.open_entry("d/canary.txt") as place:
        (root / "d").rename(outside / "d")
        (root / "d").symlink_to(outside)
        replace_file(place, b"new")
    assert (outside / "canary.txt").read_text() == "CANARY"


def test_a_root_that_cannot_be_opened_is_said(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="no such file"):
        Sandbox(tmp_path / "nowhere")


def test_a_file_on_the_way_is_no_directory(sandbox: Sandbox, root: Path) -> None:
    (root / "f").write_text("x")
    with pytest.raises(ToolFailed, match="f is not a directory"):
        content(sandbox, "f/x")
    with pytest.raises(ToolFailed, match="ends with '/'"):
        content(sandbox, "f/")


def test_an_absolute_path_inside_is_refused_with_the_right_one(sandbox: Sandbox, root: Path) -> None:
    (root / "f").write_text("x")
    with pytest.raises(ToolRefused, match=r"\(here: a/f\)"):
        content(sandbox, f"{root}/a/f")
    with pytest.raises(ToolRefused) as caught:
        content(sandbox, f"{root}/../f")
    assert "here:" not in caught.value.message


def test_links_cannot_lead_deeper_than_descriptors_last(sandbox: Sandbox, root: Path) -> None:
    deep = "/".join("d" * (MAX_DEPTH // 2 + 1))
    (root / deep).mkdir(parents=True)
    (root / "deeper").symlink_to(deep)
    (root / deep / "more").symlink_to("/".join("e" * MAX_DEPTH))
    with pytest.raises(ToolRefused, match="deeper"):
        put(sandbox, "deeper/more/x")


def test_what_would_be_created_is_resolved_through_links(sandbox: Sandbox, root: Path) -> None:
    (root / "secret").mkdir()
    (root / "open").symlink_to("secret")
    (root / "odd").symlink_to("nowhere/../secret")
    assert sandbox.resolve("open/new/x.txt") == "secret/new/x.txt"
    assert sandbox.resolve(".") == "."
    with pytest.raises(ToolFailed, match="leads nowhere"):
        sandbox.resolve("odd/x")


def test_no_descriptor_is_left_open(sandbox: Sandbox, root: Path, outside: Path) -> None:
    (root / "d").mkdir()
    (root / "d/f").write_text("x")
    (root / "l").symlink_to(outside)
    before = len(os.listdir("/proc/self/fd"))
    for path in ("d/f", "l/x", "d/none", "d/f/x", "../x", "d"):
        with pytest.raises(ToolError) if path != "d/f" else open(os.devnull):
            content(sandbox, path)
    with sandbox.open_directory("d"):
        pass
    assert len(os.listdir("/proc/self/fd")) == before
    del sandbox


def test_permissions_of_the_system_are_said_in_words(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "f").write_text("x")

    def denied(*_: object, **__: object) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "readlink", denied)
    with pytest.raises(ToolFailed, match="does not permit"):
        content(sandbox, "f")
