"""Google's stream in, the exact bytes of the client's stream out; `DRAGOMAN_BLESS=1` writes them anew."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest

from dragoman.dialects import anthropic
from dragoman.dialects.base import Target
from dragoman.translation.exchange import Exchange
from tests.unit.dialects.anthropic.stream_checks import parse

HERE = Path(__file__).parent
CASES = sorted(path.name.removesuffix(".upstream.sse") for path in HERE.glob("*.upstream.sse"))
REQUEST = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 32000,
    "stream": True,
    "thinking": {"type": "adaptive"},
    "messages": [{"role": "user", "content": "What is in the folder?"}],
    "tools": [
        {"name": name, "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
        for name in ("Read", "Glob")
    ]
    + [
        {"type": "web_search_20250305", "name": "web_search", "max_uses": 8},
        {"type": "code_execution_20250522", "name": "code_execution"},
    ],
}


def translate(upstream: bytes) -> bytes:
    tokens = (f"{number:016d}" for number in itertools.count(1))
    exchange = Exchange(anthropic, new_id=lambda: next(tokens))
    exchange.decode(json.dumps(REQUEST).encode())
    exchange.encode(Target(model="gemini-3.8-flash"))
    return exchange.open() + exchange.receive(upstream) + exchange.finish()


@pytest.mark.parametrize("name", CASES)
def test_golden(name: str) -> None:
    given = (HERE / f"{name}.upstream.sse").read_bytes().replace(b"\n", b"\r\n")
    expected = HERE / f"{name}.client.sse"
    got = translate(given)
    if os.environ.get("DRAGOMAN_BLESS"):
        expected.write_bytes(got)
    assert got.decode() == expected.read_bytes().decode()


def test_every_situation_is_there() -> None:
    assert CASES == [
        "code_execution",
        "max_tokens",
        "mid_stream_error",
        "safety_block",
        "signature_only_end",
        "text",
        "text_and_two_calls",
        "thinking_and_text",
        "web_search",
    ]


@pytest.mark.parametrize("name", CASES)
def test_what_is_golden_is_also_legal(name: str) -> None:
    names = [event["event"] for event in parse((HERE / f"{name}.client.sse").read_bytes())]
    assert names[0] == "message_start"
    assert names[-1] == ("error" if name == "mid_stream_error" else "message_stop")
    assert names.count("content_block_start") == names.count("content_block_stop")
