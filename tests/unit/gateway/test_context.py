"""Which model a request really goes to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.config import Config, UpstreamConfig
from dragoman.errors import ConfigError
from dragoman.gateway.context import Gateway
from dragoman.ir import Tool
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


async def test_b12_a_schema_google_refuses_costs_nobody_elses_tools_their_form() -> None:
    gateway = Gateway(Config(upstream=UpstreamConfig(api_key="k")), MemoryStore(), keys=("k" * 20,))
    odd, plain = (Tool(name="odd", schema=b'{"type":"object"}'),), (Tool(name="plain"),)
    target = gateway.target("gemini-3.8-flash", odd)
    gateway.remember_schema_form(target, odd)
    assert not gateway.target("gemini-3.8-flash", odd).proto_schemas
    gateway.remember_schema_form(msgspec.structs.replace(target, proto_schemas=True), odd)
    assert gateway.target("gemini-3.8-flash", odd).proto_schemas
    assert not gateway.target("gemini-3.8-flash", plain).proto_schemas
    assert not gateway.target("gemini-3.6-flash", odd).proto_schemas
    await gateway.close()


def test_strict_validation_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.config.validation.find_spec", lambda _name: None)
    with pytest.raises(ConfigError, match=r"dragoman\[strict\]"):
        Gateway(Config(strict_tool_validation=True), MemoryStore(), keys=("k" * 20,))


async def test_names_of_models_that_clients_make_up_do_not_fill_the_memory() -> None:
    gateway = Gateway(Config(upstream=UpstreamConfig(api_key="k")), MemoryStore(), keys=("k" * 20,))
    for number in range(1000):
        assert gateway.target(f"claude-haiku-{number}").model == "gemini-flash-lite-latest"
    assert gateway.target("x" * 10_000).model == "gemini-flash-latest"
    assert len(gateway._targets) <= 256
    assert all(len(name) <= 128 for name in gateway._targets)
    await gateway.close()
