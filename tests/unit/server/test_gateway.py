"""Which model a request really goes to."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.config import Config, UpstreamConfig
from dragoman.server.gateway import Gateway
from dragoman.store import MemoryStore


@pytest.mark.parametrize(
    ("upstream", "model"),
    [
        ({"api_key": "k"}, "gemini-flash-latest"),
        ({"api_key": "k", "api_version": "v1"}, "gemini-3.8-flash"),
        ({"kind": "vertex", "api_key": "k", "project": "p"}, "gemini-3.8-flash"),
    ],
)
async def test_m1_an_alias_goes_only_where_google_knows_it(upstream: dict[str, Any], model: str) -> None:
    gateway = Gateway(Config(upstream=UpstreamConfig(**upstream)), MemoryStore(), keys=("k" * 20,))
    assert gateway.target("claude-sonnet-4-5").model == model
    assert gateway.target("gemini-3.6-flash").model == "gemini-3.6-flash"
    await gateway.close()
