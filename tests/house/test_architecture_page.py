"""docs/architecture.md cannot drift: every module, folder and function on the page is in the source.

Its glossary is checked in `test_conventions`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "dragoman"
TEXT = (ROOT / "docs" / "architecture.md").read_text("utf-8")
#: `path.py` or `path.py:name`, relative to the source, or to the repository for tests.
CITED = sorted(set(re.findall(r"`([\w/]+/\w+\.py|errors\.py|notes\.py)(?::(\w+))?`", TEXT)))
#: Not packages of Python code on their own.
SKIPPED_FOLDERS = {"__pycache__"}


def module(path: str) -> Path:
    return (ROOT if path.startswith("tests/") else SOURCE) / path


def defines(path: str, name: str) -> bool:
    pattern = rf"^ *(?:async def|def|class|type) {name}\b|^{name}\b.* = "
    return re.search(pattern, module(path).read_text("utf-8"), re.MULTILINE) is not None


@pytest.mark.parametrize(("path", "name"), CITED, ids=[f"{path}:{name}" for path, name in CITED])
def test_every_module_and_name_of_the_page_exists(path: str, name: str) -> None:
    assert module(path).exists()
    assert not name or defines(path, name)


def test_the_folder_table_has_every_package() -> None:
    listed = set(re.findall(r"^\| `([\w/]+)` \|", TEXT.partition("## Folders")[2], re.MULTILINE))
    packages = {path.name for path in SOURCE.iterdir() if path.is_dir()} - SKIPPED_FOLDERS
    assert packages <= listed
    assert [folder for folder in listed if not (SOURCE / folder).is_dir()] == []
