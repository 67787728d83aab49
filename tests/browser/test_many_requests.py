"""Ten thousand requests in the list: it opens, scrolls, filters and goes on living, with few rows in the page."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE_MS, SETTINGS, Open
from tests.browser.ledger_builder import make_records, write_past
from tests.browser.sdk_conversations import summarise_with_genai
from tests.e2e.gateway import Gateway

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
expect.set_options(timeout=PATIENCE_MS)

MANY = 10_000
MOST_NODES = 2_000
MOST_ROWS = 60


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory, google: Any) -> Iterator[Gateway]:
    home = tmp_path_factory.mktemp("busy") / "home"
    now_s = time.time()
    write_past(home, list(make_records([now_s - 7.0 * number for number in range(MANY)])))
    gateway = Gateway(home, google.url, **SETTINGS)
    gateway.start()
    yield gateway
    gateway.stop()


def bounded(page: Page) -> None:
    assert page.locator(".rows .row").count() <= MOST_ROWS
    assert page.evaluate("document.querySelectorAll('*').length") <= MOST_NODES


def to_the_end(page: Page) -> None:
    """Scroll until no older request comes."""
    for _ in range(60):
        page.locator(".list").evaluate("list => list.scrollTop = list.scrollHeight")
        page.wait_for_timeout(150)
        bounded(page)
        if "newest" not in page.locator(".count").inner_text():
            return
    raise AssertionError("the end of the list was not reached")


def test_all_of_them_can_be_reached_and_few_are_in_the_page(busy: Gateway, open_page: Open) -> None:
    page = open_page(busy)
    expect(page.locator(".count")).to_have_text("newest 500")
    to_the_end(page)
    expect(page.locator(".count")).to_have_text(f"{MANY:,} requests")
    last = page.locator(f'.row[aria-rowindex="{MANY + 1}"]')
    page.locator(".list").evaluate("list => list.scrollTop = list.scrollHeight")
    expect(last).to_be_visible()
    place = page.locator(".list").evaluate("list => list.scrollTop")

    summarise_with_genai(busy.url)  # something new above: whoever reads down here stays here
    expect(page.locator(".count")).to_have_text(f"{MANY + 1:,} requests")
    expect(page.locator(f'.row[aria-rowindex="{MANY + 2}"]')).to_be_visible()
    assert page.locator(".list").evaluate("list => list.scrollTop") >= place
    bounded(page)

    page.get_by_label("Status").select_option("failed")
    expect(page.locator(".count")).to_contain_text(f"of the {MANY + 1:,} requests")
    expect(page.locator(".rows .row:not(.bad)")).to_have_count(0)
    assert page.locator(".rows .row.bad").count() > 10
    bounded(page)


def test_a_rare_one_is_found_among_those_that_were_not_loaded_yet(busy: Gateway, open_page: Open) -> None:
    page = open_page(busy)
    expect(page.locator(".count")).to_have_text("newest 500")
    page.get_by_label("Search requests").fill(f"req_past{MANY - 1:012d}")
    expect(page.locator(".rows .row")).to_have_count(1)
    bounded(page)


def test_the_keyboard_goes_through_them(busy: Gateway, open_page: Open) -> None:
    page = open_page(busy)
    page.locator(".rows .row").first.wait_for()
    for _ in range(60):
        page.keyboard.press("j")
    expect(page.locator('.row[aria-current="true"]')).to_have_attribute("aria-rowindex", "61")
    expect(page.locator('.row[aria-current="true"]')).to_be_in_viewport()
    bounded(page)


@pytest.mark.parametrize("view", ["sessions", "tools", "models", "cost"])
def test_the_sums_of_so_many_are_shown(busy: Gateway, open_page: Open, view: str) -> None:
    page = open_page(busy, f"#/{view}")
    expect(page.locator("tbody tr").first).to_be_visible()
    assert page.locator("tbody tr").count() <= 200
    everything = page.get_by_role("button", name="Show all")
    if view == "sessions":
        everything.click()
        expect(page.locator("tbody tr")).to_have_count(240)
    expect(everything).to_be_hidden()
