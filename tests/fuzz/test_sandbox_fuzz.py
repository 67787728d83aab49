"""Any tree, any path, any tool: what is outside the root is as it was."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.ir import ToolCall, ToolResult
from dragoman.tools.fs import FileLimits, file_tools
from dragoman.tools.handler import Handler
from dragoman.tools.registry import Registry
from dragoman.tools.results import result_text
from tests.fuzz.tree_snapshot import snapshot

CANARY = "CANARY-7f3a"
NAMES = [
    "a",
    "b",
    "c",
    ".git",
    "..",
    ".",
    "",
    "l1",
    "l2",
    "~",
    "project",
    "outside",
    "f.txt",
    "é",
    "x\0",
    "proc",
]
SEGMENT = st.one_of(st.sampled_from(NAMES), st.text(max_size=4))
PATH = st.builds(
    lambda start, segments, end: start + "/".join(segments) + end,
    st.sampled_from(["", "", "", "/", "./", "//", "$ROOT/", "$OUT/", "~/", "\\"]),
    st.lists(SEGMENT, max_size=6),
    st.sampled_from(["", "", "/", "/.", "/.."]),
)
TARGET = st.one_of(
    PATH,
    st.sampled_from(
        ["..", "../..", "../outside", "$OUT", "$OUT/secret", "$ROOT", "$ROOT/a", ".", "/", "/proc/self/root", "a/../..",
         "../project", "../../../../../../etc", "/proc/self/cwd/..", "/dev/fd", "l1", "l2/x", "b/../../outside"]
    ),
)  # fmt: skip
TREE = st.dictionaries(
    st.lists(st.sampled_from(["a", "b", "c", "l1", "l2", "f.txt", ".git"]), min_size=1, max_size=3).map(
        "/".join
    ),
    st.one_of(st.just(b"content\n"), st.builds(lambda target: target, TARGET)),
    max_size=8,
)
CALL = st.one_of(
    st.builds(lambda path: ("read_file", {"path": path}), PATH),
    st.builds(lambda path: ("list_files", {"path": path, "include_ignored": True}), PATH),
    st.builds(lambda glob: ("list_files", {"pattern": glob}), st.one_of(PATH, st.text(max_size=6))),
    st.builds(lambda path, text: ("write_file", {"path": path, "content": text}), PATH, st.text(max_size=9)),
    st.builds(lambda path: ("write_file", {"path": path, "content": "+", "mode": "append"}), PATH),
    st.builds(lambda path: ("edit_file", {"path": path, "old": "content", "new": "other"}), PATH),
    st.builds(lambda path: ("list_backups", {"path": path}), PATH),
)


def plant(root: Path, outside: Path, tree: dict[str, bytes | str]) -> None:
    """Nothing is planted through a link that was planted before: it may lead anywhere on this machine."""
    for name, thing in tree.items():
        path = root / name
        try:
            if path.is_symlink() or not path.parent.resolve().is_relative_to(root.resolve()):
                continue
            os.makedirs(path.parent, exist_ok=True)
            if isinstance(thing, bytes):
                path.write_bytes(thing)
            else:
                path.symlink_to(filled(thing, root, outside))
        except (OSError, ValueError, RuntimeError):  # two things of one name, an empty target, a NUL, a loop
            continue


def filled(text: str, root: Path, outside: Path) -> str:
    return text.replace("$ROOT", str(root)).replace("$OUT", str(outside))


def run(handler: Handler, name: str, args: dict[str, Any]) -> ToolResult:
    encoded = msgspec.json.encode(args)
    return asyncio.run(handler.execute(ToolCall(id="1", name=name, args=encoded)))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(tree=TREE, calls=st.lists(CALL, min_size=1, max_size=6))
def test_what_is_outside_is_neither_seen_nor_touched(
    tree: dict[str, bytes | str], calls: list[tuple[str, dict[str, Any]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder)
        root, outside = top / "world/project", top / "world/outside"
        for path in (root, outside / "a/b"):
            path.mkdir(parents=True)
        for path in (outside / "secret", outside / "a/b/f.txt", top / "world/f.txt", top / "f.txt"):
            path.write_text(f"{CANARY} content\n")
        plant(root, outside, tree)
        before = {
            name: entry for name, entry in snapshot(top).items() if not name.startswith("world/project/")
        }
        handler = Handler(Registry(file_tools(root, limits=FileLimits(state=top / "state"))))
        for name, args in calls:
            spelled = {
                key: filled(value, root, outside) if isinstance(value, str) else value
                for key, value in args.items()
            }
            assert CANARY not in result_text(run(handler, name, spelled))
        after = {
            name: entry
            for name, entry in snapshot(top).items()
            if not name.startswith(("world/project/", "state"))
        }
        assert after == before
