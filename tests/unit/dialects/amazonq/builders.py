"""Requests as Amazon Q and Kiro send them, and short ways to read what became of them."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects.amazonq import AmazonQ
from dragoman.ir import seal
from tests.unit.dialects.builders import PIXEL, SIGNATURE, Reader

Json = dict[str, Any]

HISTORY = "conversationState.history"
CURRENT = "conversationState.currentMessage"
USER = ".userInputMessage"
CONTEXT = f"{USER}.userInputMessageContext"
ASSISTANT = ".assistantResponseMessage"


def user(content: Any = "hi", *, context: Any = None, **more: Any) -> Json:
    about = {"userInputMessageContext": context} if context is not None else {}
    return {"userInputMessage": {"content": content, **about, **more}}


def assistant(content: Any = "", *uses: Json, **more: Any) -> Json:
    used = {"toolUses": list(uses)} if uses else {}
    return {"assistantResponseMessage": {"content": content, **used, **more}}


def use(identity: str = "t1", name: str = "fs_read", **more: Any) -> Json:
    return {"toolUseId": identity, "name": name, **more}


def result(*content: Json, identity: str = "t1", **more: Any) -> Json:
    return {"toolUseId": identity, "content": list(content), **more}


def results(*given: Json, content: Any = "", **more: Any) -> Json:
    return user(content, context={"toolResults": list(given)}, **more)


def reasoning(text: Any = "hm", signature: Any = None) -> Json:
    return {"reasoningContent": {"reasoningText": {"text": text, "signature": signature}}}


def sealed(target: str = "t1") -> str:
    return seal(SIGNATURE, target)


def image(form: str = "png", data: str = PIXEL) -> Json:
    return {"format": form, "source": {"bytes": data}}


def document(form: str = "pdf", data: str = "JVBERi0=", name: str | None = "a") -> Json:
    return {"format": form, "source": {"bytes": data}, "name": name}


def tool(name: str = "fs_read", schema: Any = None, **more: Any) -> Json:
    written = {"inputSchema": {"json": schema}} if schema is not None else {}
    return {"toolSpecification": {"name": name, **written, **more}}


def with_tools(*tools: Json, content: str = "hi") -> Json:
    return user(content, context={"tools": list(tools)})


def body(*messages: Json, conversation_id: str | None = "c-1", **fields: Any) -> bytes:
    """The last message is the current one."""
    *history, current = messages or (user(),)
    state = {"conversationId": conversation_id, "history": history, "currentMessage": current}
    return json.dumps({"conversationState": state, **fields}).encode()


_READER = Reader(AmazonQ(), body, user())
decode = _READER.decode
request = _READER.request
messages = _READER.messages
parts = _READER.parts
noted = _READER.noted
refused = _READER.refused
refusal = _READER.refusal
