"""Converse requests as clients send them, and short ways to read what became of them."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects.base import Decoded
from dragoman.dialects.bedrock import ConverseClient
from dragoman.ir import Part
from tests.unit.dialects.builders import PIXEL, Reader

Json = dict[str, Any]

PDF = "JVBERi0="
CLIENT = ConverseClient("m")


def user(*blocks: Json | str) -> Json:
    return {"role": "user", "content": [_block(block) for block in blocks]}


def assistant(*blocks: Json | str) -> Json:
    return {"role": "assistant", "content": [_block(block) for block in blocks]}


def system(*blocks: Json | str) -> Json:
    return {"role": "system", "content": [_block(block) for block in blocks]}


def _block(block: Json | str) -> Json:
    return {"text": block} if isinstance(block, str) else block


def tool_use(identity: str = "t1", name: str = "Read", **more: Any) -> Json:
    return {"toolUse": {"toolUseId": identity, "name": name, "input": {}, **more}}


def tool_result(*content: Json, identity: str = "t1", **more: Any) -> Json:
    return {"toolResult": {"toolUseId": identity, "content": list(content), **more}}


def reasoning(words: str = "hm", signature: str | None = None) -> Json:
    signed = {} if signature is None else {"signature": signature}
    return {"reasoningContent": {"reasoningText": {"text": words, **signed}}}


def image(form: str = "png", **source: Any) -> Json:
    return {"image": {"format": form, "source": source or {"bytes": PIXEL}}}


def document(form: str | None = "pdf", name: str = "report", source: Json | None = None, **more: Any) -> Json:
    return {"document": {"format": form, "name": name, "source": source or {"bytes": PDF}, **more}}


def spec(name: str = "Read", **more: Any) -> Json:
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}, **more}}


def body(*messages: Json, **fields: Any) -> bytes:
    return json.dumps({"messages": messages, **fields}).encode()


_READER = Reader(CLIENT, body, user("hi"))
decode = _READER.decode
request = _READER.request
notes = _READER.noted
refused = _READER.refused
refusal = _READER.refusal


def tools(*wires: Json, **more: Any) -> Decoded:
    return decode(toolConfig={"tools": list(wires), **more})


def parts(message: Json) -> list[Part]:
    return list(_READER.parts(message))
