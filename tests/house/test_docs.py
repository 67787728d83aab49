"""Documentation that cannot drift: examples run, tables are made from the code."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dragoman
from dragoman.config import Config, Profile
from dragoman.config.settings import SECRETS, SETTINGS
from dragoman.config.template import setting_comments

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PROFILE_MARKS = re.compile(r"(<!-- profile:.*?-->\n).*?(<!-- /profile -->)", re.DOTALL)
MARKS = re.compile(r"(<!-- settings:.*?-->\n).*?(<!-- /settings -->)", re.DOTALL)


@pytest.mark.parametrize(("page", "least"), [("library.md", 4), ("session-tools.md", 1)])
def test_every_python_block_of_the_page_runs(page: str, least: int) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= least
    exec(compile("\n".join(blocks), f"docs/{page}", "exec"), {})


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


def test_the_table_of_profiles_is_the_code() -> None:
    page = DOCS / "gateway-tools.md"
    text = page.read_text("utf-8")
    source = (ROOT / "src/dragoman/config/tools.py").read_text("utf-8")
    reasons = dict(re.findall(r"^    (\w+): .*?=.*?  # (.*)$", source, re.MULTILINE))
    defaults = msgspec.to_builtins(Profile())
    rows = [f"| `{name}` | {_shown(value)} | {reasons[name]} |" for name, value in defaults.items()]
    table = "\n".join(["| setting | default | |", "|---|---|---|", *rows, ""])
    wanted = PROFILE_MARKS.sub(lambda found: f"{found[1]}{table}{found[2]}", text)
    if os.environ.get("DRAGOMAN_BLESS"):
        page.write_text(wanted, "utf-8")
    assert wanted == text or os.environ.get("DRAGOMAN_BLESS")


def _shown(value: Any) -> str:
    return "" if value in ("", [], {}) else f"`{msgspec.json.encode(value).decode()}`"


def _settings_table() -> str:
    why = setting_comments()
    rows = [
        f"| `{key}` | `{setting.env}` | {_default(key)} | {why[key]} |" for key, setting in SETTINGS.items()
    ]
    return "\n".join(["| setting | environment | default | |", "|---|---|---|---|", *rows, ""])


def _default(key: str) -> str:
    value: Any = Config()
    for name in key.split("."):
        value = getattr(value, name)
    return "" if key in SECRETS or value in ("", (), {}) else f"`{msgspec.json.encode(value).decode()}`"


def test_the_readme_shows_the_agent_and_the_dashboard_in_both_themes_and_on_a_phone() -> None:
    shown = set(re.findall(r"docs/images/([\w-]+\.\w+)", (ROOT / "README.md").read_text("utf-8")))
    views = {"chat.svg", "dashboard-traffic-phone.png", "dashboard-conversation-phone.png"}
    views |= {
        f"dashboard-{view}-{theme}.png"
        for view in ("traffic", "conversation", "tools")
        for theme in ("light", "dark")
    }
    assert views <= shown


def test_every_picture_is_shown_somewhere_and_every_picture_shown_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"images/([\w-]+\.\w+)", page.read_text("utf-8"))}
    kept = {path.name for path in (ROOT / "docs" / "images").iterdir()}
    assert named - kept == set()
    assert {name for name in kept - named if not name.startswith("performance")} == set()
