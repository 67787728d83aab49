"""Requests as Chat clients send them, and short ways to read what became of them."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects import openai_chat
from dragoman.ir import seal
from tests.unit.dialects.builders import PIXEL, SIGNATURE, Reader

Json = dict[str, Any]


def user(*parts: Json | str) -> Json:
    return {"role": "user", "content": _content(parts)}


def system(*parts: Json | str, role: str = "system") -> Json:
    return {"role": role, "content": _content(parts)}


def assistant(content: Any = None, *calls: Json, **more: Any) -> Json:
    return {"role": "assistant", "content": content, **({"tool_calls": list(calls)} if calls else {}), **more}


def result(content: Any = "done", identity: str = "call_1") -> Json:
    return {"role": "tool", "tool_call_id": identity, "content": content}


def _content(parts: tuple[Json | str, ...]) -> Any:
    if len(parts) == 1 and isinstance(parts[0], str):
        return parts[0]
    return [text(part) if isinstance(part, str) else part for part in parts]


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def image(url: str, **more: Any) -> Json:
    return {"type": "image_url", "image_url": {"url": url, **more}}


def audio(form: str = "wav", data: str = PIXEL) -> Json:
    return {"type": "input_audio", "input_audio": {"data": data, "format": form}}


def file(**fields: Any) -> Json:
    return {"type": "file", "file": fields}


def call(arguments: Any = "{}", identity: str = "call_1", name: str = "Read", **more: Any) -> Json:
    function = {"name": name, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function, **more}


def custom_call(text: str, identity: str = "call_1", name: str = "patch") -> Json:
    return {"id": identity, "type": "custom", "custom": {"name": name, "input": text}}


def google(word: str) -> Json:
    return {"google": {"thought_signature": word}}


def sealed(target: str = "call_1") -> Json:
    return google(seal(SIGNATURE, target))


def tool(name: str, **more: Any) -> Json:
    return {"type": "function", "function": {"name": name, **more}}


def custom_tool(name: str, **more: Any) -> Json:
    return {"type": "custom", "custom": {"name": name, **more}}


def body(*messages: Json, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "messages": messages, **fields}).encode()


_READER = Reader(openai_chat, body, user("hi"))
decode = _READER.decode
request = _READER.request
messages = _READER.messages
parts = _READER.parts
noted = _READER.noted
refused = _READER.refused
refusal = _READER.refusal
