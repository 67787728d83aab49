"""How it looks: readable for everybody, in both themes, on a phone; and the pictures of the documentation.

DRAGOMAN_SCREENSHOTS=1 writes them to docs/images; they are looked at before they are committed.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PATIENCE_MS, SETTINGS, Open
from tests.browser.ledger_builder import make_records, write_past
from tests.browser.sdk_conversations import SESSION, perform
from tests.browser.test_dashboard import await_rows, open_answer
from tests.e2e.clients import INSTALL_S, install
from tests.e2e.gateway import GATEWAY_KEY, Gateway

pytestmark = [pytest.mark.browser, pytest.mark.timeout(INSTALL_S)]
expect.set_options(timeout=PATIENCE_MS)

AXE = "4.14.0"
IMAGES = Path(__file__).parents[2] / "docs" / "images"
VIEWS = (
    "login",
    "traffic",
    "conversation",
    "stages",
    "notes",
    "replay",
    "help",
    "sessions",
    "tools",
    "models",
    "cost",
)
PHONE = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory, google: Any) -> Iterator[Gateway]:
    """Four weeks of traffic, and today's conversations on top of it."""
    home = tmp_path_factory.mktemp("lived") / "home"
    now_s, chance = time.time(), random.Random(3)
    hour = [now_s - 20 - chance.random() * 3600 for _ in range(240)]
    month = [now_s - 3600 - chance.random() ** 1.2 * 27 * 86_400 for _ in range(5_000)]
    write_past(home, list(make_records(sorted([*month, *hour]), sessions=7)))
    limits = '{"day": {"requests": 400, "usd": 5.0}}'
    gateway = Gateway(home, google.url, **SETTINGS, LIMITS_KEY=limits)
    gateway.start()
    perform(gateway.url)
    await_rows(gateway, 5, SESSION)  # what was said last is written last
    yield gateway
    gateway.stop()


REQUEST = ("conversation", "stages", "notes", "replay")


def go(page: Page, gateway: Gateway, view: str) -> None:
    """To a view, in the state in which it is looked at; all of them in the order of `VIEWS` on one page."""
    if view == "login":
        page.get_by_label("Gateway key").wait_for()
        return
    if page.get_by_label("Gateway key").count():
        page.get_by_label("Gateway key").fill(GATEWAY_KEY)
        page.get_by_role("button", name="Open").click()
        page.locator("nav").wait_for()
    if view in REQUEST:
        _go_into_request(page, gateway, view)
    elif view == "help":
        page.keyboard.press("?")
        page.get_by_role("dialog").wait_for()
    else:
        page.keyboard.press("Escape")
        page.goto(f"{gateway.url}/dashboard#/{view}")
        page.locator(".rows .row, tbody tr").first.wait_for()
    page.wait_for_timeout(200)


def _go_into_request(page: Page, gateway: Gateway, view: str) -> None:
    if not page.locator(".request").count():
        page.goto(f"{gateway.url}/dashboard#/traffic")
        open_answer(page)
    if view != "replay":
        page.get_by_role("tab", name=view.capitalize()).click()
        return
    page.get_by_role("button", name="Replay").click()
    page.locator("#replay-model").fill("gemini-3.1-pro-preview")
    page.get_by_role("button", name="Send again").click()
    page.locator(".diff").first.wait_for()


@pytest.fixture(scope="session")
def axe() -> str:
    return (
        install(f"axe-core-{AXE}", f"axe-core@{AXE}") / "node_modules" / "axe-core" / "axe.min.js"
    ).read_text()


@pytest.mark.parametrize("way", ["light", "dark", "phone"])
def test_axe_has_nothing_serious_to_say_of_any_view(
    lived_in: Gateway, open_page: Open, axe: str, way: str
) -> None:
    page = open_page(lived_in, login=False, bypass_csp=True, **PICTURES[way][1])
    page.evaluate(axe)
    found: dict[str, list[str]] = {}
    looked = 0
    for view in VIEWS:
        go(page, lived_in, view)
        report = page.evaluate("axe.run(document)")
        looked += len(report["passes"])
        found[view] = [
            f"{one['impact']} {one['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
            for one in report["violations"]
            if one["impact"] in ("serious", "critical")
            for node in one["nodes"][:3]
        ]
    assert looked > 10 * len(VIEWS)
    assert {view: problems for view, problems in found.items() if problems} == {}


def test_on_a_phone_nothing_is_wider_than_the_screen(lived_in: Gateway, open_page: Open) -> None:
    page = open_page(lived_in, login=False, **PHONE)
    for view in VIEWS:
        if view == "help":  # there are no keys
            continue
        go(page, lived_in, view)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, view
        assert page.evaluate("document.documentElement.clientWidth") == 390, view
        for link in page.locator("nav a").all():
            box = link.bounding_box()
            assert box
            assert 0 <= box["x"] <= 390 - box["width"], view
            assert box["height"] >= 36, view


#: For each way to look at it, the views that are shown in the documentation.
PICTURES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "light": (("traffic", "conversation", "stages", "tools", "models"), {"color_scheme": "light"}),
    "dark": (("traffic", "conversation", "replay", "tools", "cost"), {"color_scheme": "dark"}),
    "phone": (("traffic", "conversation"), {**PHONE, "color_scheme": "light"}),
}


@pytest.mark.parametrize("way", PICTURES)
def test_the_pictures_of_the_documentation(
    lived_in: Gateway, open_page: Open, tmp_path: Path, way: str
) -> None:
    views, options = PICTURES[way]
    kept = bool(os.environ.get("DRAGOMAN_SCREENSHOTS"))
    page = open_page(lived_in, **options)
    for view in views:
        go(page, lived_in, view)
        if view == "stages":
            page.get_by_title("Go to the next note").click()
        page.mouse.move(0, 0)
        page.wait_for_timeout(2_000 if kept else 0)  # nothing flashes any more
        path = (IMAGES if kept else tmp_path) / f"dashboard-{view}-{way}.png"
        page.screenshot(path=path)
        assert path.stat().st_size > 20_000
