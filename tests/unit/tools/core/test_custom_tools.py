"""Tools of the user's own: from their folder, never from the project, with the place of a mistake."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dragoman.tools import Context, InvalidTool, ToolDefinition, custom_tools, tool
from dragoman.tools.custom_tools import load_tools

GREET = "from dragoman import tool\n\n\n@tool(risk='read')\ndef greet(name: str) -> str:\n    return 'hi ' + name\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "tools"
    made.mkdir(mode=0o700)
    return made


def test_decorated_functions_of_every_file_are_tools(folder: Path) -> None:
    (folder / "b.py").write_text(GREET)
    (folder / "a.py").write_text(
        "from dragoman import ToolDefinition, tool\n"
        "from os.path import join\n"
        "declared = ToolDefinition(name='declared')\n"
        "def helper() -> None: ...\n"
        "@tool\n"
        "def first(a: int) -> int:\n    return a\n"
    )
    (folder / "_private.py").write_text("raise SystemExit")
    (folder / "notes.txt").write_text("no code")
    found = load_tools(folder)
    assert [one.name for one in found] == ["declared", "first", "greet"]
    assert found[2].execute is not None
    assert found[2].execute({"name": "Ann"}, Context()) == "hi Ann"
    assert found[2].risk == "read"


def test_types_of_the_file_itself_can_be_annotations(folder: Path) -> None:
    (folder / "typed.py").write_text(
        "from __future__ import annotations\n"
        "import dataclasses\n"
        "from dragoman import tool\n"
        "@dataclasses.dataclass\n"
        "class Point:\n    x: int\n"
        "@tool\n"
        "def put(point: Point) -> int:\n    return point.x\n"
    )
    (definition,) = load_tools(folder)
    assert definition.execute is not None
    assert definition.execute({"point": {"x": 4}}, Context()) == 4


def test_a_tool_that_is_only_imported_is_not_registered_twice(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.py").write_text(GREET)
    (folder / "b.py").write_text("from dragoman_tools_a import greet\n")
    assert [one.name for one in load_tools(folder)] == ["greet"]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("x = 1\nif x\n", 2, "SyntaxError: expected ':'"),
        ("x = 1\n\n1 / 0\n", 3, "ZeroDivisionError: division by zero"),
        ("import not_there_at_all\n", 1, "ModuleNotFoundError"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        ("def deep():\n    raise ValueError('x')\ndeep()\n", 2, "ValueError: x"),
        ("from dragoman import tool\n@tool\ndef bad(a) -> None: ...\n", 2, "bad.a: needs an annotation"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(folder: Path, text: str, line: int, words: str) -> None:
    file = folder / "mine.py"
    file.write_text(text)
    with pytest.raises(InvalidTool) as caught:
        load_tools(folder)
    assert caught.value.where == f"{file}:{line}"
    assert words in caught.value.message
    assert "dragoman_tools_mine" not in sys.modules


def test_a_mistake_without_a_line_is_told_with_the_file(folder: Path) -> None:
    (folder / "mine.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(InvalidTool, match=r"mine\.py"):
        load_tools(folder)


def test_two_tools_of_one_name_are_told_apart_by_their_places(folder: Path) -> None:
    (folder / "a.py").write_text(GREET)
    (folder / "b.py").write_text(GREET)
    with pytest.raises(InvalidTool) as caught:
        load_tools(folder)
    assert str(folder / "a.py:4") in str(caught.value)
    assert caught.value.where == str(folder / "b.py:4")


def test_code_never_comes_from_the_working_directory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(folder.parent)
    with pytest.raises(InvalidTool, match="whole path"):
        load_tools(Path("tools"))


def test_what_others_can_write_is_not_run(folder: Path) -> None:
    file = folder / "a.py"
    file.write_text(GREET)
    file.chmod(0o666)
    with pytest.raises(InvalidTool, match=r"a\.py: others could put code there"):
        load_tools(folder)
    file.chmod(0o644)
    folder.chmod(0o777)
    with pytest.raises(InvalidTool, match="tools: others could put code there"):
        load_tools(folder)
    folder.chmod(0o755)
    assert len(load_tools(folder)) == 1


def test_a_file_of_somebody_else_is_not_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.py").write_text(GREET)
    monkeypatch.setattr(custom_tools, "_trusted_owners", lambda: (54321,))
    with pytest.raises(InvalidTool, match="others could put code there"):
        load_tools(folder)


def test_where_owners_mean_nothing_none_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.py").write_text(GREET)
    folder.chmod(0o777)
    monkeypatch.setattr(custom_tools, "_HAS_FILE_OWNERS", False)
    assert len(load_tools(folder)) == 1


def test_a_folder_that_is_not_there_matters_only_if_it_was_asked_for(tmp_path: Path) -> None:
    assert load_tools(tmp_path / "none") == []
    with pytest.raises(InvalidTool, match="there is no such folder"):
        load_tools(tmp_path / "none", must_exist=True)


def test_a_home_is_found_by_its_sign(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "a.py").write_text(GREET)
    monkeypatch.setenv("HOME", str(folder.parent))
    assert len(load_tools(Path("~/tools"))) == 1


@tool
def offered() -> str:
    return "from a package"


def offer(monkeypatch: pytest.MonkeyPatch, load: Callable[[], Any]) -> None:
    class Entry:
        name, value = "mine", "package:thing"

        def load(self) -> Any:
            return load()

    asked: dict[str, list[Entry]] = {custom_tools.ENTRY_POINTS: [Entry()]}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: asked[group])


@pytest.mark.parametrize("thing", ["function", "definition", "list", "module"])
def test_packages_offer_tools_in_every_shape(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, thing: str
) -> None:
    module = ModuleType(__name__)
    vars(module)["offered"] = offered
    things: dict[str, Any] = {
        "function": offered,
        "definition": ToolDefinition(name="offered"),
        "list": [offered],
        "module": module,
    }
    offer(monkeypatch, lambda: things[thing])
    assert [one.name for one in load_tools(tmp_path)] == ["offered"]


def test_a_package_that_offers_something_else_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, lambda: 5)
    with pytest.raises(InvalidTool, match="entry point mine = package:thing: must be a function"):
        load_tools(tmp_path)

    def broken() -> None:
        raise ImportError("no such thing")

    offer(monkeypatch, broken)
    with pytest.raises(InvalidTool, match="entry point mine = package:thing: ImportError: no such thing"):
        load_tools(tmp_path)
