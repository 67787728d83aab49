"""The emulator's pages as the tests read them: blocks that run, tables that are made or checked."""

from __future__ import annotations

import os
import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
#: A block, and the file it is if the line before it names one.
_BLOCK = re.compile(r"(?:`([\w.]+)`:\n\n)?```(\w+)\n(.*?)```", re.DOTALL)
_BLESS = bool(os.environ.get("DRAGOMAN_BLESS"))


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """The name, if it has one, and the text of each block in this language."""
    found = _BLOCK.findall(page.read_text("utf-8"))
    return [(name, text) for name, kind, text in found if kind == language]


def section(page: Path, mark: str) -> str:
    """What stands between `<!-- mark: … -->` and `<!-- /mark -->`."""
    found = _marks(mark).search(page.read_text("utf-8"))
    assert found is not None, f"{page.name} has no section {mark}"
    return found[2]


def rows(page: Path, mark: str) -> list[tuple[str, str]]:
    """The rows of the table of two columns in a section: what the first has in backticks, and the second."""
    return re.findall(r"^\| `(.+?)` \| (.*) \|$", section(page, mark), re.MULTILINE)


def check_or_bless_section(page: Path, mark: str, wanted: str) -> None:
    """The section is what it should be; DRAGOMAN_BLESS=1 makes it so."""
    text = page.read_text("utf-8")
    assert _marks(mark).search(text), f"{page.name} has no section {mark}"
    check_or_bless(page, _marks(mark).sub(lambda found: f"{found[1]}\n{wanted}\n{found[3]}", text))


def check_or_bless(file: Path, wanted: str) -> None:
    if _BLESS:
        file.write_text(wanted, "utf-8")
    assert file.read_text("utf-8") == wanted, "run again with DRAGOMAN_BLESS=1"


def _marks(mark: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- {mark}:.*?-->\n)(.*?)(<!-- /{mark} -->)", re.DOTALL)
