"""Requests as clients send them, and short ways to read what became of them."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects import openai_responses
from dragoman.ir import seal
from tests.unit.dialects.builders import PIXEL, SIGNATURE, Reader

Json = dict[str, Any]

PICTURE = f"data:image/png;base64,{PIXEL}"


def message(role: str, *contents: Json | str) -> Json:
    return {"type": "message", "role": role, "content": _content(contents)}


def user(*contents: Json | str) -> Json:
    return message("user", *contents)


def _content(contents: tuple[Json | str, ...]) -> Any:
    if len(contents) == 1 and isinstance(contents[0], str):
        return contents[0]
    return [{"type": "input_text", "text": item} if isinstance(item, str) else item for item in contents]


def call(call_id: str = "call_1", name: str = "read", arguments: Any = "{}", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}


def output(value: Any = "done", call_id: str = "call_1", **more: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": value, **more}


def reasoning(target: str = "", words: str = "hm", **more: Any) -> Json:
    summary = [{"type": "summary_text", "text": words}] if words else []
    encrypted = seal(SIGNATURE, target) if target else None
    return {
        "type": "reasoning",
        "id": "rs_1",
        "summary": summary,
        "content": None,
        "encrypted_content": encrypted,
        **more,
    }


def function(name: str = "read", **more: Any) -> Json:
    parameters = {"type": "object", "properties": {"path": {"type": "string"}}}
    return {"type": "function", "name": name, "parameters": parameters, "strict": False, **more}


def namespace(name: str, *tools: Json, **more: Any) -> Json:
    return {"type": "namespace", "name": name, "description": "", "tools": list(tools), **more}


def body(*items: Json, **fields: Any) -> bytes:
    return json.dumps({"model": "gpt-5", "input": list(items), **fields}).encode()


_READER = Reader(openai_responses, body, user("hi"))
decode = _READER.decode
request = _READER.request
messages = _READER.messages
parts = _READER.parts
refused = _READER.refused
refusal = _READER.refusal


def notes(*items: Json, **fields: Any) -> list[str]:
    return [str(note) for note in decode(*items, **fields).notes]
