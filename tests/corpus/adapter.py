"""Runs a corpus case through the library: `run_case(case)` gives what FORMAT.md asks for its direction."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from functools import partial
from typing import Any

from dragoman.dialects import CLIENTS, gemini
from dragoman.dialects.base import Reply, Target
from dragoman.dialects.gemini.client import GeminiClient
from dragoman.errors import DragomanError
from dragoman.translation.exchange import Exchange
from tests.corpus import amazonq_adapter, chat_adapter, fs_adapter, responses_adapter
from tests.corpus.client_session import Session, run_request, run_response, sse

ANTHROPIC = CLIENTS["anthropic"]


def run_case(case: dict[str, Any]) -> Any:
    return _RUNNERS[case["direction"]](case["input"])


def _native(given: dict[str, Any]) -> Any:
    return Session(GeminiClient(given["model"])).start(given["request"], given["model"])[1]


def _declaration(given: dict[str, Any]) -> Any:
    request = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "x"}],
        "tools": [given["tool"]],
    }
    body = Session(ANTHROPIC).start(request, "gemini-3-flash-preview")[1]
    return body["tools"][0]["functionDeclarations"][0]


def _stream(given: dict[str, Any]) -> Any:
    frames = [f"data: {json.dumps(chunk)}\r\n\r\n".encode() for chunk in given["chunks"]]
    return _stream_bytes({**given, "segments_b64": [base64.b64encode(frame) for frame in frames]})


def _stream_bytes(given: dict[str, Any]) -> Any:
    exchange, _ = Session(ANTHROPIC).start({**given["request"], "stream": True}, given["model"])
    out = exchange.open()
    for segment in given["segments_b64"]:
        out += exchange.receive(base64.b64decode(segment))
    return {"events": responses_adapter.parse_events(out + exchange.finish())}


def _as_dict(reply: Reply) -> dict[str, Any]:
    return {"status": reply.status, "headers": dict(reply.headers), "body": json.loads(reply.body)}


def _error(given: dict[str, Any]) -> Any:
    body = given["body"] if isinstance(given["body"], str) else json.dumps(given["body"])
    error = gemini.decode_error(given["status"], given["headers"], body.encode())
    return _as_dict(ANTHROPIC.encode_error(error))


def _count_request(given: dict[str, Any]) -> Any:
    exchange, _ = Session(ANTHROPIC).start(given["request"], given["model"])
    return json.loads(exchange.encode_count(Target(model=given["model"])))


def _count_response(given: dict[str, Any]) -> Any:
    return json.loads(ANTHROPIC.encode_count(gemini.decode_count(json.dumps(given["response"]).encode())))


def _rejected(given: dict[str, Any]) -> Any:
    try:
        Session(CLIENTS[given["protocol"]]).start(given["request"], "gemini-3-flash-preview")
    except DragomanError as error:
        return _as_dict(CLIENTS[given["protocol"]].encode_error(error))
    return {"status": 200, "body": {}}


def _roundtrip(given: dict[str, Any]) -> Any:
    session = Session(ANTHROPIC)
    request = given["request"]
    for turn in given["turns"]:
        exchange, body = session.start(request, given["model"])
        message = _answer(session, exchange, turn, body)
        request = {
            **request,
            "messages": [*request["messages"], *_follow_up(message, turn["followup"], given)],
        }
    return session.start(request, given["model"])[1]


def _answer(
    session: Session, exchange: Exchange, turn: dict[str, Any], body: dict[str, Any]
) -> dict[str, Any]:
    chunks = _with_declared_names(turn.get("gemini_chunks") or [turn["gemini_response"]], body)
    if exchange.request.stream:
        events = responses_adapter.parse_events(session.end(exchange, sse(chunks)))
        message, problems = _check().assemble_anthropic(events)
        assert not problems, problems
    else:
        message = json.loads(session.end(exchange, json.dumps(chunks[0]).encode()))
    failures, _ = _check().check_case({"direction": "", "expect": turn.get("client_sees", [])}, message)
    assert not failures, failures
    return dict(message)


def _with_declared_names(chunks: list[Any], body: dict[str, Any]) -> list[Any]:
    names = [
        tool["name"] for group in body.get("tools", []) for tool in group.get("functionDeclarations", [])
    ]

    def fill(value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {"$declared"}:
                return names[value["$declared"]]
            return {key: fill(item) for key, item in value.items()}
        return [fill(item) for item in value] if isinstance(value, list) else value

    return [fill(chunk) for chunk in chunks]


def _follow_up(
    message: dict[str, Any], follow_up: dict[str, Any], given: dict[str, Any]
) -> list[dict[str, Any]]:
    blocks = message["content"]
    if given.get("client", {}).get("drop_thinking"):
        blocks = [block for block in blocks if "thinking" not in block["type"]]
    calls = [block for block in blocks if block["type"] == "tool_use"]
    content: list[dict[str, Any]] = [
        {
            "type": "tool_result",
            "tool_use_id": calls[result["call"]]["id"],
            "content": result["content"],
            **({"is_error": result["is_error"]} if "is_error" in result else {}),
        }
        for result in follow_up.get("tool_results", [])
    ]
    if "text" in follow_up:
        content.append({"type": "text", "text": follow_up["text"]})
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": content}]


def _check() -> Any:
    from tests.corpus import check

    return check


_RUNNERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "anthropic_request->gemini_request": partial(run_request, ANTHROPIC),
    "json_schema->gemini_function_declaration": _declaration,
    "gemini_response->anthropic_response": partial(run_response, ANTHROPIC),
    "gemini_stream->anthropic_sse": _stream,
    "gemini_stream_error->anthropic_sse": _stream,
    "gemini_stream_bytes->anthropic_sse": _stream_bytes,
    "gemini_error->anthropic_error": _error,
    "anthropic_count_tokens->gemini_count_tokens_request": _count_request,
    "gemini_count_tokens_response->anthropic_count_tokens_response": _count_response,
    "client_request->rejected": _rejected,
    "roundtrip:anthropic": _roundtrip,
    "gemini_native_request->gemini_request_raw": _native,
    **chat_adapter.RUNNERS,
    **responses_adapter.RUNNERS,
    **fs_adapter.RUNNERS,
    **amazonq_adapter.RUNNERS,
}
