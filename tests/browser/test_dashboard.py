"""The dashboard in a real Chromium, while real clients talk through a real gateway."""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import requests
from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import TimeoutError as TooLate

from tests.browser.conftest import PATIENCE_MS, SETTINGS, Open, Witness
from tests.browser.sdk_conversations import SESSION, fix_the_build, perform, summarise_with_genai
from tests.e2e.gateway import GATEWAY_KEY, Gateway

pytestmark = [pytest.mark.browser, pytest.mark.timeout(300)]
expect.set_options(timeout=PATIENCE_MS)

XSS = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
CANARY = "AIzaSyD-canary-canary-canary-canary-0"


@pytest.fixture(scope="module")
def played(gateway: Gateway) -> Gateway:
    """The gateway, once everybody has talked through it and everything is written down."""
    perform(gateway.url)
    await_rows(gateway, 11)
    return gateway


def await_rows(gateway: Gateway, many: int, session: str = "") -> list[dict[str, Any]]:
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while True:
        url = f"{gateway.url}/dashboard/api/requests?session={session}"
        rows: list[dict[str, Any]] = requests.get(url, headers={"x-api-key": GATEWAY_KEY}, timeout=30).json()[
            "rows"
        ]
        if len(rows) >= many:
            return rows
        assert time.monotonic() < deadline, rows
        time.sleep(0.1)


def rows_of(page: Page) -> Any:
    return page.locator(".rows .row")


def open_answer(page: Page) -> None:
    """The last answer of the coding agent."""
    page.get_by_label("Search requests").fill(f"claude-sonnet {SESSION}")
    rows_of(page).first.click()
    page.locator(".turns").wait_for()


def go_to(page: Page, key: str, title: str) -> None:
    """`g` and a letter soon behind it: on a busy machine it may take more than one try to be quick enough."""
    heading = page.get_by_role("heading", name=title, level=1)
    for _ in range(10):
        page.keyboard.press("g")
        page.keyboard.press(key)
        with suppress(TooLate):
            heading.wait_for(timeout=PATIENCE_MS / 10)
            return
    expect(heading).to_be_visible()


def test_login_wrong_right_and_out(gateway: Gateway, open_page: Open) -> None:
    page = open_page(gateway, login=False)
    key = page.get_by_label("Gateway key")
    key.fill("wrong")
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_role("alert")).to_have_text("This is no admin’s gateway key.")
    key.fill(GATEWAY_KEY)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Traffic")).to_be_visible()
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert GATEWAY_KEY not in json.dumps(page.context.storage_state())
    page.reload()
    expect(page.get_by_role("heading", name="Traffic")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Gateway key")).to_be_visible()
    assert page.context.cookies() == []


def test_requests_appear_while_a_client_works(gateway: Gateway, open_page: Open) -> None:
    page = open_page(gateway)
    expect(page.get_by_text("Live", exact=True)).to_be_visible()
    before = rows_of(page).count()
    fix_the_build(gateway.url)
    expect(rows_of(page).filter(has_text="Edit").first).to_be_visible()
    expect(rows_of(page)).to_have_count(before + 5)
    summarise_with_genai(gateway.url)
    expect(rows_of(page).first).to_contain_text("Google GenAI SDK")
    page.get_by_label("Search requests").fill("nothing like this")
    expect(page.get_by_text("Nothing fits these filters")).to_be_visible()


def test_a_request_can_be_read(played: Gateway, open_page: Open) -> None:
    page = open_page(played)
    open_answer(page)
    turns = page.locator(".turn")
    expect(turns.first).to_contain_text("The invoice tests fail in CI")
    expect(page.locator(".call").filter(has_text="pytest -q").first).to_contain_text("AssertionError")
    expect(turns.last).to_contain_text("ROUND_HALF_EVEN")
    expect(turns.last).to_contain_text("this answer")
    page.get_by_text("Thinking").first.click()
    expect(page.get_by_text("I should run the tests first")).to_be_visible()
    page.get_by_text("5 tools declared").click()
    expect(page.get_by_text("Runs a command in the project's shell")).to_be_visible()


def test_the_stages_stand_beside_each_other_with_notes_at_their_places(
    played: Gateway, open_page: Open
) -> None:
    page = open_page(played)
    open_answer(page)
    page.get_by_role("tab", name="Stages").click()
    expect(page.locator(".stage h3")).to_have_text(
        ["1The client asked", "2Google was asked", "3Google answered", "4The client got"]
    )
    noted = page.locator('[data-stage="asked"] .jline.noted')
    expect(noted).to_contain_text("mcp__ci server__rerun job")
    expect(noted.locator(".note")).to_contain_text("renamed")
    first, second = (page.locator(".stage").nth(index).bounding_box() for index in (0, 1))
    assert first
    assert second
    assert (first["y"], first["x"] < second["x"]) == (second["y"], True)
    fold = page.locator('[data-stage="request"] .fold').first
    expect(page.locator('[data-stage="request"]')).to_contain_text('"contents"')
    fold.click()
    expect(page.locator('[data-stage="request"] .jinside').first).to_be_hidden()
    page.get_by_role("tab", name="Notes").click()
    page.get_by_title("Show it at its place").first.click()
    expect(noted).to_be_in_viewport()


def test_copy_puts_a_stage_on_the_clipboard(played: Gateway, open_page: Open) -> None:
    page = open_page(played, permissions=["clipboard-read", "clipboard-write"])
    open_answer(page)
    page.get_by_role("tab", name="Stages").click()
    page.locator('[data-stage="request"]').get_by_role("button", name="Copy").click()
    expect(page.locator('[data-stage="request"]').get_by_text("Copied")).to_be_visible()
    assert "contents" in json.loads(page.evaluate("navigator.clipboard.readText()"))


def test_filters(played: Gateway, open_page: Open) -> None:
    page = open_page(played)
    rows = rows_of(page)
    page.get_by_label("Tool").select_option("get_order")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Status").select_option("failed")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("rate limit")
    page.get_by_label("Status").select_option("")
    page.get_by_label("Client").select_option("Google GenAI SDK")
    expect(rows.first).to_contain_text("gemini-2.5-pro")
    page.get_by_label("Client").select_option("")
    page.get_by_label("Dialect").select_option("openai_chat")
    expect(rows).to_have_count(4)
    page.get_by_label("Search requests").fill("search_flights")
    expect(rows).to_have_count(1)


def test_sessions_lead_to_their_requests(played: Gateway, open_page: Open) -> None:
    page = open_page(played, "#/sessions")
    page.get_by_role("link", name=re.compile("^4be0a7c2")).first.click()
    expect(page.get_by_text(re.compile("session 4be0"))).to_be_visible()
    expect(rows_of(page).first).to_contain_text("Claude Code")
    assert all("Claude Code" in text for text in rows_of(page).all_inner_texts())


def test_everything_with_the_keyboard(played: Gateway, open_page: Open) -> None:
    page = open_page(played)
    rows_of(page).first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(rows_of(page).first).to_have_attribute("aria-current", "true")
    page.keyboard.press("Enter")
    expect(page.get_by_role("tab", name="Conversation")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("2")
    expect(page.get_by_role("tab", name="Stages")).to_have_attribute("aria-selected", "true")
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Traffic")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_label("Search requests")).to_be_focused()
    page.keyboard.type("j?")
    expect(page.get_by_label("Search requests")).to_have_value("j?")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("next, previous request")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    for key, title in (
        ("s", "Sessions"),
        ("o", "Tools"),
        ("m", "Models & keys"),
        ("c", "Cost"),
        ("t", "Traffic"),
    ):
        go_to(page, key, title)


def test_light_and_dark_by_the_system_and_by_choice(played: Gateway, open_page: Open) -> None:
    page = open_page(played, color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.keyboard.press("d")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
    page.reload()
    page.locator("nav").wait_for()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_a_replay_and_its_diff(played: Gateway, open_page: Open) -> None:
    page = open_page(played)
    open_answer(page)
    page.get_by_role("button", name="Replay").click()
    page.get_by_role("button", name="Send again").click()
    expect(page.get_by_text("the same, byte for byte")).to_be_visible()
    page.get_by_label("Against").select_option("emulator")
    page.locator("#replay-model").fill("gemini-3.8-flash")
    page.get_by_role("button", name="Send again").click()
    expect(page.locator(".then-now .changed").first).to_contain_text("gemini-3.8-flash")
    expect(page.locator(".diff-lines .added").first).to_be_visible()


def test_without_captures_it_says_how_to_have_them(tmp_path: Path, google: Any, open_page: Open) -> None:
    gateway = Gateway(tmp_path / "home", google.url, **{**SETTINGS, "OBSERVE_CAPTURE": "off"})
    gateway.start()
    try:
        summarise_with_genai(gateway.url)
        (row,) = await_rows(gateway, 1)
        page = open_page(gateway, f"#/request/{row['id']}")
        expect(page.get_by_text("DRAGOMAN_OBSERVE_CAPTURE=all")).to_be_visible()
        expect(page.get_by_role("button", name="Replay")).to_be_disabled()
    finally:
        gateway.stop()


def test_a_gateway_that_goes_and_comes_back(tmp_path: Path, google: Any, open_page: Open) -> None:
    gateway = Gateway(tmp_path / "home", google.url, **SETTINGS)
    gateway.start()
    try:
        page = open_page(gateway)
        expect(page.locator(".live.on")).to_be_visible()
        gateway.stop()  # at once: a page that is open keeps nobody from stopping
        expect(page.locator(".live.off")).to_be_visible()
        gateway.restart()
        expect(page.locator(".live.on")).to_be_visible()
        summarise_with_genai(gateway.url)
        expect(rows_of(page)).to_have_count(1)
    finally:
        gateway.stop()


def test_on_the_emulator_nobody_is_asked_for_a_key(tmp_path: Path, open_page: Open) -> None:
    gateway = Gateway(tmp_path / "home", OBSERVE_CAPTURE="all")
    gateway.start()
    try:
        page = open_page(gateway, login=False)
        expect(page.get_by_text("No request yet")).to_be_visible()
        body: Any = {
            "model": "sonnet",
            "max_tokens": 9,
            "messages": [{"role": "user", "content": "Please say hi"}],
        }
        requests.post(f"{gateway.url}/v1/messages", json=body, timeout=30).raise_for_status()
        expect(rows_of(page)).to_have_count(1)
        expect(page.get_by_role("button", name="Log out")).to_have_count(0)
        expect(rows_of(page).locator(".cost")).to_have_text("?")  # no price is known of what ran
        expect(page.locator(".stat").filter(has_text="cost")).to_have_text("?cost")
        page.goto(f"{gateway.url}/dashboard#/cost")
        expect(page.locator(".stat").filter(has_text="in these days")).to_have_text("?in these days")
        expect(page.locator("tbody tr")).to_contain_text("?")
        expect(page.locator(".view")).not_to_contain_text("$0")
    finally:
        gateway.stop()


def test_q11_what_clients_write_is_text_and_secrets_are_nowhere(
    tmp_path: Path, google: Any, open_page: Open, witness: Witness
) -> None:
    """Markup in every word a client can choose, a key beside it; every answer the page gets is looked at."""
    gateway = Gateway(tmp_path / "home", google.url, **SETTINGS)
    gateway.start()
    try:
        _attack(gateway)
        (row,) = await_rows(gateway, 1)
        page = open_page(gateway, login=False)
        page.on("response", lambda response: witness.bodies.append(_read(response)))
        page.get_by_label("Gateway key").fill(GATEWAY_KEY)
        page.get_by_role("button", name="Open").click()
        expect(rows_of(page)).to_have_count(1)
        for view in ("traffic", "sessions", "tools", "models", "cost", f"request/{row['id']}"):
            page.goto(f"{gateway.url}/dashboard#/{view}")
            page.locator("h1").wait_for()
        expect(page.locator(".turns")).to_contain_text("<img src=x")
        for tab in ("Stages", "Notes", "Record"):
            page.get_by_role("tab", name=tab).click()
            expect(page.locator("img[src=x]")).to_have_count(0)
        assert page.title() != "taken"
        assert page.locator("script").count() == 2
    finally:
        gateway.stop()
    assert len(witness.bodies) > 10
    assert any("redacted" in body for body in witness.bodies)
    assert not [body for body in witness.bodies if CANARY in body or GATEWAY_KEY in body]


def _attack(gateway: Gateway) -> None:
    tool = {"name": XSS[:60], "description": XSS, "input_schema": {"type": "object", "properties": {XSS: {}}}}
    call = {"type": "tool_use", "id": "t1", "name": XSS[:60], "input": {XSS: f"{XSS} {CANARY}"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": f"{XSS} {CANARY}"}
    body: Any = {
        "model": "claude-sonnet-5",
        "max_tokens": 99,
        "system": f"{XSS} {CANARY}",
        "tools": [tool],
        "metadata": {"user_id": f"u_session_{XSS}"},
        "messages": [
            {"role": "user", "content": f"Summarise {XSS} {CANARY}"},
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ],
    }
    headers = {"x-api-key": GATEWAY_KEY, "user-agent": f"{XSS} {CANARY}", "x-claude-code-session-id": XSS}
    answer = requests.post(f"{gateway.url}/v1/messages", json=body, headers=headers, timeout=30)
    assert answer.status_code == 200, answer.text


def _read(response: Any) -> str:
    try:
        return f"{response.headers} {response.text()}"
    except Exception:  # a stream that is open, or an answer that has no body any more
        return str(response.headers)


def test_the_page_is_never_shown_inside_another(played: Gateway, browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.route(
        "http://outer.test/", lambda route: route.fulfill(content_type="text/html", body=_FRAMED % played.url)
    )
    page.goto("http://outer.test/")
    page.wait_for_timeout(500)
    inner = [frame for frame in page.frames if frame != page.main_frame]
    assert all(frame.locator("nav, form").count() == 0 for frame in inner)
    context.close()


_FRAMED = '<iframe src="%s/dashboard"></iframe>'
