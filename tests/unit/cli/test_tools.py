"""`dragoman tools`: what an agent could do here, and one tool run by hand, with exit codes for scripts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli.conftest import Dragoman


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    (made / "a.txt").write_text("hello\n")
    return made


def own_tool(home: Path, text: str) -> None:
    (home / "tools").mkdir(parents=True, mode=0o700)
    (home / "tools" / "mine.py").write_text(text)


GREET = """
from dragoman import Context, ToolFailed, tool

@tool(risk="read")
def greet(name: str, context: Context) -> dict[str, str]:
    \"\"\"Say hello.

    And mean it.
    \"\"\"
    if name == "nobody":
        raise ToolFailed("there is nobody")
    context.progress("clearing my throat")
    return {"words": f"hello {name}"}
"""


def test_the_list_shows_name_risk_and_description(dragoman: Dragoman, home: Path, project: Path) -> None:
    own_tool(home, GREET)
    done = dragoman("tools", "list", "--root", str(project))
    assert (done.returncode, done.stderr) == (0, "")
    rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    assert rows[0] == ["name", "risk", "description"]
    table = {name: (risk, words) for name, risk, words in rows[1:]}
    assert table["greet"] == ("read", "Say hello.")
    assert table["read_file"][0] == "read"
    assert table["write_file"][0] == "write"
    assert list(table) == sorted(table)


def test_the_list_is_json_for_programs(dragoman: Dragoman, project: Path) -> None:
    tools = json.loads(dragoman("tools", "list", "--json", "--root", str(project)).stdout)
    found = {tool["name"]: tool for tool in tools}
    assert found["read_file"]["schema"]["type"] == "object"
    assert "path" in found["read_file"]["schema"]["properties"]


def test_a_tool_answers_on_stdout_and_tells_progress_beside(
    dragoman: Dragoman, home: Path, project: Path
) -> None:
    own_tool(home, GREET)
    done = dragoman("tools", "call", "greet", '{"name": "Ann"}', "--root", str(project))
    assert (done.returncode, done.stdout) == (0, '{"words":"hello Ann"}\n')
    assert "clearing my throat" in done.stderr
    asked = dragoman("tools", "call", "greet", "-", "--json", stdin=b'{"name": 5}', cwd=project)
    assert asked.returncode == 4
    assert json.loads(asked.stdout)["outcome"] == "invalid"


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (("read_file", '{"path": "a.txt"}'), 0, "hello"),
        (("read_file", '{"path": "../outside"}'), 3, ".."),
        (("read_file", '{"path": "missing"}'), 4, "missing"),
        (("read_file", "{}"), 4, "`path` must be given"),
        (("read_fil", "{}"), 2, "Did you mean read_file?"),
        (("read_file", "nonsense"), 2, "the arguments are not a JSON object"),
        (("read_file", "[]"), 2, "the arguments are not a JSON object"),
        (("write_file", '{"path": "b", "content": "x"}', "--read-only"), 3, "--read-only"),
        (("write_file", '{"path": "b", "content": "x"}'), 0, "b"),
    ],
)
def test_the_exit_code_says_what_happened(
    dragoman: Dragoman, project: Path, argv: tuple[str, ...], code: int, words: str
) -> None:
    done = dragoman("tools", "call", *argv, "--root", str(project))
    assert done.returncode == code, done.stderr
    assert words in (done.stderr if code else done.stdout)


def test_deny_rules_hold_for_everybody(dragoman: Dragoman, project: Path) -> None:
    env = {"DRAGOMAN_TOOLS_DENY": "read_file(*.txt)"}
    done = dragoman("tools", "call", "read_file", '{"path": "a.txt"}', env=env, cwd=project)
    assert done.returncode == 3
    assert "not allowed here (deny rule read_file(*.txt))" in done.stderr


def test_a_call_is_in_the_audit_log(dragoman: Dragoman, home: Path, project: Path) -> None:
    dragoman("tools", "call", "read_file", '{"path": "a.txt"}', cwd=project)
    (line,) = (home / "audit.jsonl").read_text().splitlines()
    entry = json.loads(line)
    assert (entry["tool"], entry["outcome"], entry["caller"]) == ("read_file", "ok", "command line")


def test_mended_arguments_are_told(dragoman: Dragoman, home: Path, project: Path) -> None:
    own_tool(home, "from dragoman import tool\n@tool\ndef add(a: int) -> int:\n    return a + 1\n")
    done = dragoman("tools", "call", "add", '{"a": "1"}', cwd=project)
    assert (done.returncode, done.stdout) == (0, "2\n")
    assert "mended add.a: string to integer" in done.stderr
    strict = dragoman(
        "tools", "call", "add", '{"a": "1"}', cwd=project, env={"DRAGOMAN_STRICT_TOOL_VALIDATION": "1"}
    )
    assert strict.returncode == 4


def test_a_broken_tool_of_ones_own_is_named_with_its_line(
    dragoman: Dragoman, home: Path, project: Path
) -> None:
    own_tool(home, "from dragoman import tool\n\n@tool\ndef bad(*many: int) -> None: ...\n")
    done = dragoman("tools", "list", cwd=project)
    assert done.returncode == 1
    assert f"{home}/tools/mine.py:3" in done.stderr
    assert "cannot fill *many" in done.stderr


def test_a_tools_folder_in_the_project_is_not_run(dragoman: Dragoman, project: Path) -> None:
    own_tool(project, "raise SystemExit('hostile')")
    assert dragoman("tools", "list", cwd=project).returncode == 0
    relative = dragoman("tools", "list", cwd=project, env={"DRAGOMAN_TOOLS_FOLDER": "tools"})
    assert relative.returncode == 1
    assert "whole path" in relative.stderr


def test_a_root_that_is_no_folder_is_wrong_usage(dragoman: Dragoman, project: Path) -> None:
    done = dragoman("tools", "list", "--root", str(project / "a.txt"))
    assert (done.returncode, "is not a folder" in done.stderr) == (2, True)
