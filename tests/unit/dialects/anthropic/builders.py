"""Requests as clients send them, and short ways to read what became of them."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects import anthropic
from tests.unit.dialects.builders import PIXEL, Reader

Json = dict[str, Any]


def user(*blocks: Json | str) -> Json:
    return {"role": "user", "content": _content(blocks)}


def assistant(*blocks: Json | str) -> Json:
    return {"role": "assistant", "content": _content(blocks)}


def system(*blocks: Json | str) -> Json:
    return {"role": "system", "content": _content(blocks)}


def _content(blocks: tuple[Json | str, ...]) -> Any:
    if len(blocks) == 1 and isinstance(blocks[0], str):
        return blocks[0]
    return [text(block) if isinstance(block, str) else block for block in blocks]


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def tool_use(identity: str = "toolu_1", name: str = "Read", **more: Any) -> Json:
    return {"type": "tool_use", "id": identity, "name": name, "input": {}, **more}


def tool_result(content: Any = "done", identity: str = "toolu_1", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": identity, "content": content, **more}


def thinking(signature: str | None = "", words: str = "hm") -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


def image(**source: Any) -> Json:
    return {"type": "image", "source": source or {"type": "base64", "media_type": "image/png", "data": PIXEL}}


def document(source: Json, **more: Any) -> Json:
    return {"type": "document", "source": source, **more}


def tool(name: str, **more: Any) -> Json:
    return {"name": name, "input_schema": {"type": "object", "properties": {}}, **more}


def body(*messages: Json, **fields: Any) -> bytes:
    return json.dumps({"model": "m", "max_tokens": 8192, "messages": messages, **fields}).encode()


_READER = Reader(anthropic, body, user("hi"))
decode = _READER.decode
request = _READER.request
messages = _READER.messages
parts = _READER.parts
refused = _READER.refused
refusal = _READER.refusal
