"""Runs the corpus cases of Chat Completions through the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from dragoman.dialects import gemini, openai_chat
from dragoman.http.sse import SseDecoder
from tests.corpus import check
from tests.corpus.client_session import Session, run_request, run_response, run_stream, sse

Json = dict[str, Any]

#: Cases we answer otherwise on purpose: the field that the refusal names.
DECLINED = {"chat_response/several_candidates": "n"}

_STANDARD = {"id", "type", "function"}


def parse_chunks(data: bytes) -> list[Json]:
    """The events of a stream; `[DONE]` is the only one that is no JSON."""
    decoder = SseDecoder()
    events = decoder.feed(data) + decoder.close()
    return [
        {
            "event": event.event or None,
            "data": "[DONE]" if event.data == b"[DONE]" else json.loads(event.data),
        }
        for event in events
    ]


def _error(given: Json) -> Any:
    body = given["body"] if isinstance(given["body"], str) else json.dumps(given["body"])
    reply = openai_chat.encode_error(gemini.decode_error(given["status"], given["headers"], body.encode()))
    return {"status": reply.status, "headers": dict(reply.headers), "body": json.loads(reply.body)}


def _roundtrip(given: Json) -> Any:
    session = Session(openai_chat)
    request = given["request"]
    for turn in given["turns"]:
        exchange, _ = session.start(request, given["model"])
        message = _answer(session, exchange, turn)
        follow_up = _follow_up(message, turn["followup"], given.get("client", {}))
        request = {**request, "messages": [*request["messages"], *follow_up]}
    return session.start(request, given["model"])[1]


def _answer(session: Any, exchange: Any, turn: Json) -> Json:
    if not exchange.request.stream:
        out = session.end(exchange, json.dumps(turn["gemini_response"]).encode())
        return dict(json.loads(out)["choices"][0]["message"])
    message, problems = check.assemble_chat(parse_chunks(session.end(exchange, sse(turn["gemini_chunks"]))))
    assert not problems, problems
    return {key: message[key] for key in ("role", "content", "tool_calls")}


def _follow_up(message: Json, follow_up: Json, client: Json) -> list[Json]:
    calls = message.get("tool_calls", [])
    if client.get("standard_fields_only"):
        kept = [{key: value for key, value in call.items() if key in _STANDARD} for call in calls]
        message = {"role": "assistant", "content": message["content"], "tool_calls": kept}
    results = [
        {"role": "tool", "tool_call_id": calls[result["call"]]["id"], "content": result["content"]}
        for result in follow_up["tool_results"]
    ]
    return [message, *results]


RUNNERS: dict[str, Callable[[Json], Any]] = {
    "openai_chat_request->gemini_request": partial(run_request, openai_chat),
    "gemini_response->openai_chat_response": partial(run_response, openai_chat),
    "gemini_stream->openai_chat_sse": lambda given: {"events": parse_chunks(run_stream(openai_chat, given))},
    "gemini_error->openai_error": _error,
    "roundtrip:openai_chat": _roundtrip,
}
