"""Runs the corpus cases of Amazon Q through the library."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from dragoman.dialects import CLIENTS
from dragoman.http.aws_eventstream import EventStreamDecoder
from tests.corpus.client_session import Session, run_request, sse

Json = dict[str, Any]

AMAZONQ = CLIENTS["amazonq"]


def _events(given: Json) -> Any:
    session = Session(AMAZONQ)
    exchange, _ = session.start(given["request"], given["model"])
    data = sse([given["response"]])
    return {"events": fold(parse_frames(session.end(exchange, data)))}


def parse_frames(data: bytes) -> list[tuple[str, Json]]:
    """The events of a stream by type; what is no event has its exception's type."""
    decoder = EventStreamDecoder()
    messages = decoder.feed(data)
    decoder.close()
    return [
        (
            message.headers.get(":event-type") or message.headers[":exception-type"],
            json.loads(message.payload),
        )
        for message in messages
    ]


def fold(events: list[tuple[str, Json]]) -> list[Json]:
    """Neighbouring texts joined, the frames of a tool use as two events, everything else left out."""
    folded: list[Json] = []
    for kind, payload in events:
        last = folded[-1] if folded else {}
        if kind == "assistantResponseEvent" and "assistantResponseEvent" in last:
            last["assistantResponseEvent"]["content"] += payload["content"]
        elif kind == "assistantResponseEvent":
            folded.append({kind: {"content": payload["content"]}})
        elif kind == "toolUseEvent":
            _fold_tool(folded, payload)
    return folded


def _fold_tool(folded: list[Json], payload: Json) -> None:
    identity = {key: payload[key] for key in ("toolUseId", "name")}
    last = folded[-1]["toolUseEvent"] if folded and "toolUseEvent" in folded[-1] else {}
    if not last or last["toolUseId"] != payload["toolUseId"]:
        folded.append({"toolUseEvent": payload})
        return
    if "input" not in last:
        last = {**identity, "input": ""}
        folded.append({"toolUseEvent": last})
    last["input"] += payload.get("input", "")
    if payload.get("stop"):
        last["stop"] = True


RUNNERS: dict[str, Callable[[Json], Any]] = {
    "amazonq_request->gemini_request": partial(run_request, AMAZONQ),
    "gemini_response->amazonq_events": _events,
}
