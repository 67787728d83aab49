"""Codex's requests and the exact bodies that leave for Google; Google's streams and what Codex gets of them.

`make bless` writes the files anew; read the diff before you commit it.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.dialects import openai_responses
from dragoman.dialects.base import Target
from dragoman.translation.exchange import Exchange
from tests.corpus.responses_adapter import parse_events

HERE = Path(__file__).parent
BLESS = bool(os.environ.get("DRAGOMAN_BLESS"))
REQUESTS = sorted(HERE.glob("*.json"))
STREAMS = sorted(path.name.removesuffix(".upstream.sse") for path in HERE.glob("*.upstream.sse"))
ASK: dict[str, Any] = {
    "model": "gpt-5",
    "stream": True,
    "store": False,
    "reasoning": {"summary": "auto"},
    "include": [
        "reasoning.encrypted_content",
        "web_search_call.action.sources",
        "code_interpreter_call.outputs",
    ],
    "input": [{"role": "user", "content": "What is in the folder?"}],
    "tools": [
        {"type": "function", "name": "exec_command", "parameters": {"type": "object"}},
        {"type": "custom", "name": "apply_patch"},
        {"type": "tool_search", "execution": "client"},
        {"type": "local_shell"},
        {
            "type": "namespace",
            "name": "multi_agent_v1",
            "description": "",
            "tools": [{"type": "function", "name": "spawn_agent", "parameters": {"type": "object"}}],
        },
        {"type": "web_search"},
        {"type": "code_interpreter", "container": {"type": "auto"}},
    ],
}


def exchange() -> Exchange:
    tokens = (f"{number:016d}" for number in itertools.count(1))
    return Exchange(openai_responses, new_id=lambda: next(tokens), created_s=1_700_000_000)


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_upstream_body(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    going = exchange()
    going.decode(json.dumps(case["request"]).encode())
    body = going.encode(Target(model=case["model"])).decode()
    fresh = {**case, "body": body, "notes": [str(note) for note in going.notes]}
    if BLESS:
        path.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert fresh == json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("name", STREAMS)
def test_client_stream(name: str) -> None:
    given = (HERE / f"{name}.upstream.sse").read_bytes().replace(b"\n", b"\r\n")
    going = exchange()
    going.decode(json.dumps(ASK).encode())
    going.encode(Target(model="gemini-3.8-flash"))
    got = going.open() + going.receive(given) + going.finish()
    expected = HERE / f"{name}.client.sse"
    if BLESS:
        expected.write_bytes(got)
    assert got.decode() == expected.read_bytes().decode()


def test_every_situation_is_there() -> None:
    assert [path.stem for path in REQUESTS] == [
        "codex_code_mode",
        "codex_compaction",
        "codex_custom_tool_and_tool_search",
        "codex_output_schema_and_image",
        "codex_second_turn",
        "codex_unknown_model",
    ]
    assert STREAMS == [
        "code_execution",
        "every_shape_of_call",
        "max_tokens",
        "mid_stream_error",
        "safety_block",
        "signature_only_end",
        "text",
        "text_and_two_calls",
        "thinking_and_text",
        "web_search",
    ]


@pytest.mark.parametrize("name", STREAMS)
def test_g2_what_is_golden_is_also_legal(name: str) -> None:
    events = parse_events((HERE / f"{name}.client.sse").read_bytes())
    endings = {"mid_stream_error": "failed", "max_tokens": "incomplete", "safety_block": "incomplete"}
    kinds = [event["event"] for event in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == f"response.{endings.get(name, 'completed')}"
    assert kinds.count("response.output_item.added") == kinds.count("response.output_item.done")
