"""Tools that only one generation of Claude Code has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.clients import INSTALL_S, Claude
from tests.e2e.conftest import CLASSIC, NEW, NEW_GEMINI
from tests.e2e.directives import plan, together, use
from tests.e2e.fake_google import Google

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]


@pytest.mark.parametrize("claude", [CLASSIC], indirect=True, ids=" ".join)
def test_todo_list(claude: Claude, google: Google) -> None:
    todos = [
        {"content": "Write it", "status": "completed", "activeForm": "Writing it"},
        {"content": 'Say "done"', "status": "in_progress", "activeForm": 'Saying "done"'},
    ]
    run = claude.run(plan(use("TodoWrite", {"todos": todos[:1]}), use("TodoWrite", {"todos": todos}))).check()
    assert [call["input"] for call in run.calls()] == [{"todos": todos[:1]}, {"todos": todos}]
    assert not any(result.get("is_error") for result in run.results())
    assert "TodoWrite returned: Todos have been modified successfully" in run.result
    assert google.sentinels() == 0


@pytest.mark.parametrize("claude", [CLASSIC], indirect=True, ids=" ".join)
def test_search_in_files(claude: Claude, google: Google) -> None:
    (claude.cwd / "src").mkdir()
    (claude.cwd / "src" / "one.py").write_text("before\nNEEDLE = 1\nafter\n")
    (claude.cwd / "src" / "two.txt").write_text("NEEDLE\n")
    grep = {"pattern": "^needle", "output_mode": "content", "-i": True, "-n": True, "-A": 1, "type": "py"}
    run = claude.run(together(use("Glob", {"pattern": "**/*.py"}), use("Grep", grep))).check()
    assert run.names() == ["Glob", "Grep"]
    assert "one.py" in run.result
    assert "2:NEEDLE = 1" in run.result
    assert "3-after" in run.result
    assert "two.txt" not in run.result
    assert google.sentinels() == 0


@pytest.mark.parametrize("claude", [CLASSIC], indirect=True, ids=" ".join)
def test_many_edits_at_once(claude: Claude, google: Google) -> None:
    path = claude.cwd / "a.txt"
    path.write_text("one two two\n")
    edits = [
        {"old_string": "one", "new_string": "1"},
        {"old_string": "two", "new_string": "2", "replace_all": True},
    ]
    step = use("MultiEdit", {"file_path": str(path), "edits": edits})
    claude.run(plan(use("Read", {"file_path": str(path)}), step)).check()
    assert path.read_text() == "1 2 2\n"
    assert google.sentinels() == 0


@pytest.mark.parametrize("claude", [NEW, NEW_GEMINI], indirect=True, ids=" ".join)
def test_a_deferred_tool_is_found_and_used(claude: Claude, google: Google) -> None:
    path = claude.cwd / "book.ipynb"
    cell: dict[str, object] = {
        "cell_type": "code",
        "id": "c1",
        "metadata": {},
        "source": "1 + 1",
        "outputs": [],
        "execution_count": None,
    }
    book = {
        "cells": [cell],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(book))
    edit = {"notebook_path": str(path), "cell_id": "c1", "new_source": "2 + 2"}
    run = claude.run(
        plan(
            together(
                use("ToolSearch", {"query": "select:NotebookEdit"}), use("Read", {"file_path": str(path)})
            ),
            use("NotebookEdit", edit),
        )
    ).check()
    assert run.names() == ["ToolSearch", "Read", "NotebookEdit"]
    assert _sources(path) == ["2 + 2"]
    declared = [
        {function["name"] for tool in request["tools"] for function in tool.get("functionDeclarations", ())}
        for request in google.requests()
        if request.get("tools")
    ]
    assert ["NotebookEdit" in names for names in declared] == [False, True, True]
    assert google.sentinels() == 0


@pytest.mark.parametrize("claude", [NEW, NEW_GEMINI], indirect=True, ids=" ".join)
def test_structured_output(claude: Claude, google: Google) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}, "count": {"type": "integer"}},
        "required": ["colour", "count"],
        "additionalProperties": False,
    }
    wanted = {"colour": "blue", "count": 3}
    run = claude.run(use("StructuredOutput", wanted), "--json-schema", json.dumps(schema)).check()
    assert [call["input"] for call in run.calls()] == [wanted]
    assert run.events[-1]["structured_output"] == wanted
    assert google.sentinels() == 0


def _sources(path: Path) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(path.read_text())["cells"]]
