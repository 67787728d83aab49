"""Short ways to send a Gemini request through the library and to answer it."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects.base import Target
from dragoman.dialects.gemini.client import Framing, GeminiClient
from dragoman.translation.exchange import Exchange

Json = dict[str, Any]
MODEL = "gemini-3.8-flash"
HI = [{"role": "user", "parts": [{"text": "hi"}]}]


def exchange(body: Json | bytes, framing: Framing = "whole", *, keep: bool = False) -> Exchange:
    started = Exchange(GeminiClient(MODEL, framing), new_id=lambda: "0" * 16, keep_events=keep)
    started.decode(body if isinstance(body, bytes) else json.dumps(body).encode())
    return started


def sent(body: Json | bytes, model: str = MODEL, **target: Any) -> Json:
    """The upstream body of a request."""
    found: Json = json.loads(exchange(body).encode(Target(model=model, **target)))
    return found


def talk(*contents: Json, **rest: Any) -> Json:
    return {"contents": list(contents), **rest}


def user(*parts: Json) -> Json:
    return {"role": "user", "parts": list(parts)}


def model(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def chunk(*parts: Json, finish: str = "", usage: Json | None = None, **candidate: Any) -> Json:
    found: Json = {"content": {"parts": list(parts), "role": "model"}, "index": 0, **candidate}
    if finish:
        found["finishReason"] = finish
    body: Json = {"candidates": [found], "modelVersion": MODEL, "responseId": "r1"}
    return {**body, "usageMetadata": usage} if usage else body


def sse(*chunks: Json) -> bytes:
    return b"".join(b"data: %b\r\n\r\n" % json.dumps(item).encode() for item in chunks)


def streamed(*chunks: Json, framing: Framing = "sse") -> list[Json]:
    """What the client's stream says to such an answer of Google's."""
    started = exchange({"contents": HI}, framing)
    started.encode(Target(model=MODEL))
    out = started.open() + started.receive(sse(*chunks)) + started.finish()
    if framing == "array":
        found: list[Json] = json.loads(out)
        return found
    assert out.endswith(b"\r\n\r\n")
    return [json.loads(frame.removeprefix(b"data: ")) for frame in out.split(b"\r\n\r\n")[:-1]]


def whole(*chunks: Json) -> Json:
    started = exchange({"contents": HI})
    started.encode(Target(model=MODEL))
    started.receive(sse(*chunks))
    answer: Json = json.loads(started.finish())
    return answer
