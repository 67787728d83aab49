"""MCP servers bring any schema: full rounds with hostile ones, with values for exactly the odd properties."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from anthropic import Anthropic

from tests.e2e.fake_google import Google, emulated_google
from tests.e2e.gateway import Gateway
from tests.e2e.hard_schemas import HOSTILE, LONG_NAME
from tests.e2e.record_schemas import load_tools
from tests.e2e.sdk_rounds import MODES, Mode, ask, connect, play_round

ALMOST_THE_SAME = LONG_NAME[:-1] + "y"

TOOLS: list[dict[str, Any]] = [
    *load_tools("1.0.128"),
    *({"name": name, "description": "hostile", "input_schema": row[0]} for name, row in HOSTILE.items()),
    {"name": ALMOST_THE_SAME, "input_schema": {"type": "object"}},
]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: name[:30])
def test_full_round(client: Anthropic, google: Google, name: str, mode: Mode) -> None:
    _, first, second = HOSTILE[name]
    play_round(client, mode, TOOLS, name, (first, second), said=name[:40])
    assert google.sentinels() == 0
    assert len(google.declared()) == len(TOOLS)


def test_no_property_is_lost(client: Anthropic, google: Google) -> None:
    """Names that look like keywords are still names."""
    ask(client, "whole", [{"role": "user", "content": "say Nothing."}], TOOLS)
    declared = google.declarations()
    for name, (schema, *_) in HOSTILE.items():
        if len(name) <= 64:
            expected = set(schema.get("properties", {}))
            assert expected <= set(declared[name]["parametersJsonSchema"].get("properties", {}))
    grep = declared["Grep"]["parametersJsonSchema"]["properties"]
    assert {"pattern", "type", "-A", "-B", "-C", "-n", "-i"} <= set(grep)


@pytest.fixture(scope="module")
def old_google() -> Iterator[Google]:
    with emulated_google(json_schemas=False) as google:
        yield google


@pytest.fixture(scope="module")
def old_client(old_google: Google, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anthropic]:
    gateway = Gateway(tmp_path_factory.mktemp("old") / "home", old_google.url)
    gateway.start()
    with connect(gateway) as client:
        yield client
    gateway.stop()
    print(gateway.log())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: name[:30])
def test_full_round_on_a_back_end_without_json_schemas(
    old_client: Anthropic, old_google: Google, name: str, mode: Mode
) -> None:
    _, first, second = HOSTILE[name]
    old_google.forget()
    play_round(old_client, mode, TOOLS, name, (first, second), said=name[:40])
    assert not old_google.refusals()
    assert old_google.sentinels() == 0
    assert "parameters" in old_google.declarations()["Grep"]


def test_the_long_name_is_long() -> None:
    assert len(LONG_NAME) == 91
