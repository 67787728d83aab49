"""Google's stream in, the exact bytes of the client's stream out; `DRAGOMAN_BLESS=1` writes them anew."""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path

import pytest

from dragoman.dialects import openai_chat
from dragoman.dialects.base import Target
from dragoman.translation.exchange import Exchange
from tests.corpus import check
from tests.corpus.chat_adapter import parse_chunks

HERE = Path(__file__).parent
CASES = sorted(path.name.removesuffix(".upstream.sse") for path in HERE.glob("*.upstream.sse"))
REQUEST = {
    "model": "gpt-5",
    "stream": True,
    "stream_options": {"include_usage": True},
    "reasoning_effort": "high",
    "messages": [{"role": "user", "content": "What is in the folder?"}],
    "tools": [
        {
            "type": "function",
            "function": {"name": "Read", "parameters": {"type": "object", "properties": {}}},
        },
        {"type": "function", "function": {"name": "Glob"}},
        {"type": "custom", "custom": {"name": "apply_patch"}},
        {"type": "web_search"},
    ],
}


def translate(upstream: bytes, *, stream: bool) -> bytes:
    tokens = (f"{number:016d}" for number in itertools.count(1))
    exchange = Exchange(openai_chat, new_id=lambda: next(tokens), created_s=1_700_000_000)
    exchange.decode(json.dumps({**REQUEST, "stream": stream}).encode())
    exchange.encode(Target(model="gemini-3.8-flash"))
    return exchange.open() + exchange.receive(upstream) + exchange.finish()


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(("stream", "suffix"), [(True, "sse"), (False, "json")])
def test_golden(name: str, stream: bool, suffix: str) -> None:
    given = (HERE / f"{name}.upstream.sse").read_bytes().replace(b"\n", b"\r\n")
    expected = HERE / f"{name}.client.{suffix}"
    got = translate(given, stream=stream)
    if os.environ.get("DRAGOMAN_BLESS"):
        expected.write_bytes(got)
    assert got.decode() == expected.read_bytes().decode()


def test_every_situation_is_there() -> None:
    assert CASES == [
        "code_execution",
        "custom_call",
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
    _, problems = check.assemble_chat(parse_chunks((HERE / f"{name}.client.sse").read_bytes()))
    if name == "mid_stream_error":
        assert set(problems) == {"error chunk", "no [DONE]", "no finish_reason"}
    elif name == "custom_call":  # which the checker does not know
        assert all("tool 0" in problem for problem in problems)
    else:
        assert problems == []
