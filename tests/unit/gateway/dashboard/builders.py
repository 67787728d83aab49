"""Records and captures for tests, with nothing in them but what the test is about."""

from __future__ import annotations

from typing import Any

import msgspec

from dragoman.observe.captures import CapturedAttempt, CapturedBody, CapturedRequest
from dragoman.observe.record import RequestRecord


def record(**more: Any) -> RequestRecord:
    base = {
        "id": "req_1",
        "started_s": 1_700_000_000.0,
        "method": "POST",
        "path": "/v1/messages",
        "client": "curl/8",
    }
    return RequestRecord(**{**base, "status": 200, **more})


def body(document: Any) -> CapturedBody:
    return CapturedBody(text=msgspec.json.encode(document).decode())


def captured(asked: Any, *pairs: tuple[Any, Any], given: Any = None, **more: Any) -> CapturedRequest:
    """`pairs` are what Google was asked and what it answered."""
    upstream = tuple(CapturedAttempt(body(request), body(answer)) for request, answer in pairs)
    return CapturedRequest(
        record=record(model="gemini-2.5-flash", **more),
        client_request=body(asked),
        upstream=upstream,
        client_answer=body(given) if given is not None else CapturedBody(),
    )


def answer(*parts: dict[str, Any], finish: str = "STOP") -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}]}
