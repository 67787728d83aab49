"""The tools as a model meets them: through the handler, with their schemas, subjects and previews."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.ir import ToolCall, ToolResult
from dragoman.tools.definition import Context
from dragoman.tools.fs import FileLimits, FileTools, file_tools
from dragoman.tools.handler import Handler
from dragoman.tools.registry import Registry
from dragoman.tools.results import result_text


@pytest.fixture
def registry(root: Path, tmp_path: Path) -> Registry:
    return Registry(file_tools(root, limits=FileLimits(state=tmp_path / "state")))


def call(registry: Registry, name: str, **args: Any) -> ToolResult:
    asked = ToolCall(id="1", name=name, args=msgspec.json.encode(args))
    return asyncio.run(Handler(registry).execute(asked))


def text(registry: Registry, name: str, **args: Any) -> str:
    return result_text(call(registry, name, **args))


def subject(registry: Registry, name: str, **args: Any) -> str:
    definition = registry.get(name)
    assert definition
    assert definition.subject
    return definition.subject(args)


def preview(registry: Registry, name: str, **args: Any) -> str:
    definition = registry.get(name)
    assert definition
    assert definition.preview
    return definition.preview(args)


def test_the_tools_and_their_risks(registry: Registry) -> None:
    assert {tool.name: tool.risk for tool in registry.definitions()} == {
        "list_files": "read",
        "read_file": "read",
        "write_file": "write",
        "edit_file": "write",
        "search_files": "read",
        "list_backups": "read",
        "restore_backup": "write",
    }


def test_a_days_work(registry: Registry, root: Path) -> None:
    assert text(registry, "list_files") == "[]"
    assert "created" in text(registry, "write_file", path="src/main.rs", content="fn main(){}\n")
    assert text(registry, "list_files", pattern="*.rs") == '["src/main.rs"]'
    assert text(registry, "read_file", path="src/main.rs") == "fn main(){}\n"
    assert "written" in text(registry, "edit_file", path="src/main.rs", old="{}", new="{ }")
    assert text(registry, "search_files", pattern=r"\{ \}") == "src/main.rs:1:10: fn main(){ }"
    backups = msgspec.json.decode(text(registry, "list_backups", path="src/main.rs"))
    assert "written" in text(registry, "restore_backup", id=backups[0]["id"])
    assert (root / "src/main.rs").read_text() == "fn main(){}\n"
    assert text(registry, "read_file", path="src/main.rs", limit=1) == "fn main(){}\n\n[lines 1 to 1]"


def test_refusals_and_failures_are_error_results(registry: Registry) -> None:
    for args in ({"path": "../x"}, {"path": "nowhere"}, {"path": "/etc/passwd"}):
        assert call(registry, "read_file", **args).is_error


def test_a_long_listing_is_cut_and_said(registry: Registry, root: Path) -> None:
    for number in range(5):
        (root / f"f{number}").write_text("")
    result = call(registry, "list_files", limit=3)
    # Of a result in JSON Google gets nothing but the JSON.
    told = msgspec.json.decode(result.response)
    assert told["output"] == ["f0", "f1", "f2"]
    assert "only the first 3 files" in told["note"]
    assert "only the first 3 files" in result_text(result)
    assert text(registry, "list_files", limit=5, path="", pattern="") == '["f0","f1","f2","f3","f4"]'


def test_a_name_that_is_no_unicode_does_not_spoil_the_list(registry: Registry, root: Path) -> None:
    os.close(os.open(os.fsencode(root) + b"/\xff", os.O_CREAT))
    assert text(registry, "list_files") == '["\ufffd"]'


def test_a_permission_is_asked_for_the_real_place(registry: Registry, root: Path) -> None:
    (root / "secret").mkdir()
    (root / "open").symlink_to("secret")
    assert subject(registry, "write_file", path="open/new/x", content="") == "secret/new/x"
    assert subject(registry, "read_file", path=".//secret/./x") == "secret/x"
    assert subject(registry, "search_files", pattern="x") == "."
    assert subject(registry, "read_file", path="../x") == "../x"
    call(registry, "write_file", path="open/f", content="x")
    backup = msgspec.json.decode(text(registry, "list_backups"))[0]["id"]
    assert subject(registry, "restore_backup", id=backup) == "secret/f"
    assert subject(registry, "restore_backup", id="none") == "none"


def test_a_preview_is_a_diff_and_changes_nothing(registry: Registry, root: Path) -> None:
    (root / "f").write_text("a\nb\n")
    shown = preview(registry, "edit_file", path="f", old="b", new="c")
    assert shown == "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert "+new" in preview(registry, "write_file", path="d/e/g", content="new\n")
    assert "+c" in preview(registry, "write_file", path="f", content="c\n", mode="append")
    assert preview(registry, "write_file", path="f", content="a\nb\n") == "f: nothing changes\n"
    assert os.listdir(root) == ["f"]
    assert (root / "f").read_text() == "a\nb\n"


def test_a_preview_says_what_will_not_work(registry: Registry, root: Path) -> None:
    (root / "f").write_text("a")
    assert "will not succeed" in preview(registry, "edit_file", path="f", old="zzz", new="c")
    assert "will not succeed" in preview(registry, "write_file", path="../f", content="")
    assert "will not succeed" in preview(registry, "restore_backup", id="none")


def test_a_preview_over_bytes_says_so_and_shows_the_text(registry: Registry, root: Path) -> None:
    (root / "f").write_bytes(b"\x89PNG")
    shown = preview(registry, "write_file", path="f", content="x\n")
    assert shown.startswith("f is a binary file (PNG image) of 4 bytes and becomes text\n")
    assert shown.endswith("\n+x\n")


def test_a_preview_of_restoring_bytes_is_a_sentence(registry: Registry, files: FileTools, root: Path) -> None:
    (root / "f").write_bytes(b"\x89PNG")
    files.write_file({"path": "f", "content": "x"}, Context())
    backup = files.backups.entries()[0].id
    assert preview(registry, "restore_backup", id=backup) == "f becomes 4 bytes\n"


def test_a_preview_of_restoring(files: FileTools, root: Path) -> None:
    registry = Registry(files.definitions())
    call(registry, "write_file", path="f", content="one\n")
    call(registry, "write_file", path="f", content="two\n")
    second, first = files.backups.entries()
    assert "-two\n+one\n" in preview(registry, "restore_backup", id=second.id)
    assert preview(registry, "restore_backup", id=first.id) == "f is removed: it did not exist before\n"
