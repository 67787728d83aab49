"""Runs the corpus cases of the Responses API through the library."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects import openai_responses
from dragoman.sse import SseDecoder
from tests.corpus import check

Json = dict[str, Any]


def _session() -> Any:
    from tests.corpus.adapter import Session

    return Session(openai_responses)


def _request(given: Json) -> Any:
    return _session().start(given["request"], given["model"])[1]


def _response(given: Json) -> Any:
    session = _session()
    exchange, _ = session.start({**given["request"], "stream": False}, given["model"])
    return json.loads(session.end(exchange, json.dumps(given["response"]).encode()))


def _stream(given: Json) -> Any:
    session = _session()
    exchange, _ = session.start({**given["request"], "stream": True}, given["model"])
    return {"events": parse_events(session.end(exchange, _sse(given["chunks"])))}


def _sse(chunks: list[Any]) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(chunk).encode() for chunk in chunks)


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
    session = _session()
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
        return assembled(session.end(exchange, _sse(turn["gemini_chunks"])))
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


RUNNERS = {
    "openai_responses_request->gemini_request": _request,
    "gemini_response->openai_responses_response": _response,
    "gemini_stream->openai_responses_sse": _stream,
    "roundtrip:openai_responses": _roundtrip,
}
