"""The dashboard of a gateway with several workers: each of them shows what all have done, and knows every cookie."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from dragoman import emulator
from tests.e2e.gateway import GATEWAY_KEY, Gateway

ASKED = 24
PATIENCE_S = 30.0
BODY: Any = {
    "model": "claude-sonnet-5",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "Please say hi"}],
}


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with emulator.running() as google:
        made = Gateway(tmp_path / "home", google.url, SERVER_WORKERS="2", OBSERVE_CAPTURE="all")
        made.start()
        yield made
        made.stop()
        assert "Traceback" not in made.log()


def test_every_worker_shows_the_requests_of_all_and_knows_the_cookie(gateway: Gateway) -> None:
    """A connection of its own for each request, so that the kernel spreads them over the workers."""
    for _ in range(ASKED):
        answer = requests.post(
            f"{gateway.url}/v1/messages", json=BODY, headers={"x-api-key": GATEWAY_KEY}, timeout=30
        )
        assert answer.status_code == 200
    page = {"origin": gateway.url, "content-type": "application/json"}
    login = requests.post(
        f"{gateway.url}/dashboard/api/login",
        data="{}",
        headers={**page, "authorization": f"Bearer {GATEWAY_KEY}"},
        timeout=30,
    )
    cookie = {"cookie": login.headers["set-cookie"].partition(";")[0]}
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = [_get(gateway, "requests", cookie)["rows"] for _ in range(12)]
        if all(len(rows) == ASKED for rows in seen):
            break
        assert time.monotonic() < deadline, [len(rows) for rows in seen]
        time.sleep(0.1)
    newest = seen[0][0]["id"]
    assert all(_get(gateway, f"requests/{newest}", cookie)["stages"] is not None for _ in range(8))
    assert {_get(gateway, "models", cookie)["rows"][0]["requests"] for _ in range(8)} == {ASKED}
    requests.post(f"{gateway.url}/dashboard/api/logout", data="{}", headers={**page, **cookie}, timeout=30)
    out = [
        requests.get(f"{gateway.url}/dashboard/api/me", headers=cookie, timeout=30).status_code
        for _ in range(12)
    ]
    assert set(out) == {401}


def test_an_open_page_keeps_nobody_from_stopping(gateway: Gateway) -> None:
    headers = {"x-api-key": GATEWAY_KEY, "accept": "text/event-stream"}
    with requests.get(
        f"{gateway.url}/dashboard/api/live", headers=headers, stream=True, timeout=30
    ) as stream:
        lines = stream.iter_lines()
        assert next(line for line in lines if line.startswith(b"event")) == b"event: hello"
        process = gateway._process
        assert process is not None
        process.terminate()
        assert b"event: bye" in list(lines)
    process.wait(PATIENCE_S / 2)  # far less than server.shutdown_s after the stream


def _get(gateway: Gateway, path: str, headers: dict[str, str]) -> Any:
    answer = requests.get(f"{gateway.url}/dashboard/api/{path}", headers=headers, timeout=30)
    assert answer.status_code == 200, answer.text
    return answer.json()
