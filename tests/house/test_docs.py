"""Documentation that cannot drift: examples run, tables are made from the code."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman.config import Config
from dragoman.config.keys import SECRETS, SETTINGS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MARKS = re.compile(r"(<!-- settings:.*?-->\n).*?(<!-- /settings -->)", re.DOTALL)


def test_every_python_block_of_the_library_page_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "library.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    exec(compile("\n".join(blocks), "docs/library.md", "exec"), {})


def test_public_names_are_exactly_what_all_says() -> None:
    for name in dragoman.__all__:
        assert getattr(dragoman, name) is not None
    assert sorted(dragoman._HOME) == sorted(dragoman.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = dragoman.nonsense


@pytest.mark.parametrize(
    "page", sorted(ROOT.glob("*.md")) + sorted(DOCS.rglob("*.md")), ids=lambda page: page.name
)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)#]+)\)", page.read_text("utf-8")):
        if not link.startswith("http"):
            assert (page.parent / link).exists(), link


def test_the_table_of_settings_is_the_code() -> None:
    page = DOCS / "configuration.md"
    text = page.read_text("utf-8")
    wanted = MARKS.sub(lambda found: f"{found[1]}{_settings_table()}{found[2]}", text)
    if os.environ.get("DRAGOMAN_BLESS"):
        page.write_text(wanted, "utf-8")
    assert wanted == text or os.environ.get("DRAGOMAN_BLESS")


def _settings_table() -> str:
    reasons = _reasons()
    rows = [
        f"| `{key}` | `{setting.env}` | {_default(key)} | {reasons.get(key.rpartition('.')[2], '')} |"
        for key, setting in SETTINGS.items()
    ]
    return "\n".join(["| setting | environment | default | |", "|---|---|---|---|", *rows, ""])


def _default(key: str) -> str:
    value: Any = Config()
    for name in key.split("."):
        value = getattr(value, name)
    return "" if key in SECRETS or value in ("", (), {}) else f"`{msgspec.json.encode(value).decode()}`"


def _reasons() -> dict[str, str]:
    folder = ROOT / "src/dragoman/config"
    source = "".join((folder / name).read_text("utf-8") for name in ("model.py", "tools.py"))
    found = re.findall(r"^    (\w+): .*?=.*?  # (.*)$", source, re.MULTILINE)
    return {name: re.sub(r" \(pains? [^)]*\)", "", reason) for name, reason in reversed(found)}
