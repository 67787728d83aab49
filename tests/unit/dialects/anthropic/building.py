"""Requests as clients send them, and short ways to read what became of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects import anthropic
from dragoman.dialects.base import Decoded
from dragoman.errors import InvalidRequest
from dragoman.ir import Message, Part, Request, Signature

Json = dict[str, Any]

SIGNATURE = Signature("c2lnbmF0dXJl", "gemini-g3")
PIXEL = "iVBORw0KGgo="


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


def decode(*messages: Json, headers: dict[str, str] | None = None, **fields: Any) -> Decoded:
    return anthropic.decode_request(body(*(messages or (user("hi"),)), **fields), headers or {})


def request(*messages: Json, **fields: Any) -> Request:
    return decode(*messages, **fields).request


def messages(*given: Json) -> tuple[Message, ...]:
    return request(*given).messages


def parts(message: Json) -> tuple[Part, ...]:
    (only,) = messages(message)
    return only.parts


def refusal(raw: bytes) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        anthropic.decode_request(raw, {})
    return caught.value


def refused(*given: Json, **fields: Any) -> InvalidRequest:
    return refusal(body(*(given or (user("hi"),)), **fields))
