"""The metrics of a gateway with several workers: whoever is asked tells of all, also of those that died."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from benchmarks.procfs import tree
from dragoman import emulator
from tests.e2e.gateway import GATEWAY_KEY, Gateway

ASKED = 24
LOOKS = 12
PATIENCE_S = 30.0
HEADERS = {"x-api-key": GATEWAY_KEY}
BODY: Any = {
    "model": "gemini-2.5-flash",
    "max_tokens": 99,
    "messages": [{"role": "user", "content": "Please say hi"}],
}
_LINE = re.compile(r'^(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\.)*",?)*)\})? (-?[\d.e+-]+)$')


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    with emulator.running() as google:
        made = Gateway(tmp_path / "home", google.url, SERVER_WORKERS="2")
        made.start()
        yield made
        made.stop()
        assert "Traceback" not in made.log()


def numbers(gateway: Gateway) -> dict[str, float]:
    """The sum of each metric's lines that are about models, over a connection of its own."""
    text = requests.get(f"{gateway.url}/metrics", headers=HEADERS, timeout=30).text
    found: dict[str, float] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        read = _LINE.match(line)
        assert read, line
        if 'model="-"' not in line:
            found[read[1]] = found.get(read[1], 0) + float(read[3])
    return found


def ask(gateway: Gateway, times: int) -> None:
    """A connection of its own for each, so that the kernel spreads them over the workers."""
    for _ in range(times):
        response = requests.post(f"{gateway.url}/v1/messages", json=BODY, headers=HEADERS, timeout=30)
        assert response.status_code == 200


def until_all_say(gateway: Gateway, holds: Callable[[dict[str, float]], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        seen = [numbers(gateway) for _ in range(LOOKS)]
        if all(holds(one) for one in seen):
            return
        assert time.monotonic() < deadline, seen
        time.sleep(0.1)


def is_exact(times: int) -> Callable[[dict[str, float]], bool]:
    def holds(seen: dict[str, float]) -> bool:
        counted = (
            "dragoman_requests_total",
            "dragoman_request_seconds_count",
            "dragoman_overhead_seconds_count",
        )
        return all(seen[name] == times for name in counted) and seen["dragoman_open_streams"] == 0

    return holds


def test_every_worker_tells_of_all_and_no_counter_goes_back(gateway: Gateway) -> None:
    ask(gateway, ASKED)
    until_all_say(gateway, is_exact(ASKED))

    assert gateway._process is not None
    _, first, *_ = tree(gateway._process.pid)
    os.kill(first, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE_S
    while first in (workers := tree(gateway._process.pid)[1:]) or len(workers) < 2:
        assert time.monotonic() < deadline, workers
        time.sleep(0.1)
    ask(gateway, ASKED)
    until_all_say(gateway, is_exact(2 * ASKED))

    gateway.stop()
    gateway.restart()
    until_all_say(gateway, is_exact(2 * ASKED))
