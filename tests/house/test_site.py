"""The site has every page, and nothing of it comes from anybody else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import yaml

from deploy.site import on_page_markdown

ROOT = Path(__file__).parents[2]
SITE: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))


def pages(nav: object) -> list[str]:
    match nav:
        case str():
            return [nav]
        case dict():
            return [page for one in nav.values() for page in pages(one)]
        case list():
            return [page for one in nav for page in pages(one)]
    raise TypeError(nav)


def test_every_page_is_in_the_navigation_once() -> None:
    there = sorted(str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md"))
    assert sorted(pages(SITE["nav"])) == there


def test_every_decision_is_in_the_list() -> None:
    text = (ROOT / "docs/decisions/index.md").read_text("utf-8")
    assert [
        page.name for page in (ROOT / "docs/decisions").glob("0*.md") if f"({page.name})" not in text
    ] == []


def test_nothing_is_fetched_from_anybody() -> None:
    """Fonts, diagrams and social cards of the theme ask others, at build time or in the reader's browser."""
    assert SITE["theme"]["font"] is False
    assert SITE["plugins"] == ["search"]
    assert not {"extra_javascript", "extra_css", "extra"} & SITE.keys()
    assert SITE["strict"] is True


def test_files_of_the_repository_are_named_instead_of_linked() -> None:
    def shown(markdown: str, page: str) -> str:
        return on_page_markdown(markdown, SimpleNamespace(file=SimpleNamespace(src_uri=page)))

    assert shown("[deploy/](../deploy) has", "scale.md") == "`deploy` has"
    assert shown("the [README](../README.md#x)", "openai.md") == "the README (`README.md`)"
    assert shown("[here](../how-to.md)", "dialects/index.md") == "[here](../how-to.md)"
    assert shown("[code](../../src/a.py)", "dialects/index.md") == "code (`src/a.py`)"
