"""Requests of Amazon Q and Kiro and the exact bodies that leave for Google; Google's streams and the frames they become.

Frames are written one to a line, as their type and payload; what they are on the wire is proven beside that.
`make bless` writes the files anew; read the diff before you commit it.
"""

from __future__ import annotations

import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer

from dragoman.dialects import gemini
from dragoman.dialects.amazonq import AmazonQ
from dragoman.dialects.base import Target
from dragoman.translation.exchange import Exchange
from tests.unit.dialects.amazonq.strict_reader import read

HERE = Path(__file__).parent
BLESS = bool(os.environ.get("DRAGOMAN_BLESS"))
REQUESTS = sorted(HERE.glob("*.json"))
STREAMS = sorted(path.name.removesuffix(".upstream.sse") for path in HERE.glob("*.upstream.sse"))
ASK: dict[str, Any] = {
    "conversationState": {
        "conversationId": "11111111-2222-4333-8444-555555555555",
        "currentMessage": {
            "userInputMessage": {
                "content": "What is in the folder?",
                "userInputMessageContext": {
                    "tools": [
                        {"toolSpecification": {"name": name, "inputSchema": {"json": {"type": "object"}}}}
                        for name in ("execute_bash", "fs_read", "fs_write", "introspect")
                    ]
                },
            }
        },
    }
}
KIRO = {"additionalModelRequestFields": {"thinking": {"type": "adaptive"}}}


def exchange(target: str = "") -> Exchange:
    tokens = (f"{number:016d}" for number in itertools.count(1))
    return Exchange(AmazonQ(target), new_id=lambda: next(tokens))


@pytest.mark.parametrize("path", REQUESTS, ids=lambda path: path.stem)
def test_upstream_body(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    asked = case["request"] if isinstance(case["request"], str) else json.dumps(case["request"])
    going = exchange()
    going.decode(asked.encode())
    body = going.encode(Target(model=case["model"])).decode()
    fresh = {**case, "body": body, "notes": [str(note) for note in going.notes]}
    if BLESS:
        path.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert fresh == json.loads(path.read_text("utf-8"))


def translate(name: str) -> bytes:
    """Kiro speaks under its own service's name and asks for thinking; the others do neither."""
    kiro = name.startswith("kiro_")
    going = exchange("KiroRuntimeService.GenerateAssistantResponse" if kiro else "")
    going.decode(json.dumps({**ASK, **(KIRO if kiro else {})}).encode())
    going.encode(Target(model="gemini-3.8-flash"))
    upstream = (HERE / f"{name}.upstream.sse").read_bytes().replace(b"\n", b"\r\n")
    return going.open() + going.receive(upstream) + going.finish()


def written(data: bytes) -> str:
    """As Amazon's own library reads the frames."""
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    lines = []
    for message in buffer:
        kind = message.headers.get(":event-type") or f"! {message.headers[':exception-type']}"
        assert message.headers[":content-type"] == "application/json"
        lines.append(f"{kind} {message.payload.decode()}\n")
    return "".join(lines)


@pytest.mark.parametrize("name", STREAMS)
def test_client_stream(name: str) -> None:
    got = written(translate(name))
    expected = HERE / f"{name}.client.txt"
    if BLESS:
        expected.write_text(got, "utf-8")
    assert got == expected.read_text("utf-8")


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_golden_is_also_legal(name: str) -> None:
    found = read(translate(name))
    assert found.failure == {"mid_stream_error": "error", "kiro_mid_stream_error": "throttlingError"}.get(
        name, ""
    )


def test_overflow() -> None:
    """A refusal of Google's, and the status and words that make the clients compact."""
    error = json.loads((HERE / "overflow.upstream.txt").read_text("utf-8"))
    reply = AmazonQ().encode_error(
        gemini.decode_error(error["code"], {}, json.dumps({"error": error}).encode())
    )
    head = "".join(f"{name}: {value}\n" for name, value in reply.headers)
    got = f"{reply.status}\n{head}\n{reply.body.decode()}\n"
    expected = HERE / "overflow.client.txt"
    if BLESS:
        expected.write_text(got, "utf-8")
    assert got == expected.read_text("utf-8")


def test_every_situation_is_there() -> None:
    assert [path.stem for path in REQUESTS] == [
        "cancelled_tools_with_a_new_prompt",
        "dummy_compaction",
        "duplicate_key",
        "empty_content",
        "ide_editor",
        "images",
        "kiro_reasoning_signature",
        "one_tool",
        "parallel_tools",
        "text_only",
        "thinking",
        "tool_error",
    ]
    assert STREAMS == [
        "kiro_mid_stream_error",
        "kiro_reasoning_signature",
        "long_arguments",
        "max_tokens",
        "mid_stream_error",
        "no_arguments",
        "safety_block",
        "signature_only_end",
        "text",
        "text_and_two_calls",
        "thinking_and_text",
    ]
