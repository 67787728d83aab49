"""Runs the corpus cases of the Responses API through the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from dragoman.dialects import openai_responses
from dragoman.http.sse import SseDecoder
from tests.corpus import check
from tests.corpus.client_session import Session, run_request, run_response, run_stream, sse

Json = dict[str, Any]


def parse_events(data: bytes) -> list[Json]:
    decoder = SseDecoder()
    events = decoder.feed(data) + decoder.close()
    return [{"event": event.event or None, "data": json.loads(event.data)} for event in events]


def assembled(data: bytes) -> Json:
    """The response a client makes of a stream; every break of the grammar is an error."""
    response, problems = check.assemble_responses(parse_events(data))
    assert not problems, problems
    return dict(response)


def _roundtrip(given: Json) -> Any:
    session = Session(openai_responses)
    request = given["request"]
    items = request["input"]
    items = [{"role": "user", "content": items}] if isinstance(items, str) else items
    for turn in given["turns"]:
        exchange, _ = session.start({**request, "input": items}, given["model"])
        output = _answer(session, exchange, turn)["output"]
        items = [*items, *_follow_up(output, turn["followup"], given.get("client", {}))]
    return session.start({**request, "input": items}, given["model"])[1]


def _answer(session: Any, exchange: Any, turn: Json) -> Json:
    if exchange.request.stream:
        return assembled(session.end(exchange, sse(turn["gemini_chunks"])))
    return dict(json.loads(session.end(exchange, json.dumps(turn["gemini_response"]).encode())))


def _follow_up(output: list[Json], follow_up: Json, client: Json) -> list[Json]:
    if client.get("drop_reasoning_items"):
        output = [item for item in output if item["type"] != "reasoning"]
    calls = [item for item in output if item["type"] == "function_call"]
    results = [
        {
            "type": "function_call_output",
            "call_id": calls[result["call"]]["call_id"],
            "output": result["content"],
        }
        for result in follow_up.get("tool_results", [])
    ]
    said = [{"role": "user", "content": follow_up["text"]}] if "text" in follow_up else []
    return [*output, *results, *said]


RUNNERS: dict[str, Callable[[Json], Any]] = {
    "openai_responses_request->gemini_request": partial(run_request, openai_responses),
    "gemini_response->openai_responses_response": partial(run_response, openai_responses),
    "gemini_stream->openai_responses_sse": lambda given: {
        "events": parse_events(run_stream(openai_responses, given))
    },
    "roundtrip:openai_responses": _roundtrip,
}
