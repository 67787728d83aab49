"""The page's files obey its own policy: nothing inline, nothing from elsewhere, no markup made of text."""

from __future__ import annotations

import re

import pytest

from dragoman.gateway.dashboard.static_files import INDEX_FILE, SAFE_HEADERS, load_static_files

FILES = load_static_files()
TEXTS = {name: file.data.decode() for name, file in FILES.items()}
SCRIPTS = {name: text for name, text in TEXTS.items() if name.endswith(".js")}


def test_the_policy_is_strict() -> None:
    policy = dict(SAFE_HEADERS)["content-security-policy"]
    assert policy.startswith(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    )
    assert "unsafe" not in policy


def test_every_file_has_a_type_and_its_own_tag() -> None:
    assert len({file.tag for file in FILES.values()}) == len(FILES)
    assert all(file.tag.startswith('"') and file.tag.endswith('"') for file in FILES.values())
    assert {name.rpartition(".")[2] for name in FILES} == {"html", "css", "js", "svg"}


def test_the_page_has_nothing_inline_and_nothing_from_elsewhere() -> None:
    page = TEXTS[INDEX_FILE]
    assert not re.search(r"<style|style=|\son\w+=|javascript:|https?://|//\w", page)
    assert all(src for src in re.findall(r"<script([^>]*)>", page) if "src=" in src)
    named = re.findall(r'(?:href|src)="dashboard/static/([^"]+)"', page)
    assert named
    assert set(named) <= set(FILES)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_or_code_of_text(name: str) -> None:
    forbidden = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|srcdoc"
    )
    assert not re.search(forbidden, SCRIPTS[name])


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_import_is_a_file_that_is_there(name: str) -> None:
    assert set(re.findall(r'from "\./([^"]+)"', SCRIPTS[name])) <= set(FILES)


@pytest.mark.parametrize("name", [name for name in TEXTS if not name.endswith(".svg")])
def test_nothing_is_loaded_from_elsewhere(name: str) -> None:
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", TEXTS[name]) == []


@pytest.mark.parametrize("name", TEXTS)
def test_a_file_is_short(name: str) -> None:
    assert TEXTS[name].count("\n") <= 400
