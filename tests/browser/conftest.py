"""A real Chromium in front of a real gateway; nothing it does may leave the gateway's own address."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, sync_playwright

from dragoman.emulator.testing import Emulator
from tests.browser.sdk_conversations import acted_google
from tests.e2e.gateway import GATEWAY_KEY, Gateway
from tests.requirements import require_program

_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
PATIENCE_MS = 30_000


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = require_program("chromium", "chromium-browser")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def google() -> Iterator[Emulator]:
    with acted_google() as gemini:
        yield gemini


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, google: Emulator) -> Iterator[Gateway]:
    """With a Google behind it, so that it asks for a key; it captures everything."""
    made = Gateway(tmp_path_factory.mktemp("dashboard") / "home", google.url, **SETTINGS)
    made.start()
    yield made
    made.stop()
    assert "Traceback" not in made.log()


SETTINGS = {
    "OBSERVE_CAPTURE": "all",
    "MODELS_SONNET": "gemini-2.5-flash",
    "MODELS_DEFAULT": "gemini-2.5-flash",
    "UPSTREAM_MAX_WAIT_S": "1",
}


class Witness(msgspec.Struct):
    """What a page did that it should not have."""

    errors: list[str] = []
    strays: list[str] = []
    bodies: list[str] = []


Open = Callable[..., Page]


@pytest.fixture
def witness() -> Iterator[Witness]:
    seen = Witness(errors=[], strays=[], bodies=[])
    yield seen
    assert seen.errors == []
    assert seen.strays == []


@pytest.fixture
def open_page(browser: Browser, witness: Witness) -> Iterator[Open]:
    """A page on a gateway, in a context of its own; every console error and every request elsewhere is noted."""
    contexts: list[BrowserContext] = []

    def open_it(gateway: Gateway, place: str = "", *, login: bool = True, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})  # type: ignore[arg-type]
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        _watch(page, gateway, witness)
        page.goto(f"{gateway.url}/dashboard{place}")
        if login:
            page.get_by_label("Gateway key").fill(GATEWAY_KEY)
            page.get_by_role("button", name="Open").click()
            page.locator("nav").wait_for()
        return page

    yield open_it
    for context in contexts:
        context.close()


def _watch(page: Page, gateway: Gateway, witness: Witness) -> None:
    def console(message: ConsoleMessage) -> None:
        # The first look at a gateway that asks for a key is refused: Chromium writes every refusal into its console.
        if message.type == "error" and "401" not in message.text and "ERR_" not in message.text:
            witness.errors.append(message.text)

    def asked(request: Request) -> None:
        if not request.url.startswith((gateway.url + "/", "data:", "blob:")):
            witness.strays.append(request.url)

    page.on("console", console)
    page.on("pageerror", lambda error: witness.errors.append(str(error)))
    page.on("request", asked)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"
