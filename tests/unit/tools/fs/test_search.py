"""Searching: the same answers from both engines, nothing from outside, nothing that cannot be stopped."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import resource
import shlex
import shutil
import stat
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from dragoman.tools.errors import ToolFailed
from dragoman.tools.fs import FileLimits, FileTools, grep_child, search
from dragoman.tools.fs.ripgrep import find_ripgrep, ripgrep_engine
from dragoman.tools.fs.sandbox import Sandbox
from dragoman.tools.fs.search import SearchEngine, SearchHit, SearchQuery, python_engine
from dragoman.tools.results import result_text, to_output
from tests.requirements import require_program
from tests.unit.tools.fs import fake_ripgrep
from tests.unit.tools.fs.conftest import ANYONE


@pytest.fixture
def fake(tmp_path: Path) -> str:
    program = tmp_path / "bin" / "rg"
    program.parent.mkdir()
    command = [sys.executable, "-I", "-S", fake_ripgrep.__file__, str(tmp_path / "log")]
    program.write_text(f'#!/bin/sh\nunset PATH\nexec {shlex.join(command)} "$@"\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.fixture(params=["python", "fake", "ripgrep"])
def engine(request: pytest.FixtureRequest, fake: str) -> SearchEngine:
    if request.param == "python":
        return python_engine
    return ripgrep_engine(fake if request.param == "fake" else require_program("rg", package="ripgrep"))


def hits(
    sandbox: Sandbox, engine: SearchEngine, pattern: str, **more: Any
) -> list[tuple[str, int, int, str]]:
    found = asyncio.run(search.search(sandbox, SearchQuery(pattern=pattern, **more), engine, timeout_s=60))
    return [(hit.path, hit.line, hit.column, hit.text) for hit in found.hits]


def test_hits_have_line_and_column(sandbox: Sandbox, root: Path, engine: SearchEngine) -> None:
    (root / "b").mkdir()
    (root / "b/f").write_text("é needle\r\nnone\n  needle needle\n")
    (root / "a").write_text("needle")
    assert hits(sandbox, engine, "nee+dle") == [
        ("a", 1, 1, "needle"),
        ("b/f", 1, 3, "é needle"),
        ("b/f", 3, 3, "  needle needle"),
    ]
    assert hits(sandbox, engine, "nothing like it") == []


def test_a_search_is_limited_to_a_path_and_a_glob(sandbox: Sandbox, root: Path, engine: SearchEngine) -> None:
    for path in ("x.py", "src/x.py", "src/x.rs", "src/deep/x.py", ".github/x.py"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("needle")
    found = {
        ("src", "*.py"): ["src/x.py", "src/deep/x.py"],
        ("src", "/*.py"): ["src/x.py"],
        (".", "src/**/*.py"): ["src/x.py", "src/deep/x.py"],
        (".", "*.{rs,py}"): ["x.py", ".github/x.py", "src/x.py", "src/x.rs", "src/deep/x.py"],
        (".github", "**/*"): [".github/x.py"],
    }
    for (path, glob), expected in found.items():
        assert [hit[0] for hit in hits(sandbox, engine, "needle", path=path, glob=glob)] == expected


def test_ignored_secret_binary_and_large_files_are_not_searched(
    sandbox: Sandbox, root: Path, engine: SearchEngine
) -> None:
    (root / ".gitignore").write_text("out/\n*.log\n")
    (root / "src").mkdir()
    (root / "src/.gitignore").write_text("!keep.log\n")
    for path in ("out/f", "src/a.log", "src/keep.log", ".env", "src/id_rsa", "src/ok", ".git/config"):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("needle")
    (root / "binary").write_bytes(b"\0needle")
    (root / "large").write_text("needle\n" * 1000)
    (root / "latin").write_bytes(b"\xe9 needle\n")
    limit = {"max_file_bytes": 5000}
    assert [hit[0] for hit in hits(sandbox, engine, "needle", **limit)] == ["latin", "src/keep.log", "src/ok"]
    assert [hit[0] for hit in hits(sandbox, engine, "needle", path="src", **limit)] == [
        "src/keep.log",
        "src/ok",
    ]
    every = [hit[0] for hit in hits(sandbox, engine, "needle", include_ignored=True, **limit)]
    assert every == ["latin", "out/f", "src/a.log", "src/keep.log", "src/ok"]


def test_links_are_not_followed(sandbox: Sandbox, root: Path, outside: Path, engine: SearchEngine) -> None:
    (root / "folder").symlink_to(outside)
    (root / "file").symlink_to(outside / "canary.txt")
    assert hits(sandbox, engine, "CANARY") == []


def test_a_pattern_is_never_an_option(sandbox: Sandbox, root: Path, engine: SearchEngine) -> None:
    (root / "f").write_text("--files -e --pre=x\n")
    for pattern in ("--files", "-e", "--pre=x", "-"):
        assert [hit[:2] for hit in hits(sandbox, engine, pattern)] == [("f", 1)]


def test_more_than_wanted_is_cut_and_said(files: FileTools, root: Path, engine: SearchEngine) -> None:
    files.engine = engine
    for number in range(9):
        (root / f"f{number}").write_text("needle\n" * 40)
    said = text_of(files, pattern="needle", max_results=3)
    assert said == ("f0:1:1: needle\nf0:2:1: needle\nf0:3:1: needle\n[only the first 3 lines are shown]")
    assert text_of(files, pattern="absent") == "nothing was found"


def text_of(files: FileTools, **args: Any) -> str:
    return result_text(to_output(asyncio.run(files.search_files(args, ANYONE))))


@pytest.mark.parametrize(
    ("pattern", "why"), [("(", "no regular expression"), ("a\0", "no text"), ("\ud800", "no text")]
)
def test_a_pattern_that_is_none_is_said(sandbox: Sandbox, pattern: str, why: str) -> None:
    with pytest.raises(ToolFailed, match=why):
        hits(sandbox, python_engine, pattern)


def test_what_ripgrep_does_not_understand_is_left_to_python(sandbox: Sandbox, root: Path, fake: str) -> None:
    (root / "f").write_text("foobar\nfoo\n")
    assert hits(sandbox, ripgrep_engine(fake), "foo(?=bar)") == [("f", 1, 1, "foobar")]


def test_a_flood_of_hits_that_do_not_count_hides_nothing(
    sandbox: Sandbox, root: Path, engine: SearchEngine
) -> None:
    (root / "a").mkdir()
    (root / "a/.env").write_text("needle\n" * 100)
    (root / "b").write_text("needle\n")
    (root / "c").write_text("needle\n")
    (root / ".env").write_text("needle\n" * 100)
    assert [hit[0] for hit in hits(sandbox, engine, "needle", max_results=2)] == ["b", "c"]


def test_ripgrep_gets_no_config_and_no_environment(
    sandbox: Sandbox, root: Path, fake: str, tmp_path: Path
) -> None:
    hits(sandbox, ripgrep_engine(fake), "-x", glob="*.py")
    argv = json.loads((tmp_path / "log").read_text())
    assert {"--no-config", "--no-follow", "--regexp=-x"} < set(argv)
    assert argv[-6:] == ["--type-add", "wanted:*.py", "--type", "wanted", "--", "."]


def test_what_ripgrep_says_of_a_file_outside_is_not_believed(
    sandbox: Sandbox, root: Path, fake: str, tmp_path: Path, outside: Path
) -> None:
    """A directory that became a link while ripgrep was walking; and lines that are not in the file."""
    (root / "f").write_text("mine\n")
    claims = [("./d/canary.txt", "CANARY", 1), ("./f", "CANARY", 1), ("./f", "mine", 2), ("./gone", "x", 1)]
    messages = [
        {"type": "match", "data": {"path": {"text": path}, "lines": {"text": text}, "line_number": line}}
        for path, text, line in [*claims, ("./f", "mine", 1)]
    ]
    said = tmp_path / "said"
    said.write_text("".join(json.dumps(message) + "\n" for message in messages))
    Path(fake).write_text(f"#!/bin/sh\nexec /bin/cat {said}\n")
    (root / "d").symlink_to(outside)
    assert hits(sandbox, ripgrep_engine(fake), "CANARY|mine") == [("f", 1, 1, "mine")]


def test_a_catastrophic_pattern_is_stopped_and_its_process_is_gone(
    files: FileTools, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_MAX_CPU_S", 10**6)  # its own limit is not what is meant here
    (root / "f").write_text("x" * 40 + "\n")
    limits = FileLimits(state=files.limits.state, search_s=2)
    slow = FileTools(root, limits=limits)
    slow.engine = python_engine
    with pytest.raises(ToolFailed, match="stopped after 2 s"):
        text_of(slow, pattern="(x+x+)+y")
    assert _children() == []


def test_files_behind_the_first_batch_are_searched_too(
    sandbox: Sandbox, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "_FIRST_FILES", 3)
    for number in range(8):
        (root / f"f{number}").write_text("needle\n" if number % 2 else "other\n")
    assert [hit[0] for hit in hits(sandbox, python_engine, "needle")] == ["f1", "f3", "f5", "f7"]
    assert [hit[0] for hit in hits(sandbox, python_engine, "needle", max_results=2)] == ["f1", "f3"]
    assert [hit[0] for hit in hits(sandbox, python_engine, "o", max_results=1, glob="f[02]")] == ["f0"]


def test_what_was_found_is_given_when_the_time_is_over(sandbox: Sandbox) -> None:
    async def endless(_sandbox: Sandbox, _query: SearchQuery) -> AsyncGenerator[SearchHit]:
        yield SearchHit(path="f", line=1, column=1, text="needle")
        await asyncio.Event().wait()

    found = asyncio.run(search.search(sandbox, SearchQuery(pattern="x"), endless, timeout_s=0.05))
    assert [hit.path for hit in found.hits] == ["f"]
    assert found.note.startswith("the search was stopped after 0.05 s")


def test_a_search_that_is_cancelled_leaves_no_process(sandbox: Sandbox, root: Path) -> None:
    (root / "f").write_text("x" * 40 + "\n")

    async def cancelled() -> None:
        query = SearchQuery(pattern="(x+x+)+y")
        task = asyncio.ensure_future(search.search(sandbox, query, python_engine, timeout_s=60))
        while not _children():
            await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancelled())
    assert _children() == []


def _children() -> list[str]:
    """Our own children that search: other tests' are other processes'."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
            command = Path(f"/proc/{pid}/cmdline").read_text()
        except OSError:
            continue
        if parent == str(os.getpid()) and grep_child.__file__ in command:
            found.append(pid)
    return found


def test_a_ripgrep_that_the_project_brought_is_not_run(
    root: Path, sandbox: Sandbox, fake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = root / "rg"
    shutil.copy(fake, inside)
    monkeypatch.setenv("PATH", str(root))
    assert find_ripgrep(sandbox) == ""
    monkeypatch.setenv("PATH", str(Path(fake).parent))
    assert find_ripgrep(sandbox) == os.path.realpath(fake)
    assert FileTools(root, limits=FileLimits(state=root.parent / "s")).engine is not python_engine
    monkeypatch.setenv("PATH", "/nowhere")
    assert find_ripgrep(sandbox) == ""
    assert FileTools(root, limits=FileLimits(state=root.parent / "s")).engine is python_engine


def test_a_long_line_is_shown_short() -> None:
    assert str(SearchHit(path="f", line=1, column=2, text="x" * 600)) == f"f:1:2: {'x' * 500}…"


def test_a_match_stays_in_its_line() -> None:
    assert grep_child.hits_in("foo\nbar\n", re.compile(r"foo\s*bar", re.MULTILINE)) == []
    assert grep_child.hits_in("a\nfoo\n", re.compile(r"foo\Z", re.MULTILINE)) == [(2, 1, "foo")]
    assert grep_child.hits_in("a\n\n", re.compile(r"^", re.MULTILINE)) == [(1, 1, "a"), (2, 1, "")]
    assert grep_child.hits_in("", re.compile(r"^", re.MULTILINE)) == []


def test_the_child_reads_what_it_is_told_and_nothing_special(
    root: Path, outside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In this process, so that what it does is seen; its limits would stay, so it sets none."""
    (root / "d").mkdir()
    for path in ("f", "d/f", "d/g"):
        (root / path).write_text("needle\n")
    (root / "wide").write_bytes(b"\xff\xfe" + "a\r\nneedle".encode("utf-16-le"))
    (outside / "canary.txt").write_text("needle\n")
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "fifo")
    (root / "long").write_text("needle" * 100)
    (root / "latin").write_bytes(b"\xe9needle")
    (root / "binary").write_bytes(b"\0needle")
    limits: list[object] = []
    monkeypatch.setattr(resource, "setrlimit", lambda *args: limits.append(args))
    paths = "f gone d/f d/g link/canary.txt fifo long binary latin wide d/f".split()
    with_root = os.open(root, os.O_RDONLY)
    order = {"folder": with_root, "pattern": "needle", "max_hits": 5, "max_bytes": 500, "cpu_s": 9}
    stdin = io.TextIOWrapper(io.BytesIO(json.dumps(order).encode() + b"\n" + "\0".join(paths).encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    grep_child.main()
    assert [json.loads(line)[:3] for line in capsys.readouterr().out.splitlines()] == [
        ["f", 1, 1],
        ["d/f", 1, 1],
        ["d/g", 1, 1],
        ["latin", 1, 2],
        ["wide", 2, 1],
    ]
    assert len(limits) == 1
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps({**order, "pattern": "("}).encode()))
    )
    grep_child.main()
    assert "unterminated" in json.loads(capsys.readouterr().out)
    order["max_hits"] = 99
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps(order).encode() + b"\nf")))
    grep_child.main()
    assert json.loads(capsys.readouterr().out)[0] == "f"
    os.close(with_root)
