"""Whole conversations with Bedrock's clients, byte for byte: what is asked, what Google gets, what is answered.

A case has `ask` (its request), `api` (`converse` or `invoke`) and Google's `chunks`, or the `refusal` it answers with.
`make bless` writes the rest anew; read the diff before you commit it. A frame is its type and its payload.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
from pathlib import Path
from typing import Any

import pytest

from dragoman.dialects import CLIENTS
from dragoman.dialects.base import ClientDialect, Target
from dragoman.dialects.bedrock import ConverseClient, InvokeClient
from dragoman.http.aws_eventstream import encode_event, encode_event_headers, encode_exception
from dragoman.translation.exchange import Exchange
from tests.unit.dialects.bedrock.grammar import frames_of, read_stream

Json = dict[str, Any]

HERE = Path(__file__).parent
CASES = sorted(HERE.glob("*.json"))
MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"


def _dialect(api: str, *, stream: bool) -> ClientDialect:
    if api == "invoke":
        return InvokeClient(CLIENTS["anthropic"], MODEL, stream=stream)
    return ConverseClient(MODEL, stream=stream)


def _exchange(case: Json, *, stream: bool) -> tuple[Exchange, bytes]:
    tokens = (f"{number:016d}" for number in itertools.count(0 if stream else 1))
    dialect = _dialect(case["api"], stream=stream)
    exchange = Exchange(dialect, new_id=lambda: next(tokens), elapsed_ms=lambda: 42)
    exchange.decode(json.dumps(case["ask"]).encode())
    return exchange, exchange.encode(Target(model="gemini-3.8-flash"))


def _answer(case: Json, *, stream: bool) -> bytes:
    exchange, _ = _exchange(case, stream=stream)
    data = b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in case["chunks"])
    return exchange.open() + exchange.receive(data) + exchange.finish()


def _frames(data: bytes) -> list[str]:
    """Readable, and nothing is lost: the same bytes can be made of it."""
    frames: list[str] = []
    for frame in frames_of(data):
        kind = frame.headers.get(":event-type") or f"!{frame.headers[':exception-type']}"
        payload = frame.payload
        if kind == "chunk":
            payload = base64.b64decode(json.loads(payload)["bytes"])
        frames.append(f"{kind} {payload.decode()}")
    return frames


def _bytes(frames: list[str]) -> bytes:
    out = b""
    for frame in frames:
        kind, _, text = frame.partition(" ")
        payload = text.encode()
        if kind == "chunk":
            payload = b'{"bytes":"%b"}' % base64.b64encode(payload)
        if kind.startswith("!"):
            out += encode_exception(kind[1:], payload)
        else:
            out += encode_event(encode_event_headers(kind), payload)
    return out


def play(case: Json) -> Json:
    given: Json = {name: case[name] for name in ("api", "ask", "chunks", "refusal") if name in case}
    exchange, body = _exchange(case, stream=True)
    story: Json = {**given, "body": body.decode(), "notes": [str(note) for note in exchange.notes]}
    if "refusal" in case:
        refusal = case["refusal"]
        error = exchange.upstream.decode_error(refusal["status"], {}, json.dumps(refusal["body"]).encode())
        reply = _dialect(case["api"], stream=True).encode_error(error)
        told = {"status": reply.status, "headers": dict(reply.headers), "body": reply.body.decode()}
        return {**story, "reply": told}
    whole = _answer(case, stream=False).decode()
    return {**story, "whole": whole, "frames": _frames(_answer(case, stream=True))}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_golden(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    fresh = play(case)
    if os.environ.get("DRAGOMAN_BLESS"):
        path.write_text(json.dumps(fresh, indent=1, ensure_ascii=False) + "\n", "utf-8")
    else:
        assert fresh == case


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_what_is_golden_is_also_legal(path: Path) -> None:
    case = json.loads(path.read_text("utf-8"))
    if "frames" not in case:
        return
    data = _bytes(case["frames"])
    assert data == _answer(case, stream=True), "the frames say everything"
    if case["api"] == "converse":
        told = read_stream(data)
        assert (told.failure is not None) == (path.stem == "mid_stream_failure")


def test_every_situation_is_there() -> None:
    assert {path.stem for path in CASES} == {
        "text",
        "one_tool",
        "parallel_tools",
        "error_result",
        "images_and_documents",
        "thinking",
        "structured_output",
        "settings_of_other_models",
        "overflow",
        "invoke_overflow",
        "mid_stream_failure",
        "invoke",
        "invoke_failure",
    }
