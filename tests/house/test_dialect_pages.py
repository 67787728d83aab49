"""The pages that say what becomes of a request are what the translation does."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.house.dialects import amazonq, anthropic, bedrock, gemini, openai_chat, openai_responses
from tests.house.dialects.field_table import Page, missing, render

FOLDER = Path(__file__).parents[2] / "docs" / "dialects"
PAGES = [module.PAGE for module in (anthropic, openai_chat, openai_responses, gemini, bedrock, amazonq)]
MARKS = re.compile(r"(<!-- fields:.*?-->\n).*?(<!-- /fields -->)", re.DOTALL)
WORDS = {"kept", "changed", "dropped", "refused", "used", "tolerated"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.file)
def test_the_page_is_what_the_translation_does(page: Page) -> None:
    file = FOLDER / page.file
    text = file.read_text("utf-8") if file.exists() else ""
    rendered = render(page)
    table = rendered[rendered.index("| field |") :]
    wanted = MARKS.sub(lambda found: f"{found[1]}{table}{found[2]}", text) if MARKS.search(text) else rendered
    if os.environ.get("DRAGOMAN_BLESS"):
        file.write_text(wanted, "utf-8")
    assert wanted == text or os.environ.get("DRAGOMAN_BLESS")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.file)
def test_no_field_that_the_code_reads_is_left_out(page: Page) -> None:
    assert missing(page) == []


def test_the_words_of_the_tables_are_explained() -> None:
    explained = set(re.findall(r"^\| \*\*(\w+)\*\*", (FOLDER / "index.md").read_text("utf-8"), re.MULTILINE))
    assert explained == WORDS
    for page in PAGES:
        assert set(re.findall(r"^\| `[^`]+` \| `[^`]*` \| (\w+) \|", render(page), re.MULTILINE)) <= WORDS
