"""Vercel's AI SDK with its provider for Bedrock: its own loop, whole and streamed, signed and with a bearer token."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.agents import install_node
from tests.e2e.amazon_programs import install_ai_sdk, run_rounds
from tests.e2e.clients import INSTALL_S
from tests.e2e.fake_google import Google
from tests.e2e.gateway import Gateway

pytestmark = [pytest.mark.clients, pytest.mark.timeout(INSTALL_S)]

PROGRAM = Path(__file__).with_name("ai_sdk_rounds.mjs")
#: It does not tell Bedrock that a tool failed.
SAID = (
    "weather returned: sun over Oslo\nweather returned: sun over Rome\nweather returned: Error: no such city"
)


@pytest.mark.parametrize("auth", ["sigv4", "bearer"])
def test_its_loop_runs_the_tools(gateway: Gateway, google: Google, auth: str) -> None:
    rounds = [f"{name}:{auth}" for name in ("whole", "stream", "thinking", "picture", "stranger")]
    saw = run_rounds(PROGRAM, install_ai_sdk(), gateway.url, rounds, node=install_node() / "node")
    whole, stream, thinking, picture, stranger = (saw[one] for one in rounds)
    for answer in (whole, stream):
        assert answer["ran"] == ["Oslo", "Rome", "nowhere"]
        assert (answer["text"], answer["finish"]) == (SAID, "stop")
        assert answer["tokens"] > 0
    assert (thinking["ran"], thinking["text"]) == (["Bern"], "weather returned: sun over Bern")
    assert "Easy" in thinking["thought"]
    assert "image/png" in picture
    assert stranger["status"] == 403
    assert google.sentinels() == 0
