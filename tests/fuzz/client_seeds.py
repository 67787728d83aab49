"""Good requests of every client dialect, from the golden conversations and the corpus, and where they go."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzz.emulator_seeds import BODIES

_TESTS = Path(__file__).parents[1]
_GOLDEN, _CORPUS = _TESTS / "golden", _TESTS / "corpus"
_AREAS = {
    "anthropic": ("anthropic_request", "tools_request", "tool_result", "tool_choice"),
    "openai_chat": ("chat_request",),
    "openai_responses": ("responses_request",),
    "amazonq": ("amazonq",),
    "gemini": ("gemini_native",),
}
_DIRECTIONS = {
    "anthropic": "anthropic_",
    "openai_chat": "openai_chat_",
    "openai_responses": "openai_responses_",
    "amazonq": "amazonq_",
    "gemini": "gemini_native_",
}
_ITEM = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}
#: What no dialect's conversation is.
_OWN: dict[str, list[Any]] = {
    "/v1/conversations": [{"metadata": {"a": "b"}, "items": [_ITEM]}, {}],
    "/items": [{"items": [_ITEM, {**_ITEM, "id": "msg_1"}]}],
    "/v1/gemini": [
        {"model": "gemini-3.8-flash", "input": "hi", "conversation": "fuzz", "stream": True},
        {
            "model": "gemini-3.8-flash",
            "input": [{"role": "user", "parts": [{"text": "hi"}]}],
            "conversation": {"id": "f"},
        },
    ],
    "/v1/sessions/": [
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}], "keep_client_tools": True},
        {"results": [{"call_id": "c", "output": "x"}]},
    ],
}


def seeds_of(dialect: str, path: str = "") -> list[bytes]:
    """Bodies that a path of the dialect takes."""
    own = next(
        (bodies for end, bodies in _OWN.items() if path.endswith(end) or (end in path and end[-1] == "/")),
        None,
    )
    found = own or list(_bodies(dialect, path))
    return [body if isinstance(body, bytes) else json.dumps(body).encode() for body in found]


def _bodies(dialect: str, path: str) -> Iterator[Any]:
    if dialect == "bedrock":
        yield from _bedrock(path)
        return
    for area in _AREAS[dialect]:
        for file in sorted((_CORPUS / area).glob("*.json")):
            case = json.loads(file.read_text("utf-8"))
            if case["direction"].startswith(_DIRECTIONS[dialect]) and "request" in case["input"]:
                yield case["input"]["request"]
    folder = "gemini" if dialect == "anthropic" else dialect  # where Anthropic's requests are translated
    for file in sorted((_GOLDEN / folder).glob("*.json")):
        asked = json.loads(file.read_text("utf-8")).get("request")
        if asked is not None:
            yield asked.encode() if isinstance(asked, str) else asked
    if dialect == "gemini":
        yield from BODIES.values()


def _bedrock(path: str) -> Iterator[Any]:
    wanted = "invoke" if "invoke" in path else "converse"
    for file in sorted((_GOLDEN / "bedrock").glob("*.json")):
        case = json.loads(file.read_text("utf-8"))
        if path.endswith("count-tokens"):
            body = base64.b64encode(json.dumps(case["ask"]).encode()).decode()
            inner = (
                {"converse": case["ask"]} if case["api"] == "converse" else {"invokeModel": {"body": body}}
            )
            yield {"input": inner}
        elif case["api"] == wanted:
            yield case["ask"]
